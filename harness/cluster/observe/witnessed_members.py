"""Passes the members of simulated groups to `checkers.invariants`: how long they stay there.

`stored_members` judges what a coordinator has loaded, and `rebalances` when it removes members. No
answer shows that the record of a group without members is stored. The coordinator appends it when
the last member is removed, which succeeds if the leadership and the ISR are the same before and
after it. The witness waits until all that the coordinator's log had then is committed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import Member
from broker_impl.errors import ErrorCode
from broker_impl.node.broker import Broker
from broker_impl.replica.partition import Partition
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leave_group_request import LeaveGroupRequest
from broker_impl.wire.messages.offset_commit_request import OffsetCommitRequest
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from checkers.invariants import coordinated
from checkers.invariants.coordinated import EMPTY, NONE, REBALANCE, STABLE, Said
from checkers.invariants.rebalances import Rebalances, Sight, Timed
from checkers.invariants.stored_members import NO_CONTENT, Content, Details, StoredMembers
from harness.cluster.observe.coordinator_logs import (
    Leading,
    epoch_at,
    last_before,
    leadership,
    led,
)
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_coordinators import group_state

OnAnswer = Callable[[Any], None]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class _Sighted(NamedTuple):
    """A group that had members, and the leadership of its coordinator then."""

    group: Group
    leading: Leading
    members: frozenset[str]


class _Emptied(NamedTuple):
    """A group that has lost its last members, and whose record is perhaps not committed yet."""

    now: coordinated.Group
    members: frozenset[str]
    """The members that it had."""
    leading: Leading
    end: int
    """The end of the coordinator's log after the record."""


