"""ACLs in ZooKeeper, and the requests that change them, on a cluster in one event loop."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import acl_store, zk_paths
from broker_impl.security.acls import (
    Entry,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
)
from broker_impl.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from broker_impl.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from broker_impl.wire.messages.describe_acls_request import DescribeAclsRequest
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.zookeeper.errors import NoNode
from broker_impl.zookeeper.multi import Delete

TOPIC, LITERAL, PREFIXED, READ, WRITE, DENY, ALLOW = 2, 3, 4, 3, 4, 2, 3
SECURED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def creation(name: str = "orders", pattern: int = LITERAL, **changed: Any) -> AclCreation:
    fields: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return AclCreation(**fields | changed)


async def create(cluster: Any, *rows: AclCreation) -> list[int]:
    answer = await cluster.ask(1, CreateAclsRequest(creations=list(rows)), 2)
    return [row.error_code for row in answer.results]


async def describe(cluster: Any, number: int, version: int = 2) -> list[tuple[str, int, int]]:
    """The names, patterns and numbers of entries of all topics that a broker describes."""
    request = DescribeAclsRequest(TOPIC, None, 1 if version else LITERAL, None, None, 1, 1)
    answer = await cluster.ask(number, request, version)
    assert answer.error_code == 0, answer.error_message
    return [(row.resource_name, row.pattern_type, len(row.acls)) for row in answer.resources]


async def test_entries_are_stored_as_kafka_stores_them(cluster: Any) -> None:
    """Literal and prefixed entries have Kafka's znodes and notifications, and are removed again."""
    cluster.inactive = SECURED
    first, _ = await asyncio.gather(cluster.add(1), cluster.add(2))
    await cluster.ready()
    zk = first.broker._session.zk
    denial = creation(permission_type=DENY, operation=WRITE, principal="User:CN=bob,O=x")
    assert await create(cluster, creation(), denial, creation("ord", PREFIXED)) == [0, 0, 0]
    data, _ = await zk.get("/kafka-acl/Topic/orders")
    assert json.loads(data) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:CN=bob,O=x",
                "permissionType": "Deny",
                "operation": "Write",
                "host": "*",
            },
            {
                "principal": "User:alice",
                "permissionType": "Allow",
                "operation": "Read",
                "host": "*",
            },
        ],
    }
    data, _ = await zk.get("/kafka-acl-extended/prefixed/Topic/ord")
    assert json.loads(data)["acls"][0]["principal"] == "User:alice"
    data, _ = await zk.get("/kafka-acl-changes/acl_changes_0000000000")
    assert data == b"TOPIC:orders"
    data, _ = await zk.get("/kafka-acl-extended-changes/acl_changes_0000000000")
    change = {"resourceType": "TOPIC", "name": "ord", "patternType": "PREFIXED", "version": 1}
    assert json.loads(data) == change
    expected = [("ord", PREFIXED, 1), ("orders", LITERAL, 2)]
    assert await describe(cluster, 1) == expected
    assert await describe(cluster, 1, version=0) == [("orders", LITERAL, 2)]
    async with asyncio.timeout(10):
        while await describe(cluster, 2) != expected:
            pass
    everything = DeleteAclsFilter(TOPIC, "orders", 2, None, None, 1, 1)
    answer = await cluster.ask(1, DeleteAclsRequest(filters=[everything]), 2)
    assert len(answer.filter_results[0].matching_acls) == 3
    assert await zk.exists("/kafka-acl/Topic/orders") is None
    assert await zk.children("/kafka-acl-extended/prefixed/Topic") == []
    async with asyncio.timeout(10):
        while await describe(cluster, 2):
            pass


async def test_entries_apply_after_a_restart(cluster: Any) -> None:
    """A broker knows the entries of ZooKeeper before it serves its first client."""
    cluster.inactive = SECURED | {"super.users": "User:other"}
    cluster.inactive |= {"allow.everyone.if.no.acl.found": "true"}
    running = await cluster.add(1)
    await cluster.ready()
    denial = creation(principal="User:*", operation=8, permission_type=DENY)
    assert await create(cluster, denial) == [0]
    await running.stop()
    await running.start()
    await cluster.ready()
    topics = [MetadataRequestTopic(name=name) for name in ("orders", "others")]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = await cluster.ask(1, request, 9)
    errors = {row.name: row.error_code for row in answer.topics}
    assert errors == {
        "orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "others": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_a_change_that_cannot_be_announced_is_not_made(cluster: Any) -> None:
    """An entry and its announcement are written together, or neither is."""
    cluster.inactive = SECURED
    running = await cluster.add(1)
    await cluster.ready()
    zk = running.broker._session.zk
    assert await create(cluster, creation("kept")) == [0]
    for number in await zk.children("/kafka-acl-changes"):
        await zk.delete(f"/kafka-acl-changes/{number}")
    await zk.delete("/kafka-acl-changes")
    assert await create(cluster, creation("new")) == [ErrorCode.REQUEST_TIMED_OUT]
    everything = DeleteAclsFilter(TOPIC, None, 1, None, None, 1, 1)
    answer = await cluster.ask(1, DeleteAclsRequest(filters=[everything]), 2)
    assert answer.filter_results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert await zk.children("/kafka-acl/Topic") == ["kept"]
    await zk.create("/kafka-acl-changes")
    assert await create(cluster, creation("new")) == [0]
    assert await zk.children("/kafka-acl/Topic") == ["kept", "new"]


async def test_concurrent_changes_of_one_resource_are_all_made(cluster: Any) -> None:
    """Two brokers that add entries to one resource at the same time lose none of them."""
    cluster.inactive = SECURED
    await asyncio.gather(cluster.add(1), cluster.add(2))
    await cluster.ready()
    requests = [
        cluster.ask(1 + number % 2, CreateAclsRequest([creation(principal=f"User:{number}")]), 2)
        for number in range(10)
    ]
    answers = await asyncio.gather(*requests)
    assert [answer.results[0].error_code for answer in answers] == [0] * 10
    for number in (1, 2):
        async with asyncio.timeout(10):
            while await describe(cluster, number) != [("orders", LITERAL, 10)]:
                pass


@pytest.mark.parametrize(
    "changed",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 4, "name": "cluster"},
        {"pattern": 2},
        {"operation": 1},
        {"operation": 99},
        {"permission_type": 1},
        {"principal": "alice"},
        {"name": ""},
        {"name": "a/b"},
        {"name": ".."},
        {"name": "a\x01"},
    ],
)
async def test_invalid_entries_are_refused(cluster: Any, changed: dict[str, Any]) -> None:
    """An entry that Kafka refuses is an error, and the other entry of the request is created."""
    cluster.inactive = SECURED
    await cluster.add(1)
    await cluster.ready()
    assert await create(cluster, creation(**changed), creation()) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    assert await describe(cluster, 1) == [("orders", LITERAL, 1)]


