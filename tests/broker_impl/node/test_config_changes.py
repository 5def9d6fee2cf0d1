"""Dynamic settings of topics and brokers, on three running brokers."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import config_changes, zk_paths
from broker_impl.wire.messages.alter_configs_request import (
    AlterableConfig as ReplacedConfig,
)
from broker_impl.wire.messages.alter_configs_request import (
    AlterConfigsRequest,
)
from broker_impl.wire.messages.alter_configs_request import (
    AlterConfigsResource as ReplacedResource,
)
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from tests.broker_impl.node.broker_calls import create, leader

TP = TopicPartition("t", 0)
TOPIC, BROKER = 2, 4


async def alter(
    cluster: Any,
    number: int,
    kind: int,
    name: str,
    *rows: tuple[str, int, str | None],
    validate_only: bool = False,
) -> tuple[int, str]:
    configs = [AlterableConfig(key, operation, value) for key, operation, value in rows]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(kind, name, configs)], validate_only=validate_only
    )
    answer = await cluster.ask(number, request, 1)
    (row,) = answer.responses
    return row.error_code, row.error_message or ""


async def told(cluster: Any, number: int, kind: int, name: str, key: str) -> tuple[str, int]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(kind, name, configuration_keys=[key])]
    )
    answer = await cluster.ask(number, request, 4)
    (row,) = answer.results[0].configs
    return row.value, row.config_source


def brokers(cluster: Any) -> list[Any]:
    return [running.broker for running in cluster.brokers.values()]


async def test_a_topics_settings_change_on_all_brokers(three: Any) -> None:
    """Any broker accepts a change of a topic's settings, and all brokers apply it."""
    await create(three, config={"retention.ms": "5"})
    error = await alter(three, 1, TOPIC, "t", ("min.insync.replicas", 0, "2"))
    assert error == (0, "")
    assert (await alter(three, 2, TOPIC, "t", ("cleanup.policy", 2, "compact"))) == (0, "")
    await three.until(
        lambda: all(
            broker._logs.logs[TP].config.cleanup_policy == ("delete", "compact")
            and broker._replicas.partitions[TP].isr_min == 2
            for broker in brokers(three)
        )
    )
    assert await told(three, 3, TOPIC, "t", "min.insync.replicas") == ("2", 1)
    assert await told(three, 3, TOPIC, "t", "retention.ms") == ("5", 1)


async def test_alter_configs_forgets_what_it_does_not_name(three: Any) -> None:
    """AlterConfigs, the request of old clients, replaces all settings of a topic."""
    await create(three, config={"retention.ms": "5"})
    request = AlterConfigsRequest(
        resources=[ReplacedResource(TOPIC, "t", [ReplacedConfig("segment.ms", "7")])]
    )
    answer = await three.ask(1, request, 2)
    assert answer.responses[0].error_code == 0
    assert await told(three, 2, TOPIC, "t", "segment.ms") == ("7", 1)
    assert await told(three, 2, TOPIC, "t", "retention.ms") == ("604800000", 5)


async def test_a_brokers_settings_change(three: Any) -> None:
    """A cluster-wide broker setting applies everywhere, a setting of one broker only there."""
    await create(three)
    assert (await alter(three, 1, BROKER, "", ("log.retention.ms", 0, "11")))[0] == 0
    assert (await alter(three, 2, BROKER, "2", ("log.retention.ms", 0, "22")))[0] == 0
    await three.until(
        lambda: (
            [
                running.broker._logs.logs[TP].config.retention_ms
                for _, running in sorted(three.brokers.items())
            ]
            == [11, 22, 11]
        )
    )
    assert await told(three, 2, BROKER, "2", "log.retention.ms") == ("22", 2)
    assert await told(three, 3, BROKER, "3", "log.retention.ms") == ("11", 3)
    assert await told(three, 3, TOPIC, "t", "retention.ms") == ("11", 3)


