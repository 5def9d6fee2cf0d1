"""Quotas of clients in a cluster: stored in ZooKeeper, described, and enforced by every broker."""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from broker_impl.api.quotas.entities import Entity
from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.peers import PeerError, Peers
from broker_impl.wire import batch
from broker_impl.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from broker_impl.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker_impl.node.broker_calls import create

EXACT, DEFAULT, ANY = range(3)
LONG = {"quota_window_num": "2", "quota_window_size_seconds": "1000"}
Name = dict[str, str | None]


async def alter(
    cluster: Any,
    who: Name,
    change: Mapping[str, float | None],
    *,
    number: int = 1,
    version: int = 1,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Set quotas (None: remove) of one entity; return the error and its message."""
    ops = [OpData(key, value or 0.0, value is None) for key, value in change.items()]
    entry = EntryData([EntityData(kind, name) for kind, name in who.items()], ops)
    request = AlterClientQuotasRequest([entry], validate_only)
    [row] = (await cluster.ask(number, request, version)).entries
    assert [(each.entity_type, each.entity_name) for each in row.entity] == list(who.items())
    return row.error_code, row.error_message


async def described(
    cluster: Any, *components: ComponentData, strict: bool = False, number: int = 1
) -> list[tuple[Name, dict[str, float]]]:
    request = DescribeClientQuotasRequest(list(components), strict)
    answer = await cluster.ask(number, request, 1)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]


async def test_quotas_are_stored_as_by_kafka(three: Any) -> None:
    """Quotas are in Kafka's znodes, in Kafka's form, with a notice to all brokers."""
    zk = three.brokers[1].broker._session.zk
    both: Name = {"user": "a b", "client-id": None}
    change = {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    assert (await alter(three, both, change))[0] == 0
    assert (await alter(three, {"client-id": "app"}, {"consumer_byte_rate": 5.0}))[0] == 0
    data, _ = await zk.get("/config/users/a%20b/clients/<default>")
    assert data == (
        b'{"config":{"producer_byte_rate":"1000","request_percentage":"12.5"},"version":1}'
    )
    data, _ = await zk.get("/config/clients/app")
    assert data == b'{"config":{"consumer_byte_rate":"5"},"version":1}'
    notices = sorted(await zk.children(zk_paths.CONFIG_CHANGES))
    data, _ = await zk.get(f"{zk_paths.CONFIG_CHANGES}/{notices[0]}")
    assert data == b'{"entity_path":"users/a%20b/clients/<default>","version":2}'
    expected = [
        ({"client-id": "app"}, {"consumer_byte_rate": 5.0}),
        (both, change),
    ]
    for number in (1, 2, 3):
        assert await described(three, number=number) == expected
    limits = [running.broker._quotas.limits for running in three.brokers.values()]
    await three.until(lambda: all(each.is_active for each in limits))
    await three.until(
        lambda: all(
            each.bound("producer_byte_rate", "a%20b", "x") == (1000, Entity("a%20b", "x"))
            for each in limits
        )
    )


async def test_other_settings_of_a_user_stay(three: Any) -> None:
    """A user's credentials are in the same znode, and a removed quota leaves them there."""
    zk = three.brokers[1].broker._session.zk
    await zk.create("/config/users", b"")
    secret = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x"}}'
    await zk.create("/config/users/u", secret)
    assert await described(three) == []
    await alter(three, {"user": "u"}, {"producer_byte_rate": 7.0, "consumer_byte_rate": 8.0})
    await alter(three, {"user": "u"}, {"producer_byte_rate": None})
    assert await described(three) == [({"user": "u"}, {"consumer_byte_rate": 8.0})]
    await alter(three, {"user": "u"}, {"consumer_byte_rate": None})
    data, _ = await zk.get("/config/users/u")
    assert data == b'{"config":{"SCRAM-SHA-256":"salt=x"},"version":1}'
    assert await described(three) == []
    assert not three.brokers[1].broker._quotas.limits.is_active


async def test_filters(three: Any) -> None:
    """A filter matches as in Kafka: by name, the default, any name; strict, or with other parts."""
    entities: list[Name] = [
        {"client-id": "c"},
        {"client-id": None},
        {"user": "u"},
        {"user": "u", "client-id": "c"},
        {"user": None},
    ]
    for entity in entities:
        await alter(three, entity, {"producer_byte_rate": 1.0})

    async def found(*components: ComponentData, strict: bool = False) -> list[Name]:
        return [entity for entity, _ in await described(three, *components, strict=strict)]

    user = {"user": "u"}
    both = {"user": "u", "client-id": "c"}
    assert len(await found()) == 5
    assert await found(strict=True) == []
    assert await found(ComponentData("user", EXACT, "u")) == [user, both]
    assert await found(ComponentData("user", EXACT, "u"), strict=True) == [user]
    assert await found(ComponentData("user", DEFAULT, None)) == [{"user": None}]
    assert await found(ComponentData("user", ANY, None), strict=True) == [{"user": None}, user]
    assert await found(ComponentData("client-id", ANY, None), strict=True) == [
        {"client-id": None},
        {"client-id": "c"},
    ]
    assert await found(ComponentData("client-id", EXACT, "c")) == [{"client-id": "c"}, both]
    pair = ComponentData("user", EXACT, "u"), ComponentData("client-id", ANY, None)
    assert await found(*pair) == [both]
    assert await found(ComponentData("user", EXACT, "nobody")) == []


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([ComponentData("user", ANY, None)] * 2, ErrorCode.INVALID_REQUEST),
        ([ComponentData("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("ip", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_invalid_filters(
    three: Any, components: list[ComponentData], error: ErrorCode
) -> None:
    """An invalid filter is refused, with a message and without entries."""
    answer = await three.ask(1, DescribeClientQuotasRequest(components), 1)
    assert (answer.error_code, answer.entries) == (error, None)
    assert answer.error_message


@pytest.mark.parametrize(
    ("who", "change"),
    [
        ({}, {"producer_byte_rate": 1.0}),
        ({"user": ""}, {"producer_byte_rate": 1.0}),
        ({"ip": "1.2.3.4"}, {"connection_creation_rate": 1.0}),
        ({"user": "u"}, {"producer_rate": 1.0}),
        ({"user": "u"}, {"producer_byte_rate": 1.5}),
        ({"user": "u"}, {"producer_byte_rate": 0.0}),
        ({"user": "u"}, {"request_percentage": -1.0}),
        ({"user": "u"}, {"request_percentage": float("nan")}),
        ({"user": "u"}, {"consumer_byte_rate": float("inf")}),
    ],
)
async def test_invalid_changes(three: Any, who: Name, change: dict[str, float]) -> None:
    """An invalid change is refused with a message, and nothing is stored."""
    error, message = await alter(three, who, change)
    assert error == ErrorCode.INVALID_REQUEST
    assert message
    assert await described(three) == []


async def test_validation_stores_nothing(three: Any) -> None:
    """With validate_only a change is checked, but not made; v0 is served, too."""
    change = {"controller_mutation_rate": 2.5}
    assert await alter(three, {"user": None}, change, validate_only=True) == (0, None)
    assert await described(three) == []
    assert await alter(three, {"user": None}, change, version=0) == (0, None)
    assert await described(three) == [({"user": None}, change)]


def produced(size: int, acks: int = -1) -> ProduceRequest:
    records = batch.encode_batch([batch.Record(None, bytes(size), 1)])
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name="t", partition_data=data)],
    )