async def test_without_an_authorizer_there_are_no_acls(cluster: Any) -> None:
    """Without authorizer.class.name each request about ACLs is answered SECURITY_DISABLED."""
    await cluster.add(1)
    await cluster.ready()
    assert await create(cluster, creation()) == [ErrorCode.SECURITY_DISABLED]
    answer = await cluster.ask(1, DescribeAclsRequest(TOPIC, None, 1, None, None, 1, 1), 2)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    everything = DeleteAclsFilter(TOPIC, None, 1, None, None, 1, 1)
    answer = await cluster.ask(1, DeleteAclsRequest(filters=[everything]), 2)
    assert answer.filter_results[0].error_code == ErrorCode.SECURITY_DISABLED


def test_entries_and_notifications_are_read_back() -> None:
    """Every type, operation and permission survives being written and read.

    Kafka announces ``TRANSACTIONAL_ID``, and did announce ``TransactionalId`` before 2.4.
    """
    for kind in list(ResourceType)[1:]:
        for spelling in (kind.name, acl_store._TYPES[kind]):
            literal = Resource(kind, "a:b", Pattern.LITERAL)
            assert acl_store.announced("p", f"{spelling}:a:b".encode()) == literal
            change = acl_store.ExtendedChangeZnode(spelling, "a:b", "PREFIXED")
            found = acl_store.announced_extended("p", zk_paths.encode(change))
            assert found == Resource(kind, "a:b", Pattern.PREFIXED)
    entries = frozenset(
        Entry("User:a", "*", operation, permission)
        for operation in list(Operation)[1:]
        for permission in (Permission.DENY, Permission.ALLOW)
    )
    assert acl_store.decode("p", acl_store.encode(entries)) == entries


@pytest.mark.parametrize("data", [b"Topic", b"Queue:x", b""])
def test_a_damaged_notification_is_an_error(data: bytes) -> None:
    """A notification of another form raises BadZnode, which names its path."""
    with pytest.raises(zk_paths.BadZnode, match="/x"):
        acl_store.announced("/x", data)
    with pytest.raises(zk_paths.BadZnode, match="/x"):
        acl_store.announced_extended("/x", data)
    with pytest.raises(zk_paths.BadZnode, match="/x"):
        acl_store.decode("/x", data)


class _Lagging:
    """A server of ZooKeeper that shows the former entries of a resource until a sync."""

    def __init__(self, former: frozenset[Entry], entries: frozenset[Entry]) -> None:
        self._shown, self._entries = former, entries
        self.written: list[Any] = []

    async def get(self, path: str) -> tuple[bytes, Any]:
        assert path == acl_store.path(ORDERS)
        if not self._shown:
            raise NoNode(path)
        return acl_store.encode(self._shown), SimpleNamespace(version=3)

    async def sync(self, path: str) -> None:
        self._shown = self._entries

    async def multi(self, ops: list[Any]) -> list[None]:
        self.written.append(ops[0])
        return [None] * len(ops)

    async def children(self, path: str) -> list[str]:
        return []


ORDERS = Resource(ResourceType.TOPIC, "orders", Pattern.LITERAL)
ENTRY = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)


async def test_a_change_is_made_although_the_server_lags() -> None:
    """What seems to need no change is read again after a sync: a right that exists is taken."""
    nothing: frozenset[Entry] = frozenset()
    lagging: Any = _Lagging(nothing, frozenset({ENTRY}))
    assert await acl_store.alter(lagging, ORDERS, lambda found: found - {ENTRY}, 0) == nothing
    assert [type(write) for write in lagging.written] == [Delete]
    current: Any = _Lagging(nothing, nothing)
    assert await acl_store.alter(current, ORDERS, lambda found: found - {ENTRY}, 0) == nothing
    assert current.written == []
