"""The broker's settings under Kafka's names: one table of typed fields defines them all.

A topic's settings are the broker's with some fields replaced (``for_topic``), as in Kafka.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, get_origin, get_type_hints

from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import INACTIVE, Kind, check_range, inactive, parse_value
from broker_impl.properties import OTHER_NAMES, by_one_name

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_PEER_PREFIX = "faultline.peer."
_OWN_PREFIX = "faultline."
_SIMILAR = 0.7
"""The similarity (0 to 1) from which a known name is suggested for an unknown one."""
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
"""The values of ``replica.selector.class``: the names of Kafka's own classes (KIP-392)."""
_SECRET_WORDS = ("password", "secret", "jaas.config", "private.key", "keystore.key")


class Endpoint(NamedTuple):
    """One ``NAME://host:port``; an empty host means every interface."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.host}:{self.port}"


class Source(IntEnum):
    """The source of a setting's value, with the numbers of DescribeConfigs and CreateTopics."""

    TOPIC = 1
    BROKER = 2
    """Set dynamically for one broker."""
    ALL_BROKERS = 3
    """Set dynamically for all brokers."""
    FILE = 4
    DEFAULT = 5


class Sourced(NamedTuple):
    """A value, with the name under which it was set."""

    name: str
    value: Any
    source: Source