def fetched() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=topics)


@pytest.fixture
async def one(cluster: Any) -> AsyncIterator[Any]:
    """A broker that measures rates over 1,000 s, which no slow machine changes, and a link."""
    await cluster.add(1, **LONG)
    await cluster.ready()
    await create(cluster, replicas=1)
    cluster.link = link(cluster, "test")
    yield cluster
    cluster.link.close()


def link(cluster: Any, client_id: str) -> Peers:
    """One connection of a client."""
    peers = Peers(client_id, {})
    peers.update({1: ("127.0.0.1", cluster.brokers[1].port)})
    return peers


async def throttled_ms(cluster: Any, request: Any, version: int) -> int:
    """The throttle time of a request's response."""
    answer = await cluster.link.request(1, request, version, timeout_s=30)
    return int(answer.throttle_time_ms)


async def is_muted(cluster: Any) -> bool:
    """Whether the next request on the connection waits."""
    try:
        await cluster.link.request(1, MetadataRequest(topics=[]), 9, timeout_s=0.3)
    except PeerError:
        return True
    return False


async def test_a_producer_is_throttled(one: Any) -> None:
    """A response has the throttle time, and the connection's next request waits for it."""
    assert await alter(one, {"client-id": "test"}, {"producer_byte_rate": 10.0}) == (0, None)
    assert await throttled_ms(one, produced(6000), 9) == 0
    delay = await throttled_ms(one, produced(6000), 9)
    assert 150_000 < delay < 250_000, "12,000 bytes are a fifth more than those of 1,000 s"
    assert await is_muted(one)


async def test_a_connection_is_muted_for_the_throttle_time(one: Any) -> None:
    """The connection goes on once the throttle time is over; without a quota it is never muted."""
    await alter(one, {"client-id": "test"}, {"producer_byte_rate": 1000.0})
    begin = time.monotonic()
    delay = await throttled_ms(one, produced(1_000_200), 9)
    assert 100 <= delay < 1000
    await one.link.request(1, MetadataRequest(topics=[]), 9, timeout_s=30)
    assert time.monotonic() - begin >= delay / 1000
    await alter(one, {"client-id": "test"}, {"producer_byte_rate": None})
    assert await throttled_ms(one, produced(20_000), 9) == 0


async def test_a_consumer_is_throttled(one: Any) -> None:
    """A fetch returns no more records than the quota permits at once, and counts with its size."""
    for _ in range(3):
        await throttled_ms(one, produced(6000), 9)
    await alter(one, {"user": None}, {"consumer_byte_rate": 10.0})
    first = await one.link.request(1, fetched(), 11, timeout_s=30)
    assert first.throttle_time_ms == 0
    assert 6000 < len(first.responses[0].partitions[0].records) < 10_000
    assert await throttled_ms(one, fetched(), 11) > 100_000
    assert await is_muted(one)


async def test_only_the_client_with_a_quota_waits(one: Any) -> None:
    """Another client's requests are answered while one is muted."""
    await alter(one, {"client-id": "test"}, {"producer_byte_rate": 1.0})
    assert await throttled_ms(one, produced(1500), 9) > 100_000
    other = link(one, "other")
    try:
        answer = await other.request(1, produced(5000), 9, timeout_s=30)
    finally:
        other.close()
    assert answer.throttle_time_ms == 0


async def test_a_default_of_the_broker_applies(cluster: Any) -> None:
    """``quota.producer.default`` applies to clients that have no other quota."""
    await cluster.add(1, quota_producer_default="1", **LONG)
    await cluster.ready()
    await create(cluster, replicas=1)
    answer = await cluster.ask(1, produced(1500), 9)
    assert answer.throttle_time_ms > 100_000
    await alter(cluster, {"client-id": "test"}, {"producer_byte_rate": 1e9})
    answer = await cluster.ask(1, produced(1500), 9)
    assert answer.throttle_time_ms == 0