async def test_changes_outlive_a_session_and_a_restart(three: Any) -> None:
    """A new session and a restarted process read all dynamic settings again."""
    await create(three)
    third = three.brokers[3]
    third.broker._settings_task.cancel()  # it hears of no change
    assert (await alter(three, 1, TOPIC, "t", ("segment.ms", 0, "7")))[0] == 0
    assert (await alter(three, 1, BROKER, "", ("log.retention.ms", 0, "11")))[0] == 0
    assert third.broker._logs.logs[TP].config.segment_ms != 7
    third.broker._session.expired.set()
    await three.until(lambda: third.broker._logs.logs[TP].config.segment_ms == 7)
    assert third.broker._logs.logs[TP].config.retention_ms == 11
    await three.brokers[2].stop()
    await three.brokers[2].start()
    config = three.brokers[2].broker._logs.logs[TP].config
    assert (config.segment_ms, config.retention_ms) == (7, 11)


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "error"),
    [
        (TOPIC, "nothing", "retention.ms", "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", "retention.msec", "1", ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", "retention.ms", "long", ErrorCode.INVALID_REQUEST),
        (BROKER, "1", "broker.id", "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "2", "log.retention.ms", "7", ErrorCode.INVALID_REQUEST),
        (16, "1", "root", "DEBUG", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_refused(
    three: Any, kind: int, name: str, key: str, value: str, error: ErrorCode
) -> None:
    """A refused change leaves all settings as they were."""
    await create(three)
    assert (await alter(three, 1, kind, name, (key, 0, value)))[0] == error
    assert await told(three, 1, TOPIC, "t", "retention.ms") == ("604800000", 5)


async def test_settings_without_effect_are_described_as_in_kafka(cluster: Any) -> None:
    """Settings that the broker accepts but does not act on are described as given in the file.

    They are hidden where Kafka has a password. Those that were not given have Kafka's default, and
    the broker refuses to change those that Kafka reads at its start.
    """
    cluster.inactive = {
        "num.io.threads": "8",
        "ssl.key.password": "secret",
        "zookeeper.sync.time.ms": "5",
        "x": "1",
    }
    await cluster.add(1)
    await cluster.ready()
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER, "1", None)])
    request.include_synonyms = True
    answer = await cluster.ask(1, request, 4)
    rows = {row.name: row for row in answer.results[0].configs}
    network, protocol = rows["num.network.threads"], rows["inter.broker.protocol.version"]
    assert (network.value, network.config_source, network.read_only) == ("3", 5, False)
    assert (protocol.value, protocol.config_source, protocol.read_only) == ("2.8-IV1", 5, True)
    none = rows["zookeeper.clientCnxnSocket"]
    assert (none.value, none.config_source, none.synonyms) == (None, 5, [])
    assert "process.roles" not in rows, "Kafka does not describe internal settings"
    assert "x" not in rows
    threads, password = rows["num.io.threads"], rows["ssl.key.password"]
    assert (threads.value, threads.config_source, threads.config_type) == ("8", 4, 3)
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
    assert password.synonyms[0].value is None
    fixed = rows["zookeeper.sync.time.ms"]
    assert (fixed.value, fixed.read_only, threads.read_only) == ("5", True, False)
    error, message = await alter(cluster, 1, BROKER, "1", ("zookeeper.sync.time.ms", 0, "9"))
    assert error == ErrorCode.INVALID_REQUEST
    assert message == "this broker does not act on zookeeper.sync.time.ms"


async def test_settings_without_effect_change_as_in_kafka(cluster: Any) -> None:
    """Thread counts, the cleaner's limits and throttle rates are stored, described and checked."""
    cluster.inactive = {"num.io.threads": "8"}
    await cluster.add(1)
    await cluster.ready()
    rates = "leader.replication.throttled.rate"
    for name, text in (("num.io.threads", "9"), ("log.cleaner.threads", "2"), (rates, "1000")):
        assert (await alter(cluster, 1, BROKER, "1", (name, 0, text)))[0] == 0
    assert (await alter(cluster, 1, BROKER, "", ("num.io.threads", 0, "7")))[0] == 0
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER, "1", None)])
    request.include_synonyms = True
    rows = {row.name: row for row in (await cluster.ask(1, request, 4)).results[0].configs}
    threads = rows["num.io.threads"]
    assert [(each.value, each.source) for each in threads.synonyms] == [
        ("9", 2),
        ("7", 3),
        ("8", 4),
        ("8", 5),
    ]
    assert (rows[rates].value, rows[rates].config_source, rows[rates].read_only) == (
        "1000",
        2,
        False,
    )
    assert rows["log.cleaner.threads"].value == "2"
    for name, text in (("num.io.threads", "0"), (rates, "-1"), ("log.cleaner.threads", "x")):
        error, _ = await alter(cluster, 1, BROKER, "1", (name, 0, text))
        assert error == ErrorCode.INVALID_REQUEST