def _key(
    name: str,
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    one_of: tuple[str, ...] | None = None,
    topic: str | None = None,
    kind: Kind | None = None,
) -> Any:
    """Define a setting: Kafka's name, default, documentation and bounds.

    topic: its name as a topic's setting. kind: Kafka's kind of value, if the field's type does not
    determine it.
    """
    metadata = {"name": name, "doc": doc, "low": low, "high": high, "one_of": one_of, "kind": kind}
    return field(default=default, metadata=metadata | {"topic": topic})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Every setting on which this broker acts. Times are milliseconds, sizes bytes, -1 no limit."""

    # identity and addresses
    broker_id: int = _key("broker.id", -1, "The id of this broker.", low=-1)
    broker_rack: str = _key(
        "broker.rack", "", "The rack of this broker; replicas are spread over racks."
    )
    listeners: tuple[str, ...] = _key(
        "listeners", ("PLAINTEXT://:9092",), "NAME://host:port, …; port 0 selects a free port."
    )
    advertised_listeners: tuple[str, ...] = _key(
        "advertised.listeners",
        (),
        "The addresses that clients and brokers connect to; default: listeners.",
    )
    listener_security_protocol_map: tuple[str, ...] = _key(
        "listener.security.protocol.map", ("PLAINTEXT:PLAINTEXT",), "NAME:PROTOCOL, …"
    )
    inter_broker_listener_name: str = _key(
        "inter.broker.listener.name", "", "The listener that brokers use; default: the first one."
    )
    log_dirs: str = _key("log.dirs", "/tmp/kafka-logs", "The data directory.")
    zookeeper_connect: str = _key(
        "zookeeper.connect", "", "The ZooKeeper servers: host:port,host:port/chroot."
    )
    zookeeper_session_timeout_ms: int = _key(
        "zookeeper.session.timeout.ms",
        18_000,
        "The broker's ZooKeeper session expires after this silence.",
        low=1,
    )

    # connections and requests
    max_connections: int = _key(
        "max.connections", _INT32_MAX, "Maximum number of connections over all listeners.", low=0
    )
    max_connections_per_ip: int = _key(
        "max.connections.per.ip",
        _INT32_MAX,
        "Maximum number of connections from one address.",
        low=0,
    )
    connections_max_idle_ms: int = _key(
        "connections.max.idle.ms",
        600_000,
        "Idle connections are closed after this; -1: never.",
        low=-1,
        kind=Kind.LONG,
    )
    socket_request_max_bytes: int = _key(
        "socket.request.max.bytes", 100 * 1024 * 1024, "Maximum size of a request.", low=1
    )
    queued_max_request_bytes: int = _key(
        "queued.max.request.bytes",
        -1,
        "Bytes of requests in progress at which the broker stops reading.",
        low=-1,
        kind=Kind.LONG,
    )
    queued_max_requests: int = _key(
        "queued.max.requests",
        500,
        "Maximum number of requests in progress on one connection.",
        low=1,
    )
    request_timeout_ms: int = _key(
        "request.timeout.ms",
        30_000,
        "How long a broker waits for another broker's response.",
        low=1,
    )
    fetch_max_bytes: int = _key(
        "fetch.max.bytes", 55 * 1024 * 1024, "Maximum size of a fetch response.", low=1024
    )

    # topics
    num_partitions: int = _key(
        "num.partitions", 1, "Number of partitions of a created topic.", low=1
    )
    default_replication_factor: int = _key(
        "default.replication.factor", 1, "Replication factor of a created topic.", low=1
    )
    auto_create_topics_enable: bool = _key(
        "auto.create.topics.enable", True, "A metadata request for an unknown topic creates it."
    )
    delete_topic_enable: bool = _key("delete.topic.enable", True, "Whether topics can be deleted.")
    min_insync_replicas: int = _key(
        "min.insync.replicas",
        1,
        "Number of in-sync replicas that acks=all requires.",
        low=1,
        topic="min.insync.replicas",
    )
    unclean_leader_election_enable: bool = _key(
        "unclean.leader.election.enable",
        False,
        "A replica outside of the ISR may become the leader, which loses records.",
        topic="unclean.leader.election.enable",
    )
    message_max_bytes: int = _key(
        "message.max.bytes", 1_048_588, "Maximum size of a batch.", low=0, topic="max.message.bytes"
    )
    compression_type: str = _key(
        "compression.type",
        "producer",
        "`producer`: batches are stored as producers compressed them.",
        one_of=("producer",),
        topic="compression.type",
    )
    log_message_timestamp_type: str = _key(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record's time is when it was created or appended.",
        one_of=("CreateTime", "LogAppendTime"),
        topic="message.timestamp.type",
    )
    log_message_timestamp_difference_max_ms: int = _key(
        "log.message.timestamp.difference.max.ms",
        _INT64_MAX,
        "Maximum difference between a record's timestamp and the broker's clock.",
        low=0,
        topic="message.timestamp.difference.max.ms",
        kind=Kind.LONG,
    )

    # the log
    log_segment_bytes: int = _key(
        "log.segment.bytes", 1024**3, "Maximum size of a segment.", low=14, topic="segment.bytes"
    )
    log_roll_ms: int = _key(
        "log.roll.ms",
        7 * 24 * 3_600_000,
        "Maximum age of a segment.",
        low=1,
        topic="segment.ms",
        kind=Kind.LONG,
    )
    log_index_interval_bytes: int = _key(
        "log.index.interval.bytes",
        4096,
        "Bytes between two index entries.",
        low=0,
        topic="index.interval.bytes",
    )
    log_index_size_max_bytes: int = _key(
        "log.index.size.max.bytes",
        10 * 1024 * 1024,
        "Maximum size of an index.",
        low=4,
        topic="segment.index.bytes",
    )
    log_retention_ms: int = _key(
        "log.retention.ms",
        7 * 24 * 3_600_000,
        "Age at which segments are deleted.",
        low=-1,
        topic="retention.ms",
        kind=Kind.LONG,
    )
    log_retention_bytes: int = _key(
        "log.retention.bytes",
        -1,
        "Size beyond which segments are deleted.",
        low=-1,
        topic="retention.bytes",
        kind=Kind.LONG,
    )
    log_retention_check_interval_ms: int = _key(
        "log.retention.check.interval.ms",
        300_000,
        "How often retention is checked.",
        low=1,
        kind=Kind.LONG,
    )
    log_cleanup_policy: tuple[str, ...] = _key(
        "log.cleanup.policy",
        ("delete",),
        "Whether old segments are deleted, compacted or both.",
        one_of=("delete", "compact"),
        topic="cleanup.policy",
    )
    log_cleaner_enable: bool = _key("log.cleaner.enable", True, "Whether the log cleaner runs.")
    log_cleaner_backoff_ms: int = _key(
        "log.cleaner.backoff.ms",
        15_000,
        "How often the cleaner looks for logs to compact.",
        low=1,
        kind=Kind.LONG,
    )
    log_cleaner_dedupe_buffer_size: int = _key(
        "log.cleaner.dedupe.buffer.size",
        128 * 1024 * 1024,
        "Memory for the cleaner's map of keys, 24 bytes for each key.",
        low=24,
        kind=Kind.LONG,
    )
    log_cleaner_min_cleanable_ratio: float = _key(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Share of a log that must be new before it is compacted.",
        low=0,
        high=1,
        topic="min.cleanable.dirty.ratio",
    )
    log_cleaner_delete_retention_ms: int = _key(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long tombstones and transaction markers are kept.",
        low=0,
        topic="delete.retention.ms",
        kind=Kind.LONG,
    )
    log_cleaner_min_compaction_lag_ms: int = _key(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Minimum age of a record before it is compacted.",
        low=0,
        topic="min.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_cleaner_max_compaction_lag_ms: int = _key(
        "log.cleaner.max.compaction.lag.ms",
        _INT64_MAX,
        "Age of a record at which its log is compacted in any case.",
        low=1,
        topic="max.compaction.lag.ms",
        kind=Kind.LONG,
    )
    log_segment_delete_delay_ms: int = _key(
        "log.segment.delete.delay.ms",
        60_000,
        "Delay before a deleted segment is removed from the disk.",
        low=0,
        topic="file.delete.delay.ms",
        kind=Kind.LONG,
    )
    log_flush_interval_messages: int = _key(
        "log.flush.interval.messages",
        _INT64_MAX,
        "Number of records between two fsyncs.",
        low=1,
        topic="flush.messages",
        kind=Kind.LONG,
    )
    log_flush_interval_ms: int = _key(
        "log.flush.interval.ms",
        _INT64_MAX,
        "Time between two fsyncs.",
        low=0,
        topic="flush.ms",
        kind=Kind.LONG,
    )
    log_flush_scheduler_interval_ms: int = _key(
        "log.flush.scheduler.interval.ms",
        1000,
        "How often the broker looks for logs whose fsync is due.",
        low=1,
        kind=Kind.LONG,
    )
    log_flush_offset_checkpoint_interval_ms: int = _key(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "Time between two recovery point checkpoints.",
        low=1,
    )
    producer_id_expiration_ms: int = _key(
        "producer.id.expiration.ms",
        86_400_000,
        "The state of an idle producer expires after this.",
        low=1,
    )
    producer_id_expiration_check_interval_ms: int = _key(
        "producer.id.expiration.check.interval.ms",
        600_000,
        "How often producer states are checked for expiry.",
        low=1,
    )

    # groups
    group_min_session_timeout_ms: int = _key(
        "group.min.session.timeout.ms", 6_000, "Minimum session timeout of a group's member.", low=1
    )
    group_max_session_timeout_ms: int = _key(
        "group.max.session.timeout.ms",
        1_800_000,
        "Maximum session timeout of a group's member.",
        low=1,
    )
    group_initial_rebalance_delay_ms: int = _key(
        "group.initial.rebalance.delay.ms",
        3_000,
        "How long the first rebalance of an empty group waits for more members.",
        low=0,
    )
    group_max_size: int = _key(
        "group.max.size", _INT32_MAX, "Maximum number of members of a group.", low=1
    )
    offsets_topic_num_partitions: int = _key(
        "offsets.topic.num.partitions", 50, "Number of partitions of __consumer_offsets.", low=1
    )
    offsets_topic_replication_factor: int = _key(
        "offsets.topic.replication.factor",
        3,
        "Replication factor of __consumer_offsets; if not set, fewer live brokers are enough.",
        low=1,
        kind=Kind.SHORT,
    )
    offsets_topic_segment_bytes: int = _key(
        "offsets.topic.segment.bytes",
        100 * 1024 * 1024,
        "Maximum size of a segment of __consumer_offsets.",
        low=14,
    )
    offsets_retention_minutes: int = _key(
        "offsets.retention.minutes", 10_080, "Offsets of an empty group expire after this.", low=1
    )
    offsets_retention_check_interval_ms: int = _key(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often offsets are checked for expiry.",
        low=1,
        kind=Kind.LONG,
    )
    offsets_commit_timeout_ms: int = _key(
        "offsets.commit.timeout.ms", 5_000, "How long a commit waits for the replicas.", low=1
    )
    offset_metadata_max_bytes: int = _key(
        "offset.metadata.max.bytes",
        4_096,
        "Maximum size of the metadata of a committed offset.",
        low=0,
        high=32_767,
    )

    # transactions
    transaction_state_log_num_partitions: int = _key(
        "transaction.state.log.num.partitions",
        50,
        "Number of partitions of __transaction_state.",
        low=1,
    )
    transaction_state_log_replication_factor: int = _key(
        "transaction.state.log.replication.factor",
        3,
        "Replication factor of __transaction_state; if not set, fewer live brokers are enough.",
        low=1,
        kind=Kind.SHORT,
    )
    transaction_state_log_min_isr: int = _key(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state, at most its replication factor.",
        low=1,
    )
    transaction_state_log_segment_bytes: int = _key(
        "transaction.state.log.segment.bytes",
        100 * 1024 * 1024,
        "Maximum size of a segment of __transaction_state.",
        low=14,
    )
    transaction_max_timeout_ms: int = _key(
        "transaction.max.timeout.ms",
        900_000,
        "Maximum transaction timeout that a producer may request.",
        low=1,
    )
    transactional_id_expiration_ms: int = _key(
        "transactional.id.expiration.ms",
        604_800_000,
        "Unused transactional ids expire after this.",
        low=1,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = _key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often transactions are checked for timeout and expiry.",
        low=1,
    )
    transaction_partition_verification_enable: bool = _key(
        "transaction.partition.verification.enable",
        True,
        "Whether the leader asks the coordinator before a transaction begins in a partition "
        "(KIP-890).",
    )

    # replication
    replica_lag_time_max_ms: int = _key(
        "replica.lag.time.max.ms",
        30_000,
        "A replica that lags for longer than this leaves the ISR.",
        low=1,
        kind=Kind.LONG,
    )
    replica_fetch_wait_max_ms: int = _key(
        "replica.fetch.wait.max.ms",
        500,
        "How long the leader holds a follower's fetch that finds no records.",
        low=0,
    )
    replica_fetch_min_bytes: int = _key(
        "replica.fetch.min.bytes", 1, "Bytes at which the leader answers a follower's fetch.", low=0
    )
    replica_fetch_max_bytes: int = _key(
        "replica.fetch.max.bytes",
        1024 * 1024,
        "Maximum bytes of one partition in a follower's fetch.",
        low=0,
    )
    replica_fetch_response_max_bytes: int = _key(
        "replica.fetch.response.max.bytes",
        10 * 1024 * 1024,
        "Maximum bytes of a follower's fetch.",
        low=0,
    )
    replica_fetch_backoff_ms: int = _key(
        "replica.fetch.backoff.ms", 1000, "Delay after a failed fetch.", low=0
    )
    replica_socket_timeout_ms: int = _key(
        "replica.socket.timeout.ms", 30_000, "A follower's fetch fails after this silence.", low=1
    )
    replica_high_watermark_checkpoint_interval_ms: int = _key(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "Time between two high watermark checkpoints.",
        low=1,
        kind=Kind.LONG,
    )

    replica_selector_class: str = _key(
        "replica.selector.class",
        "",
        "Whether consumers fetch from replicas in their own rack; by default from the leader.",
        one_of=("", RACK_AWARE_SELECTOR, LEADER_SELECTOR),
    )

    # controller
    controlled_shutdown_enable: bool = _key(
        "controlled.shutdown.enable",
        True,
        "Leadership is moved to other brokers before this broker stops.",
    )
    controlled_shutdown_max_retries: int = _key(
        "controlled.shutdown.max.retries",
        3,
        "How often the broker tries to move its leaders.",
        low=0,
    )
    controlled_shutdown_retry_backoff_ms: int = _key(
        "controlled.shutdown.retry.backoff.ms",
        500,
        "Delay between two tries.",
        low=0,
        kind=Kind.LONG,
    )
    controller_socket_timeout_ms: int = _key(
        "controller.socket.timeout.ms",
        30_000,
        "A controller's request fails after this silence.",
        low=1,
    )
    auto_leader_rebalance_enable: bool = _key(
        "auto.leader.rebalance.enable",
        True,
        "Whether the controller restores preferred leaders automatically.",
    )
    leader_imbalance_check_interval_seconds: int = _key(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks for imbalance.",
        low=1,
        kind=Kind.LONG,
    )

    peer_overrides: Mapping[int, tuple[str, int]] = field(
        default_factory=dict, metadata={"name": None}
    )
    """``faultline.peer.<id>=host:port``: the address of a peer, in place of its advertised one."""
    given: frozenset[str] = field(default=frozenset(), metadata={"name": None})
    """The names that were set explicitly (DescribeConfigs separates these from defaults)."""

    inactive: Mapping[str, str] = field(default_factory=dict, metadata={"name": None})
    """Kafka settings that were given and on which this broker does not act, as text."""

    static: "BrokerConfig | None" = field(default=None, metadata={"name": None})
    """The configuration given at the start, if it has changed since."""
    dynamic: Mapping[str, str] = field(default_factory=dict, metadata={"name": None})
    """The dynamic settings of this broker, by broker-level names."""
    dynamic_default: Mapping[str, str] = field(default_factory=dict, metadata={"name": None})
    """The dynamic settings of all brokers."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners, parsed."""
        return tuple(parse_endpoint(text) for text in self.listeners)

    def advertised(self) -> tuple[Endpoint, ...]:
        """The advertised listeners, if they were given."""
        return tuple(parse_endpoint(text) for text in self.advertised_listeners)

    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves."""
        return self.inter_broker_listener_name.upper() or self.endpoints()[0].name

    def security_protocols(self) -> dict[str, str]:
        """Listener name to security protocol."""
        pairs = (item.partition(":") for item in self.listener_security_protocol_map)
        return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}

    def for_topic(self, overrides: Mapping[str, str]) -> "BrokerConfig":
        """Return this configuration with a topic's overrides.

        overrides: topic-level names (``retention.ms``) to text. A ConfigError names the invalid
        setting.
        """
        changed = {}
        for name, text in overrides.items():
            setting = TOPIC_SETTINGS.get(name)
            if setting is None:
                raise ConfigError(f"unknown topic setting {name}{_hint(name, TOPIC_SETTINGS)}")
            changed[setting.field] = setting.parse(text, name)
        return dataclasses.replace(self, **changed)

    def while_running(self, default: Mapping[str, str], own: Mapping[str, str]) -> "BrokerConfig":
        """Return this configuration, which was given at the start, with dynamic settings applied.

        default: for all brokers; own: for this one. Only settings that a topic can override are
        dynamic, because they are read at each use. A ConfigError names the invalid setting.
        """
        changed = {}
        for name, text in (dict(default) | dict(own)).items():
            setting = SETTINGS.get(name)
            if setting is None:
                raise unusable_setting(name)
            if not setting.is_dynamic:
                raise ConfigError(f"{name} cannot be changed while a broker runs")
            changed[setting.field] = setting.parse(text)
        return dataclasses.replace(
            self, **changed, static=self, dynamic=dict(own), dynamic_default=dict(default)
        )

    def sourced(self, setting: "Setting") -> list[Sourced]:
        """All values of a broker's setting with their sources; the effective one is first."""
        static = self.static or self
        name = setting.name
        values = []
        if name in self.dynamic:
            values.append(Sourced(name, setting.parse(self.dynamic[name]), Source.BROKER))
        if name in self.dynamic_default:
            text = self.dynamic_default[name]
            values.append(Sourced(name, setting.parse(text), Source.ALL_BROKERS))
        if name in static.given:
            values.append(Sourced(name, getattr(static, setting.field), Source.FILE))
        return [*values, Sourced(name, setting.default, Source.DEFAULT)]

    def topic_settings(
        self, overrides: Mapping[str, str]
    ) -> "Iterator[tuple[str, Setting, list[Sourced]]]":
        """Each setting of a topic by name, with all its values; the effective one is first.

        overrides: as in :meth:`for_topic`.
        """
        merged = self.for_topic(overrides)
        for name, setting in TOPIC_SETTINGS.items():
            values = self.sourced(setting)
            if name in overrides:
                values.insert(0, Sourced(name, getattr(merged, setting.field), Source.TOPIC))
            yield name, setting, values


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings."""

    field: str
    name: str
    kind: Kind
    default: Any
    doc: str
    low: float | None
    high: float | None
    one_of: tuple[str, ...] | None
    topic: str | None

    def parse(self, text: str, name: str | None = None) -> Any:
        """Convert a text to the typed value, or raise a ConfigError that says what is valid."""
        name = name or self.name
        value = parse_value(self.kind, name, text)
        said = value if self.is_list else (value,)
        if self.one_of is not None and not (said and all(each in self.one_of for each in said)):
            raise ConfigError(f"{name}={text}: must be one of {', '.join(self.one_of)}")
        check_range(name, text, value, self.low, self.high)
        return value

    def format(self, value: Any) -> str:
        """Convert a value to text, as DescribeConfigs shows it."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)

    @property
    def is_dynamic(self) -> bool:
        """Whether the setting can change at run time: as in Kafka, if topics can override it."""
        return self.topic is not None

    @property
    def is_list(self) -> bool:
        return self.kind is Kind.LIST

    @property
    def is_secret(self) -> bool:
        return any(word in self.name for word in _SECRET_WORDS)


