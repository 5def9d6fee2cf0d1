"""Passes the members of simulated groups to `checkers.invariants`: how long they stay there.

`stored_members` judges what a coordinator has loaded, and `rebalances` when it removes members.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from broker_impl.coordinator.groups.group import Group
from broker_impl.errors import ErrorCode
from broker_impl.node.broker import Broker
from broker_impl.replica.partition import Partition
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.leave_group_request import LeaveGroupRequest
from broker_impl.wire.messages.offset_commit_request import OffsetCommitRequest
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from checkers.invariants import coordinated
from checkers.invariants.coordinated import NONE, REBALANCE, STABLE, Said
from checkers.invariants.rebalances import Rebalances, Sight, Timed
from checkers.invariants.stored_members import StoredMembers
from harness.cluster.observe.coordinator_logs import epoch_at, last_before, led
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_coordinators import group_state

OnAnswer = Callable[[Any], None]


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


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

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case OffsetCommitRequest() | LeaveGroupRequest():
                self._arrived(request)
                return None
            case HeartbeatRequest():
                group, at_s = self._arrived(request), self._clock()
                return None if group is None else lambda answer: self._beat(request, at_s, answer)
            case SyncGroupRequest():
                self._arrived(request)
                return lambda answer: self._synced(request, answer)
            case JoinGroupRequest():
                group = self._arrived(request)
                if group is None or not request.group_instance_id:
                    return None
                generation, instance = group.generation, request.group_instance_id
                if not request.member_id:
                    self._stored.joins(request.group_id, instance, generation)
                return lambda answer: self._rejoined(request, generation, answer)
            case _:
                return None

    def _arrived(self, request: Any) -> Group | None:
        """Judge a group at the arrival of a request; return it if this broker coordinates it."""
        name = request.group_id
        found, home = self._broker.groups.find(name), self._home(name)
        if isinstance(found, ErrorCode):
            return None
        if home is not None:
            group = None if found is None else group_state(found)
            why = self._stored.judge(name, home.leader_epoch, group, partial(epoch_at, home))
            if why is not None:
                self._found("members-as-stored", name, why)
        if found is None:
            self._rebalances.pop(name, None)
        else:
            self._look(found, request)
        return found

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
        """A static member that joined has its new id from now on, if no rebalance was needed."""
        group = self._broker.groups.find(request.group_id)
        instance = request.group_instance_id or ""
        if (
            isinstance(group, Group)
            and answer.generation_id == generation == group.generation
            and group.static.get(instance) == answer.member_id
        ):
            self._acknowledged(request, answer, instance)

    def _acknowledged(
        self, request: SyncGroupRequest | JoinGroupRequest, answer: Any, instance: str | None
    ) -> None:
        name = request.group_id
        group, home = self._broker.groups.find(name), self._home(name)
        if answer.error_code or not isinstance(group, Group) or home is None:
            return
        last = last_before(home, home.high_watermark)
        if group.state.value == STABLE and last is not None:
            self._stored.acknowledged(name, home.leader_epoch, group_state(group), last, instance)

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
