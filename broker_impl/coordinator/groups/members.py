"""A member as its group tracks it, and groups as plain values for DescribeGroups."""

from dataclasses import dataclass

import msgspec

from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.groups.events import Join


@dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """Kafka's settings for group coordinators."""

    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = 2**31 - 1
    offsets_retention_ms: int = 7 * 86_400_000


class Member:
    """A member as its group tracks it."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline",
        "id",
        "instance_id",
        "is_new",
        "joining",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(self, member_id: str, join: Join) -> None:
        self.id = member_id
        self.instance_id = join.instance_id
        self.client_id = join.client_id
        self.client_host = join.client_host
        self.assignment = b""
        self.deadline = rules.NEVER
        """The loop time, in seconds, at which a silent member is removed."""
        self.is_new = True
        self.joining: int | None = None
        """The ticket of its parked JoinGroup request."""
        self.syncing: int | None = None
        self.update(join)

    def update(self, join: Join) -> None:
        """Take over the protocols and timeouts of a member that joins again."""
        self.rebalance_timeout_ms = join.rebalance_timeout_ms
        self.session_timeout_ms = join.session_timeout_ms
        self.protocols = dict(join.protocols)

    def restart_session(self, now: float) -> None:
        """Restart the session timeout: the member has sent a request."""
        self.is_new = False
        self.deadline = now + self.session_timeout_ms / 1000

    @property
    def watched_until(self) -> float:
        """The member's deadline; a member whose request is parked does not count as silent."""
        waits = self.joining is not None or self.syncing is not None
        return rules.NEVER if waits and not self.is_new else self.deadline


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """A member, as DescribeGroups reports it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: bytes
    assignment: bytes


class GroupSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A group's state as plain values, as DescribeGroups reports it."""

    group: str
    state: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[MemberView, ...]