async def test_an_empty_name_describes_what_was_changed_for_all_brokers(cluster: Any) -> None:
    """As in Kafka, the rows are those of the changes; unknown settings show no value."""
    await cluster.add(1)
    await cluster.ready()
    assert (await alter(cluster, 1, BROKER, "1", ("log.retention.ms", 0, "7")))[0] == 0
    assert (await alter(cluster, 1, BROKER, "1", ("log.retention.msec", 0, "7")))[0] == 0
    for name, text in (("log.retention.ms", "9"), ("num.io.threads", "5"), ("a.plug.in", "x")):
        assert (await alter(cluster, 1, BROKER, "", (name, 0, text)))[0] == 0

    async def described(broker: str) -> dict[str, tuple[str | None, int, bool, int]]:
        request = DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER, broker, None)])
        answer = await cluster.ask(1, request, 4)
        return {
            row.name: (row.value, row.config_source, row.is_sensitive, row.config_type)
            for row in answer.results[0].configs
        }

    assert await described("") == {
        "log.retention.ms": ("9", 3, False, 5),
        "num.io.threads": ("5", 3, False, 3),
        "a.plug.in": (None, 3, True, 0),
    }
    own = await described("1")
    assert own["log.retention.ms"] == ("7", 2, False, 5)
    assert own["log.retention.msec"] == (None, 2, True, 0)


async def test_a_setting_without_a_default_has_no_default_among_its_synonyms(three: Any) -> None:
    """Kafka computes log.retention.ms from a coarser unit: kafkajs expects no synonym."""
    await create(three)
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(TOPIC, "t", ["retention.ms", "compression.type"])]
    )
    request.include_synonyms = True
    rows = {row.name: row for row in (await three.ask(1, request, 4)).results[0].configs}
    assert (rows["retention.ms"].value, rows["retention.ms"].synonyms) == ("604800000", [])
    assert [each.name for each in rows["compression.type"].synonyms] == ["compression.type"]


async def test_the_cleaner_obeys_changed_settings(cluster: Any) -> None:
    """The cleaner's pause and memory can change while a broker runs."""
    await cluster.add(1)
    await cluster.ready()
    for name, text in (("log.cleaner.backoff.ms", "7"), ("log.cleaner.dedupe.buffer.size", "240")):
        assert (await alter(cluster, 1, BROKER, "1", (name, 0, text)))[0] == 0
    config = cluster.brokers[1].broker.config
    assert (config.log_cleaner_backoff_ms, config.log_cleaner_dedupe_buffer_size) == (7, 240)


