"""Dynamic settings of topics and brokers, on three running brokers."""

from typing import Any

import pytest

from broker_impl.errors import ErrorCode
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
        (TOPIC, "t", "retention.ms", "long", ErrorCode.INVALID_CONFIG),
        (BROKER, "1", "broker.id", "7", ErrorCode.INVALID_CONFIG),
        (BROKER, "2", "log.retention.ms", "7", ErrorCode.INVALID_REQUEST),
        (8, "1", "root", "DEBUG", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_is_refused(
    three: Any, kind: int, name: str, key: str, value: str, error: ErrorCode
) -> None:
    """A refused change leaves all settings as they were."""
    await create(three)
    assert (await alter(three, 1, kind, name, (key, 0, value)))[0] == error
    assert await told(three, 1, TOPIC, "t", "retention.ms") == ("604800000", 5)


async def test_settings_without_effect_are_described_as_they_were_given(cluster: Any) -> None:
    """Settings that the broker accepts but does not act on are described as given in the file.

    They are read-only, and hidden where Kafka has a password. The broker refuses to change them,
    and does not describe those that were not given.
    """
    cluster.inactive = {"num.io.threads": "8", "ssl.key.password": "secret", "x": "1"}
    await cluster.add(1)
    await cluster.ready()
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER, "1", None)])
    request.include_synonyms = True
    answer = await cluster.ask(1, request, 4)
    rows = {row.name: row for row in answer.results[0].configs}
    assert "num.network.threads" not in rows
    assert "x" not in rows
    threads, password = rows["num.io.threads"], rows["ssl.key.password"]
    assert (threads.value, threads.config_source, threads.config_type) == ("8", 4, 3)
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
    assert password.synonyms[0].value is None
    assert threads.read_only
    error, message = await alter(cluster, 1, BROKER, "1", ("num.io.threads", 0, "9"))
    assert error == ErrorCode.INVALID_CONFIG
    assert message == "this broker does not act on num.io.threads"


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
