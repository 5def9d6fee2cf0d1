"""The rules of ACLs, as in Kafka's AclAuthorizer (KIP-11, KIP-290, KIP-679), without any storage.

An entry allows or denies an operation on a resource to a principal from a host. A resource's
entries are those of its own name, those of every prefix of its name, and those of the name ``*``. A
matching DENY decides before any ALLOW.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""The literal name of all resources of a type, and the host of all hosts."""
EVERYONE: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


class ResourceType(IntEnum):
    """The types of resources, with the numbers of the protocol."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6


class Pattern(IntEnum):
    """How the name of a resource is compared; ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """The operations, with the numbers of the protocol; ANY is for filters only."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Permission(IntEnum):
    """Whether an entry allows or denies; ANY is for filters only."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class Resource(NamedTuple):
    """The resources to which entries apply: one name, or all names with a prefix."""

    type: ResourceType
    name: str
    pattern: Pattern


class Entry(NamedTuple):
    """One entry of an ACL."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class Binding(NamedTuple):
    """An entry and its resource."""

    resource: Resource
    entry: Entry


class Filter(NamedTuple):
    """Which bindings a request means; None, and ANY, mean all."""

    type: ResourceType
    name: str | None
    pattern: Pattern
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def matches(self, binding: Binding) -> bool:
        """Whether a binding is meant."""
        resource, entry = binding
        return (
            self.type in (ResourceType.ANY, resource.type)
            and self._matches_name(resource)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def _matches_name(self, resource: Resource) -> bool:
        if self.pattern is Pattern.MATCH:
            return self.name is None or applies(resource, self.name)
        return self.pattern in (Pattern.ANY, resource.pattern) and self.name in (
            None,
            resource.name,
        )


class Subject(NamedTuple):
    """The client that requests an operation."""

    principal: str
    host: str


_IMPLIED_BY: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (
        Operation.DESCRIBE,
        Operation.READ,
        Operation.WRITE,
        Operation.DELETE,
        Operation.ALTER,
    ),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}
"""The operations that an ALLOW of one of several others includes."""


def applies(resource: Resource, name: str) -> bool:
    """Whether the entries of a resource apply to this name (of the same type)."""
    if resource.pattern is Pattern.PREFIXED:
        return name.startswith(resource.name)
    return resource.name in (name, WILDCARD)


def matches(
    entry: Entry, subject: Subject, operations: Iterable[Operation], permission: Permission
) -> bool:
    """Whether an entry has this permission for the subject and one of these operations."""
    return (
        entry.permission is permission
        and entry.principal in (subject.principal, EVERYONE)
        and entry.host in (subject.host, WILDCARD)
        and (entry.operation is Operation.ALL or entry.operation in operations)
    )


def decides(
    entries: Iterable[Entry], subject: Subject, operation: Operation, *, without_entries: bool
) -> bool:
    """Whether the entries of a resource allow an operation.

    without_entries: the decision if there are none (``allow.everyone.if.no.acl.found``).
    """
    found = tuple(entries)
    if not found:
        return without_entries
    implied = _IMPLIED_BY.get(operation, (operation,))
    return not any(matches(each, subject, (operation,), Permission.DENY) for each in found) and any(
        matches(each, subject, implied, Permission.ALLOW) for each in found
    )


class Acls:
    """All entries by resource, arranged so that those of one name are found without a search."""

    def __init__(self) -> None:
        self._entries: dict[Resource, frozenset[Entry]] = {}
        self._longest_prefix: dict[ResourceType, int] = {}

    def replace(self, resource: Resource, entries: Iterable[Entry]) -> None:
        """Replace the entries of a resource."""
        kept = frozenset(entries)
        if not kept:
            self._entries.pop(resource, None)
            return
        self._entries[resource] = kept
        if resource.pattern is Pattern.PREFIXED:
            longest = self._longest_prefix.get(resource.type, 0)
            self._longest_prefix[resource.type] = max(longest, len(resource.name))

    def replace_all(self, entries: Mapping[Resource, Iterable[Entry]]) -> None:
        """Replace everything."""
        self._entries, self._longest_prefix = {}, {}
        for resource, own in entries.items():
            self.replace(resource, own)

    def of(self, resource: Resource) -> frozenset[Entry]:
        """Return the entries of exactly this resource."""
        return self._entries.get(resource, frozenset())

    def bindings(self) -> Iterator[Binding]:
        """Yield all bindings, sorted."""
        for resource in sorted(self._entries):
            for entry in sorted(self._entries[resource]):
                yield Binding(resource, entry)

    def applying(self, kind: ResourceType, name: str) -> Iterator[Entry]:
        """Yield the entries that apply to a name."""
        yield from self.of(Resource(kind, name, Pattern.LITERAL))
        if name != WILDCARD:
            yield from self.of(Resource(kind, WILDCARD, Pattern.LITERAL))
        for length in range(min(len(name), self._longest_prefix.get(kind, -1)) + 1):
            yield from self.of(Resource(kind, name[:length], Pattern.PREFIXED))

    def allow_any(self, kind: ResourceType, subject: Subject, operation: Operation) -> bool:
        """Whether the subject may perform the operation on at least one name (KIP-679)."""
        allowed: list[Resource] = []
        denied: list[Resource] = []
        for resource, entry in self.bindings():
            if resource.type is kind and matches(entry, subject, (operation,), entry.permission):
                (allowed if entry.permission is Permission.ALLOW else denied).append(resource)
        return any(not any(_covers(no, yes) for no in denied) for yes in allowed)

    def deny_all(self, kind: ResourceType, subject: Subject, operation: Operation) -> bool:
        """Whether an entry denies the operation on every name."""
        return any(
            matches(entry, subject, (operation,), Permission.DENY)
            for entry in self.of(Resource(kind, WILDCARD, Pattern.LITERAL))
        )


def _covers(denied: Resource, allowed: Resource) -> bool:
    """Whether a denied resource contains every name of an allowed one."""
    if denied.pattern is Pattern.PREFIXED:
        return allowed != Resource(allowed.type, WILDCARD, Pattern.LITERAL) and (
            allowed.name.startswith(denied.name)
        )
    return denied.name == WILDCARD or (
        allowed.pattern is Pattern.LITERAL and allowed.name == denied.name
    )


class Authorizer:
    """Decides about requests, from the ACLs and from settings."""

    def __init__(self, super_users: Iterable[str], *, allow_without_acl: bool) -> None:
        self.acls = Acls()
        self._super_users = frozenset(super_users)
        self._allow_without_acl = allow_without_acl

    def allows(self, subject: Subject, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the subject may perform the operation on this resource."""
        return subject.principal in self._super_users or decides(
            self.acls.applying(kind, name),
            subject,
            operation,
            without_entries=self._allow_without_acl,
        )

    def allows_any(self, subject: Subject, operation: Operation, kind: ResourceType) -> bool:
        """Whether the subject may perform the operation on some resource of this type."""
        if subject.principal in self._super_users:
            return True
        if self._allow_without_acl:
            return not self.acls.deny_all(kind, subject, operation)
        return self.acls.allow_any(kind, subject, operation)


def super_users(text: str) -> tuple[str, ...]:
    """Parse ``super.users``: principals, separated by semicolons."""
    return tuple(part.strip() for part in text.split(";") if part.strip())
