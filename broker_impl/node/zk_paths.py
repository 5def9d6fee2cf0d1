"""The paths and JSON contents of znodes, as Kafka up to 3.x writes them.

Each kind of znode is a struct with ``encode`` and ``decode``; fields that later Kafka versions add
are ignored. ``BadZnode`` names the path whose content cannot be read.
"""

from typing import TypeVar

import msgspec

from broker_impl.errors import BrokerError
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
ADMIN = "/admin"
DELETE_TOPICS = f"{ADMIN}/delete_topics"
REASSIGN_PARTITIONS = f"{ADMIN}/reassign_partitions"
PREFERRED_ELECTION = f"{ADMIN}/preferred_replica_election"
CONFIGS = "/config"
TOPIC_CONFIGS = f"{CONFIGS}/topics"
BROKER_CONFIGS = f"{CONFIGS}/brokers"
CONFIG_CHANGES = f"{CONFIGS}/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
CLUSTER_ID = "/cluster/id"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

PERSISTENT_PATHS = (
    BROKER_IDS,
    TOPICS,
    DELETE_TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    CONFIG_CHANGES,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    "/cluster",
)
"""The znodes that every broker creates at its start if they are missing."""

NO_LEADER = -1


class BadZnode(BrokerError):
    """The content of a znode is not readable for this broker."""


def broker(number: BrokerId) -> str:
    """The path of a broker's ephemeral znode, whose czxid is the broker epoch (KIP-380)."""
    return f"{BROKER_IDS}/{number}"


def topic(name: str) -> str:
    """The path of a topic's assignment of partitions to brokers."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """The parent path of the partitions' znodes."""
    return f"{TOPICS}/{name}/partitions"


def partition(tp: TopicPartition) -> str:
    """The parent path of one partition's state."""
    return f"{partitions(tp.topic)}/{tp.partition}"


def state(tp: TopicPartition) -> str:
    """The path of a partition's leader and ISR; the znode's version is the partition epoch."""
    return f"{partition(tp)}/state"


def topic_config(name: str) -> str:
    """The path of a topic's overrides."""
    return f"{TOPIC_CONFIGS}/{name}"


def config(entity: str) -> str:
    """The path of the overrides of ``topics/T``, ``brokers/N`` or ``brokers/<default>``."""
    return f"{CONFIGS}/{entity}"


def delete_topic(name: str) -> str:
    """The path of a request to delete a topic."""
    return f"{DELETE_TOPICS}/{name}"


class ControllerZnode(msgspec.Struct, omit_defaults=False):
    """``/controller``."""

    brokerid: BrokerId
    timestamp: str
    version: int = 1


class BrokerZnode(msgspec.Struct):
    """``/brokers/ids/N``."""

    host: str
    port: int
    endpoints: list[str]
    listener_security_protocol_map: dict[str, str]
    timestamp: str
    jmx_port: int = -1
    rack: str | None = None
    features: dict[str, object] = {}
    version: int = 5


class TopicZnode(msgspec.Struct):
    """``/brokers/topics/T``."""

    partitions: dict[str, list[BrokerId]]
    adding_replicas: dict[str, list[BrokerId]] = {}
    removing_replicas: dict[str, list[BrokerId]] = {}
    topic_id: str | msgspec.UnsetType = msgspec.UNSET
    """The topic's id as text (KIP-516); a topic of an earlier version of Kafka has none."""
    version: int = 3


class StateZnode(msgspec.Struct):
    """``/brokers/topics/T/partitions/P/state``; leader -1: none."""

    controller_epoch: Epoch
    leader: BrokerId
    leader_epoch: Epoch
    isr: list[BrokerId]
    version: int = 1


class ConfigZnode(msgspec.Struct):
    """``/config/topics/T``, ``/config/brokers/N``."""

    config: dict[str, str]
    version: int = 1


class ConfigChangeZnode(msgspec.Struct):
    """``/config/changes/config_change_N``: notifies brokers of changed settings."""

    entity_path: str
    version: int = 2


class PartitionName(msgspec.Struct):
    """A partition inside a notification."""

    topic: str
    partition: int


class IsrChangeZnode(msgspec.Struct):
    """``/isr_change_notification/isr_change_N``: notifies the controller of changed ISRs."""

    partitions: list[PartitionName]
    version: int = 1


class LogDirEventZnode(msgspec.Struct, kw_only=True):
    """``/log_dir_event_notification/log_dir_event_N``: a log directory of the broker has failed."""

    version: int = 1
    broker: BrokerId
    event: int = 1


class WantedReplicas(msgspec.Struct):
    """The replicas that a partition is to have."""

    topic: str
    partition: int
    replicas: list[BrokerId]


class ReassignPartitionsZnode(msgspec.Struct):
    """``/admin/reassign_partitions``: moves that a tool requests, without those that are over."""

    partitions: list[WantedReplicas]
    version: int = 1


class PreferredElectionZnode(msgspec.Struct):
    """``/admin/preferred_replica_election``: partitions whose first replica shall lead."""

    partitions: list[PartitionName]
    version: int = 1


class ClusterIdZnode(msgspec.Struct):
    """``/cluster/id``."""

    id: str
    version: str = "1"


class ProducerIdBlockZnode(msgspec.Struct):
    """``/latest_producer_id_block``: the latest block that was claimed, both ends included."""

    broker: BrokerId
    block_start: str
    block_end: str
    version: int = 1


T = TypeVar("T", bound=msgspec.Struct)


def encode(znode: msgspec.Struct) -> bytes:
    """Return the content of a znode."""
    return msgspec.json.encode(znode)


def decode(path: str, data: bytes, kind: type[T]) -> T:
    """Parse the content of a znode; raises BadZnode if it is not valid."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise BadZnode(f"{path}: {error}") from error
