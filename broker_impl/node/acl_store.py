"""ACLs in ZooKeeper: the znodes of Kafka's AclAuthorizer, and the notifications of changes.

Literal resources are in ``/kafka-acl/Type/NAME`` and announced in ``/kafka-acl-changes`` as
``TYPE:NAME``; prefixed ones are in ``/kafka-acl-extended/prefixed/Type/NAME`` and announced in
``/kafka-acl-extended-changes`` as JSON (KIP-290). A type is ``TransactionalId`` in paths and
``TRANSACTIONAL_ID`` in notifications; Kafka before 2.4 announced types as it writes them in paths.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from broker_impl.node import change_notices, zk_paths
from broker_impl.security.acls import (
    Entry,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
)
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode
from broker_impl.zookeeper.multi import Create, Delete, SetData
from broker_impl.zookeeper.records import Stat

LOG = logging.getLogger(__name__)

CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
_ROOTS: Final = {
    Pattern.LITERAL: "/kafka-acl",
    Pattern.PREFIXED: "/kafka-acl-extended/prefixed",
}
_TYPES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
}
_OPERATIONS: Final = {
    Operation.ALL: "All",
    Operation.READ: "Read",
    Operation.WRITE: "Write",
    Operation.CREATE: "Create",
    Operation.DELETE: "Delete",
    Operation.ALTER: "Alter",
    Operation.DESCRIBE: "Describe",
    Operation.CLUSTER_ACTION: "ClusterAction",
    Operation.DESCRIBE_CONFIGS: "DescribeConfigs",
    Operation.ALTER_CONFIGS: "AlterConfigs",
    Operation.IDEMPOTENT_WRITE: "IdempotentWrite",
}
_PERMISSIONS: Final = {Permission.DENY: "Deny", Permission.ALLOW: "Allow"}
_ANNOUNCED: Final = {
    spelling: kind for kind, name in _TYPES.items() for spelling in (name, kind.name)
}
"""The types of resources by their names in notifications, new and old."""
_OPERATION_OF: Final = {name: operation for operation, name in _OPERATIONS.items()}
_PERMISSION_OF: Final = {name: permission for permission, name in _PERMISSIONS.items()}

Change = Callable[[frozenset[Entry]], frozenset[Entry]]


class EntryZnode(msgspec.Struct, rename="camel"):
    """One entry in a znode."""

    principal: str
    permission_type: str
    operation: str
    host: str


class AclZnode(msgspec.Struct):
    """``/kafka-acl/TYPE/NAME``."""

    acls: list[EntryZnode]
    version: int = 1


class ExtendedChangeZnode(msgspec.Struct, rename="camel"):
    """``/kafka-acl-extended-changes/acl_changes_N``."""

    resource_type: str
    name: str
    pattern_type: str
    version: int = 1


def path(resource: Resource) -> str:
    """Return the path of a resource's entries."""
    return f"{_ROOTS[resource.pattern]}/{_TYPES[resource.type]}/{resource.name}"


def encode(entries: Iterable[Entry]) -> bytes:
    """Return the content of a znode."""
    rows = [
        EntryZnode(
            principal=each.principal,
            permission_type=_PERMISSIONS[each.permission],
            operation=_OPERATIONS[each.operation],
            host=each.host,
        )
        for each in sorted(entries)
    ]
    return zk_paths.encode(AclZnode(acls=rows))


def decode(where: str, data: bytes) -> frozenset[Entry]:
    """Parse the content of a znode; raises BadZnode if it is not valid."""
    try:
        return frozenset(
            Entry(
                row.principal,
                row.host,
                _OPERATION_OF[row.operation],
                _PERMISSION_OF[row.permission_type],
            )
            for row in zk_paths.decode(where, data, AclZnode).acls
        )
    except KeyError as error:
        raise zk_paths.BadZnode(f"{where}: {error} is unknown") from error


async def prepare(zk: ZooKeeper) -> None:
    """Create the parents of all entries and notifications."""
    for root in _ROOTS.values():
        for name in _TYPES.values():
            await zk.ensure_path(f"{root}/{name}")
    await zk.ensure_path(CHANGES)
    await zk.ensure_path(EXTENDED_CHANGES)


async def read_all(zk: ZooKeeper) -> dict[Resource, frozenset[Entry]]:
    """Read the entries of all resources."""
    found = {}
    for pattern, root in _ROOTS.items():
        for kind, type_name in _TYPES.items():
            for name in sorted(await zk.children(f"{root}/{type_name}")):
                resource = Resource(kind, name, pattern)
                found[resource] = await read(zk, resource)
    return found


async def read(zk: ZooKeeper, resource: Resource) -> frozenset[Entry]:
    """Read the entries of one resource; BadZnode stops the broker from serving with a part."""
    try:
        data, _ = await zk.get(path(resource))
    except NoNode:
        return frozenset()
    return decode(path(resource), data)


async def alter(zk: ZooKeeper, resource: Resource, change: Change, now_ms: int) -> frozenset[Entry]:
    """Replace a resource's entries by what ``change`` returns, and announce it; return them.

    A concurrent change is not lost: the entries are read again, and ``change`` is applied to them.
    The write and its announcement are one transaction of ZooKeeper: a right that is taken away by a
    broker that crashes meanwhile is taken away on all brokers, or on none.
    """
    where = path(resource)
    is_newest = False
    while True:
        try:
            data, stat = await zk.get(where)
        except NoNode:
            data, stat = b"", None
        before = decode(where, data) if stat is not None else frozenset()
        after = change(before)
        if after == before:
            if is_newest:
                return after
            # No write shows whether the server of these entries lags behind a change of them.
            await zk.sync(where)
            is_newest = True
            continue
        parent, notice = _notice(resource)
        if await change_notices.announce(zk, _write(where, after, stat), notice):
            await change_notices.forget_old(zk, parent, now_ms)
            return after


def _write(where: str, after: frozenset[Entry], before: Stat | None) -> Create | SetData | Delete:
    """Return the operation that replaces a resource's entries, if they are still those before."""
    if before is None:
        return Create(where, encode(after))
    if after:
        return SetData(where, encode(after), before.version)
    return Delete(where, before.version)


def _notice(resource: Resource) -> tuple[str, Create]:
    """Return the parent of notifications of such resources, and the operation that announces it."""
    kind = resource.type.name
    if resource.pattern is Pattern.LITERAL:
        parent, data = CHANGES, f"{kind}:{resource.name}".encode()
    else:
        change = ExtendedChangeZnode(kind, resource.name, resource.pattern.name)
        parent, data = EXTENDED_CHANGES, zk_paths.encode(change)
    return parent, Create(f"{parent}/acl_changes_", data, sequential=True)


def announced(where: str, data: bytes) -> Resource:
    """Parse a notification of a literal resource; raises BadZnode."""
    kind, colon, name = data.decode(errors="replace").partition(":")
    if not colon or kind not in _ANNOUNCED:
        raise zk_paths.BadZnode(f"{where}: {kind!r} is no type of resource")
    return Resource(_ANNOUNCED[kind], name, Pattern.LITERAL)


def announced_extended(where: str, data: bytes) -> Resource:
    """Parse a notification of a prefixed resource; raises BadZnode."""
    change: Any = zk_paths.decode(where, data, ExtendedChangeZnode)
    if change.resource_type not in _ANNOUNCED or change.pattern_type != Pattern.PREFIXED.name:
        raise zk_paths.BadZnode(f"{where}: the type or the pattern is unknown")
    return Resource(_ANNOUNCED[change.resource_type], change.name, Pattern.PREFIXED)