def _settings() -> dict[str, Setting]:
    types = get_type_hints(BrokerConfig)
    rows = {}
    for item in dataclasses.fields(BrokerConfig):
        meta = dict(item.metadata)
        if meta["name"] is None:
            continue
        meta["kind"] = meta["kind"] or _kind(types[item.name])
        row = Setting(field=item.name, default=item.default, **meta)
        rows[row.name] = row
    return rows


def _kind(field_type: Any) -> Kind:
    if get_origin(field_type) is tuple:
        return Kind.LIST
    kinds = {bool: Kind.BOOLEAN, int: Kind.INT, float: Kind.DOUBLE, str: Kind.STRING}
    return kinds[field_type]


SETTINGS: Mapping[str, Setting] = _settings()
"""Broker-level name to setting."""
TOPIC_SETTINGS: Mapping[str, Setting] = {s.topic: s for s in SETTINGS.values() if s.topic}
"""Topic-level name to the broker's setting that it overrides."""


def parse_endpoint(text: str) -> Endpoint:
    """Parse ``NAME://host:port``; a ConfigError says what is wrong."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and _is_port(port)):
        raise ConfigError(f"{text}: a listener must be written as NAME://host:port")
    return Endpoint(name.upper(), host.strip("[]"), int(port))


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Parse ``host:port``."""
    host, colon, port = text.strip().rpartition(":")
    if not (host and colon and _is_port(port)):
        raise ConfigError(f"{name}={text}: must be host:port")
    return host, int(port)