async def test_a_topic_takes_every_setting_of_kafka(three: Any) -> None:
    """A topic can have each setting of Kafka 2.8; all are described, and lists can be extended."""
    given = {
        "segment.jitter.ms": "5",
        "message.format.version": "2.8-IV1",
        "message.downconversion.enable": "false",
        "preallocate": "true",
        "leader.replication.throttled.replicas": "0:1,1:2",
        "follower.replication.throttled.replicas": "*",
    }
    await create(three, config=given)
    for name, text in given.items():
        assert await told(three, 1, TOPIC, "t", name) == (text, 1)
    name = "leader.replication.throttled.replicas"
    append, subtract = 2, 3
    assert (await alter(three, 1, TOPIC, "t", (name, append, "2:3")))[0] == 0
    assert await told(three, 1, TOPIC, "t", name) == ("0:1,1:2,2:3", 1)
    assert (await alter(three, 1, TOPIC, "t", (name, subtract, "0:1")))[0] == 0
    assert await told(three, 1, TOPIC, "t", name) == ("1:2,2:3", 1)
    for name, text in (
        ("leader.replication.throttled.replicas", "0:x"),
        ("message.format.version", "0.10.2"),
        ("message.format.version", "3.0"),
        ("preallocate", "maybe"),
        ("compression.type", "lz5"),
    ):
        error, message = await alter(three, 1, TOPIC, "t", (name, 0, text))
        assert error == ErrorCode.INVALID_REQUEST, name
        assert name in message
    assert three.brokers[1].broker._logs.logs[TP].config.segment_jitter_ms == 5


async def test_a_listener_without_a_host_advertises_the_machine_s_name(cluster: Any) -> None:
    """A listener without a host advertises the machine's name.

    Kafka's default is `PLAINTEXT://:9092`, but clients need a host that they can connect to.
    """
    await cluster.add(
        1,
        listeners="PLAINTEXT://:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT",
        inter_broker_listener_name="",
    )
    await cluster.ready()
    (endpoint,) = cluster.brokers[1].broker.view.brokers[1].endpoints.values()
    assert endpoint == ("localhost", cluster.brokers[1].port)


async def test_validation_only(three: Any) -> None:
    """With validate_only a change is checked, but not made."""
    await create(three)
    rows = ("segment.ms", 0, "7")
    assert (await alter(three, 1, TOPIC, "t", rows, validate_only=True))[0] == 0
    assert await told(three, 1, TOPIC, "t", "segment.ms") == ("604800000", 5)
    rows = ("segment.ms", 0, "x")
    assert (await alter(three, 1, TOPIC, "t", rows, validate_only=True))[0] != 0


async def test_a_topic_that_allows_it_gets_an_unclean_leader(three: Any) -> None:
    """When a topic's unclean.leader.election.enable is set, the controller elects at once."""
    await create(three, assignment=[3, 2])
    for number in (2, 3):
        await three.brokers[number].stop()
    await three.brokers[2].start()
    await three.ready()
    assert leader(three) == -1
    await alter(three, 1, TOPIC, "t", ("unclean.leader.election.enable", 0, "true"))
    await three.until(lambda: leader(three) == 2)


class Overtaken:
    """A client of ZooKeeper that another one overtakes, right before its first transaction."""

    def __init__(self, zk: ZooKeeper, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._zk = zk
        self._meanwhile: Callable[[], Awaitable[None]] | None = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._zk, name)

    async def multi(self, operations: list[Any]) -> Any:
        if (meanwhile := self._meanwhile) is not None:
            self._meanwhile = None
            await meanwhile()
        return await self._zk.multi(operations)


@pytest.mark.parametrize("before", [{}, {"segment.ms": "7"}])
async def test_a_change_that_another_one_overtakes_keeps_both(
    three: Any, before: dict[str, str]
) -> None:
    """The settings are read again, whether their znode has changed or has been created."""
    zk = three.brokers[1].broker._session.zk
    entity = "topics/overtaken"
    if before:
        await config_changes.alter(zk, entity, lambda _: before, 0)

    def adding(name: str, value: str) -> config_changes.Alter:
        return lambda settings: {**settings, name: value}

    async def meanwhile() -> None:
        await config_changes.alter(zk, entity, adding("retention.ms", "5"), 0)

    late: Any = Overtaken(zk, meanwhile)
    notices = len(await zk.children(zk_paths.CONFIG_CHANGES))
    await config_changes.alter(late, entity, adding("min.insync.replicas", "2"), 0)
    expected = before | {"retention.ms": "5", "min.insync.replicas": "2"}
    assert await config_changes.read(zk, entity) == expected
    assert len(await zk.children(zk_paths.CONFIG_CHANGES)) == notices + 2