class MemberWitness:
    """Sees the requests of members to one life of a broker, and their answers.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        stored: what all brokers have acknowledged to members.
        clock: returns the time of the broker's event loop in seconds.
    """

    def __init__(
        self,
        reporter: Reporter,
        broker: Broker,
        stored: StoredMembers,
        *,
        clock: Callable[[], float] = _loop_time,
    ) -> None:
        self._reporter = reporter
        self._broker = broker
        self._stored = stored
        self._clock = clock
        self._rebalances: dict[str, tuple[Group, Rebalances]] = {}
        """The rebalances of each group, since this broker has created or loaded it."""
        self._sighted: dict[str, _Sighted] = {}
        """The groups that had members when a request for them was last seen."""
        self._emptied: dict[str, _Emptied] = {}
        self._is_loading = False
        """Whether groups are perhaps loaded that have not been judged since."""

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        if self._emptied:
            self._confirm()
        if self._is_loading:
            self._loaded()
        match request:
            case OffsetCommitRequest():
                self._arrived(request)
                return None
            case LeaderAndIsrRequest():
                return self._led
            case LeaveGroupRequest():
                group = self._arrived(request)
                if group is None:
                    return None
                return partial(self._left, request, group, group_state(group))
            case HeartbeatRequest():
                group, at_s = self._arrived(request), self._clock()
                return None if group is None else lambda answer: self._beat(request, at_s, answer)
            case SyncGroupRequest():
                self._arrived(request)
                if request.assignments:
                    self._stored.assigns(request.group_id, request.generation_id)
                return lambda answer: self._synced(request, answer)
            case DeleteGroupsRequest():
                joined = {name: self._stored.joined(name) for name in request.groups_names}
                return lambda answer: self._deleted(joined, answer)
            case JoinGroupRequest():
                group = self._arrived(request)
                self._stored.begins(request.group_id)
                if group is None or not request.group_instance_id:
                    return None
                generation, instance = group.generation, request.group_instance_id
                if not request.member_id:
                    self._stored.joins(request.group_id, instance, generation)
                return lambda answer: self._rejoined(request, generation, answer)
            case _:
                return None

    def _led(self, answer: Any) -> None:
        """The broker has perhaps become a coordinator, and loads groups."""
        self._is_loading = True

    def _loaded(self) -> None:
        """Judge all groups, once they are loaded."""
        if not self._broker.groups.is_loading:
            self._is_loading = False
            for name in self._stored.names:
                self._judge(name, self._broker.groups.find(name))

    def _judge(self, name: str, found: Group | ErrorCode | None) -> None:
        """Judge whether a group has the members that it must have."""
        home = self._home(name)
        if isinstance(found, ErrorCode) or home is None:
            return
        group = None if found is None else group_state(found)
        content = NO_CONTENT if found is None else _content(found)
        at = partial(epoch_at, home)
        why = self._stored.judge(name, home.leader_epoch, group, at, content)
        if why is not None:
            self._found("members-as-stored", name, why)

    def _arrived(self, request: Any) -> Group | None:
        """Judge a group at the arrival of a request; return it if this broker coordinates it."""
        name = request.group_id
        found = self._broker.groups.find(name)
        if isinstance(found, ErrorCode):
            return None
        self._judge(name, found)
        if found is None:
            self._rebalances.pop(name, None)
        else:
            self._look(found, request)
            self._count(found)
        return found

    def _left(
        self, request: LeaveGroupRequest, group: Group, before: coordinated.Group, answer: Any
    ) -> None:
        if self._broker.groups.find(request.group_id) is not group:
            return
        rows = [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members]
        named = Counter(instance for _, instance, _ in rows if instance is not None)
        for member, instance, code in rows or [(request.member_id, None, NONE)]:
            is_once = instance is None or named[instance] == 1
            if not answer.error_code and not code and is_once:
                why = coordinated.stays(before, group_state(group), member, instance)
                if why is not None:
                    self._found("left-as-acknowledged", group.name, why)
        self._count(group)

    def _deleted(self, joined: Mapping[str, int], answer: Any) -> None:
        for row in answer.results:
            name = row.group_id
            home = None if row.error_code else self._home(name)
            last = None if home is None else last_before(home, home.high_watermark)
            if home is not None and last is not None:
                self._stored.deleted(name, home.leader_epoch, last, joined[name])

    def _count(self, group: Group) -> None:
        """Note whether a group has members, or has lost the last ones since."""
        name, state = group.name, group_state(group)
        leading = leadership(self._broker, self._broker.groups.partition_of(name))
        was = self._sighted.pop(name, None)
        if leading is None:
            return
        if state.members:
            self._sighted[name] = _Sighted(group, leading, frozenset(state.members))
        elif (
            was is not None
            and (was.group, was.leading, state.state) == (group, leading, EMPTY)
            and len(leading.isr) >= leading.partition.isr_min
        ):
            end = leading.partition.log.end_offset
            self._emptied[name] = _Emptied(state, was.members, leading, end)

    def _confirm(self) -> None:
        """Look which groups without members are stored since."""
        for name, each in list(self._emptied.items()):
            home, partition = self._broker.groups.partition_of(name), each.leading.partition
            if leadership(self._broker, home) != each.leading:
                del self._emptied[name]
            elif partition.high_watermark >= each.end:
                del self._emptied[name]
                last = last_before(partition, each.end)
                if last is not None:
                    epoch = each.leading.epoch
                    self._stored.emptied(name, epoch, each.now, each.members, last)

    def _look(self, group: Group, request: Any) -> None:
        """Judge whether a group has kept to its timeouts, and note a request to it."""
        known = self._rebalances.get(group.name)
        if known is None or known[0] is not group:
            delay_s = group.config.initial_rebalance_delay_ms / 1000
            known = self._rebalances[group.name] = group, Rebalances(delay_s)
        rebalances, state = known[1], group_state(group)
        sight = Sight(self._clock(), state.state, state.generation, _timed(group))
        for is_late, why in rebalances.look(sight):
            invariant = "rebalance-in-time" if is_late else "removed-after-timeout"
            self._found(invariant, group.name, why)
        match request:
            case SyncGroupRequest():
                said = Said(request.member_id, request.generation_id, request.group_instance_id)
                if coordinated.on_sync(state, said) is None and _has_protocol(group, request):
                    rebalances.syncs(request.member_id)
            case JoinGroupRequest():
                # Before v1, the session timeout is the timeout of rebalances, too.
                own_ms, session_ms = request.rebalance_timeout_ms, request.session_timeout_ms
                rebalances.joins((session_ms if own_ms < 0 else own_ms) / 1000)
            case LeaveGroupRequest():
                rebalances.leaves(request.member_id)
                for row in request.members:
                    holder = group.static.get(row.group_instance_id or "", row.member_id)
                    rebalances.leaves(row.member_id or holder)
            case _:
                pass

    def _beat(self, request: HeartbeatRequest, at_s: float, answer: Any) -> None:
        known = self._rebalances.get(request.group_id)
        if known is not None and answer.error_code in (NONE, REBALANCE):
            known[1].beats(request.member_id, at_s)

    def _synced(self, request: SyncGroupRequest, answer: Any) -> None:
        known = self._rebalances.get(request.group_id)
        if known is not None and not answer.error_code:
            known[1].assigned(request.member_id, request.generation_id)
        self._acknowledged(request, answer, None)

    def _rejoined(self, request: JoinGroupRequest, generation: int, answer: Any) -> None:
        """A static member that joined without an id has its new one from now on, if no rebalance
        was needed."""
        group = self._broker.groups.find(request.group_id)
        instance = request.group_instance_id or ""
        if (
            isinstance(group, Group)
            and answer.generation_id == generation == group.generation
            and group.static.get(instance) == answer.member_id
        ):
            self._acknowledged(request, answer, None if request.member_id else instance)

    def _acknowledged(
        self, request: SyncGroupRequest | JoinGroupRequest, answer: Any, instance: str | None
    ) -> None:
        name = request.group_id
        group, home = self._broker.groups.find(name), self._home(name)
        if answer.error_code or not isinstance(group, Group) or home is None:
            return
        last = last_before(home, home.high_watermark)
        if group.state.value == STABLE and last is not None:
            state, content = group_state(group), _content(group)
            self._stored.acknowledged(name, home.leader_epoch, state, last, instance, content)

    def _home(self, group: str) -> Partition | None:
        """Return the partition of the group's records, if this broker leads it."""
        return led(self._broker, self._broker.groups.partition_of(group))

    def _found(self, invariant: str, name: str, why: str) -> None:
        self._reporter.found(invariant, why, about=f"group {name}")


def _has_protocol(group: Group, request: SyncGroupRequest) -> bool:
    """Whether the protocol that a member names, if it names one, is the group's."""
    names = request.protocol_type in (None, group.protocol_type)
    return names and request.protocol_name in (None, group.protocol)


def _timed(group: Group) -> dict[str, Timed]:
    return {
        member.id: Timed(
            member.instance_id,
            member.session_timeout_ms / 1000,
            member.rebalance_timeout_ms / 1000,
            member.joining is not None,
        )
        for member in group.members.values()
    }


def _content(group: Group) -> Content:
    """Return what the record of a group determines of the group, as its coordinator has it."""
    details = {member.id: details_of(member, group.protocol) for member in group.members.values()}
    return Content(details, group.subscribed)


def details_of(member: Member, protocol: str | None) -> Details:
    """Return what the record of a group that uses this protocol says of a member."""
    return Details(
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.protocols.get(protocol or "", b""),
        member.assignment,
    )