def parse(settings: Mapping[str, str]) -> BrokerConfig:
    """Build a configuration from Kafka's names and text; ConfigError for the first invalid setting.

    Unknown names are ignored, as in Kafka; :func:`notes` reports them.
    """
    settings = by_one_name(settings)
    values: dict[str, Any] = {}
    peers: dict[int, tuple[str, int]] = {}
    others: dict[str, str] = {}
    for name, text in settings.items():
        if name.startswith(_PEER_PREFIX):
            number = name.removeprefix(_PEER_PREFIX)
            if not number.isdecimal():
                raise ConfigError(f"{name}: the name must end in a broker id")
            peers[int(number)] = parse_address(text, name)
        elif (setting := SETTINGS.get(name)) is not None:
            values[setting.field] = setting.parse(text)
        elif (other := inactive(name)) is not None:
            other.check(name, text)
            others[name] = text
        elif name.startswith(_OWN_PREFIX):
            raise unusable_setting(name)
    config = BrokerConfig(
        **values, peer_overrides=peers, given=frozenset(settings) & SETTINGS.keys(), inactive=others
    )
    _check(config)
    return config


def notes(settings: Mapping[str, str]) -> list[str]:
    """Return notes for the user about settings without effect.

    There is one line for each unknown name, and one line for all Kafka settings on which this
    broker does not act.
    """
    unknown = [name for name in settings if not _is_known(name)]
    idle = sorted(name for name in settings if inactive(name) is not None)
    lines = [f"unknown setting {name} is ignored{_hint(name, _known_names())}" for name in unknown]
    if idle:
        lines.append(
            "the broker does not act on these Kafka settings (docs/broker-settings.md): "
            f"{', '.join(idle)}"
        )
    return lines


def check_active(name: str, text: str) -> None:
    """Raise ConfigError for a setting that the broker would reject, ignore, or not act on."""
    for one_name, value in by_one_name({name: text}).items():
        setting = SETTINGS.get(one_name)
        if setting is None:
            raise unusable_setting(one_name)
        setting.parse(value)


def unusable_setting(name: str) -> ConfigError:
    """Return the error for a name that is not a setting on which this broker acts."""
    if inactive(name) is not None:
        return ConfigError(f"this broker does not act on {name}")
    return ConfigError(f"unknown setting {name}{_hint(name, _known_names())}")


def _is_known(name: str) -> bool:
    return (
        name in SETTINGS
        or name in OTHER_NAMES
        or name.startswith(_OWN_PREFIX)
        or inactive(name) is not None
    )


def _known_names() -> list[str]:
    return [*SETTINGS, *OTHER_NAMES, *INACTIVE]


def _check(config: BrokerConfig) -> None:
    """Check the constraints that involve several settings."""
    names = [endpoint.name for endpoint in config.endpoints()]
    if not names:
        raise ConfigError("listeners: at least one listener is needed")
    if len(set(names)) < len(names):
        raise ConfigError("listeners: the name of a listener may occur only once")
    protocols = config.security_protocols()
    for name in names:
        if protocols.get(name) != "PLAINTEXT":
            raise ConfigError(
                f"listener {name}: listener.security.protocol.map must map it to PLAINTEXT"
            )
    for endpoint in config.advertised():
        if endpoint.name not in names:
            raise ConfigError(f"advertised.listeners: {endpoint.name} is not one of the listeners")
    if config.inter_broker_listener() not in names:
        raise ConfigError(
            f"inter.broker.listener.name={config.inter_broker_listener_name}: this is not "
            "one of the listeners"
        )
    if config.inactive.get("process.roles"):
        raise ConfigError("process.roles: this broker has no KRaft mode; set zookeeper.connect")
    if not config.zookeeper_connect:
        raise ConfigError("zookeeper.connect: must be set")
    _check_ensemble(config.zookeeper_connect)
    if config.broker_id < 0:
        raise ConfigError("broker.id: must be set")
    if not config.log_dirs:
        raise ConfigError("log.dirs: must be set")
    if "," in config.log_dirs:
        raise ConfigError("log.dirs: only one directory is supported")


def _check_ensemble(connect: str) -> None:
    """Check ``host:port,host:port/chroot``; ZooKeeper's default port is 2181."""
    servers, _, chroot = connect.partition("/")
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (host if colon else port) or (colon and not _is_port(port)):
            raise ConfigError(f"zookeeper.connect={connect}: must be host:port,host:port/chroot")
    if "" in chroot.rstrip("/").split("/") and chroot.strip("/"):
        raise ConfigError(f"zookeeper.connect={connect}: the chroot must not have an empty part")


def _is_port(text: str) -> bool:
    return text.isdecimal() and text.isascii() and int(text) < 65536


def _hint(name: str, known: Iterable[str]) -> str:
    """Suggest the name that was probably meant: a similar one, or that of a topic's setting."""
    if name in TOPIC_SETTINGS and name not in known:
        return f"; did you mean {TOPIC_SETTINGS[name].name}?"
    plain = name.strip().lower().replace("_", ".").replace("-", ".")
    close = difflib.get_close_matches(plain, list(known), n=1, cutoff=_SIMILAR)
    return f"; did you mean {close[0]}?" if close else ""
