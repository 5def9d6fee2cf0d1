"""``stuck``: once all faults are healed, the cluster becomes whole within a bound."""

from collections.abc import Callable, Iterator, Mapping

from checkers.invariants.outdated import Outdated
from checkers.invariants.step import Rules, Step
from checkers.invariants.table import STUCK
from checkers.invariants.unfinished import Unfinished
from checkers.invariants.unmarked import Waiting
from model.snapshot import PartitionState
from model.violation import Violation


class Liveness:
    """Reports partitions that are not whole some time after all faults were healed.

    A partition is whole if the broker that ZooKeeper names leads it, every replica is in the ISR
    and follows, all that was ever committed can be read again, and the followers know the high
    watermark that the leader had early in the calm. And no transaction waits for a marker without a
    reason (:mod:`checkers.invariants.unmarked`), all brokers return to clients what ZooKeeper has,
    and use its settings of topics (:mod:`checkers.invariants.outdated`), and no topic is still
    being deleted, or partition reassigned (:mod:`checkers.invariants.unfinished`). The protocol
    does not promise this, but a run does: its bound must leave time for sessions to expire, dead
    connections to be noticed, ``replica.lag.time.max.ms``, and the replicas to catch up. It is
    judged once for each calm, at the first snapshot after the bound.
    """

    is_pending = False
    """Whether something was missing in the last snapshot that may still come within the bound."""

    def __init__(self, rules: Rules, committed_end: Callable[[str], int | None]) -> None:
        self._bound_s = rules.recovery_s
        self._committed_end = committed_end
        self._waiting = Waiting()
        self._outdated = Outdated()
        self._unfinished = Unfinished()
        self._judged: int | None = None
        self._early: tuple[int, Mapping[str, int]] = (-1, {})
        """When the current calm began, and the leaders' high watermarks in its first snapshot."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        since = step.now.calm_since_ns
        zookeeper = step.now.zookeeper
        self.is_pending = False
        if self._bound_s is None or since is None or since == self._judged or zookeeper is None:
            return
        lacking = self._lacking(step, zookeeper.partitions)
        rules = self._waiting, self._outdated, self._unfinished
        waiting = [wait for rule in rules for wait in rule.step(step)]
        passed_s = (step.now.time_ns - since) / 1e9
        if self._early[0] != since:
            early = passed_s < self._bound_s / 2
            self._early = since, _watermarks(step, zookeeper.partitions) if early else {}
        if passed_s < self._bound_s:
            self.is_pending = bool(lacking or waiting)
            return
        self._judged = since
        for key, state, lacks in lacking:
            yield step.violation(
                STUCK,
                f"{self._bound_s:g} s after the last heal {lacks}",
                key=key,
                brokers=state.replicas,
                epochs=(state.leader_epoch,),
            )
        for wait in waiting:
            if (step.now.time_ns - wait.since_ns) / 1e9 >= self._bound_s / 2:
                yield step.violation(
                    STUCK,
                    f"{self._bound_s:g} s after the last heal {wait.why}",
                    key=wait.key,
                    brokers=(wait.broker,),
                )

    def _lacking(
        self, step: Step, partitions: Mapping[str, PartitionState]
    ) -> list[tuple[str, PartitionState, str]]:
        """Return the partitions that are not whole, each with what it lacks."""
        return [
            (key, state, lacks)
            for key, state in partitions.items()
            if (lacks := self._lacks(step, key, state)) is not None
        ]

    def _lacks(self, step: Step, key: str, state: PartitionState) -> str | None:
        leader = step.now.brokers.get(state.leader)
        replica = None if leader is None else leader.replicas.get(key)
        if replica is None or replica.role != "leader":
            return (
                f"the partition has no leader: ZooKeeper names {state.leader} in epoch "
                f"{state.leader_epoch}"
            )
        if replica.leader_epoch != state.leader_epoch:
            return (
                f"broker {state.leader} leads in epoch {replica.leader_epoch}, but ZooKeeper "
                f"has epoch {state.leader_epoch}"
            )
        if set(state.isr) != set(state.replicas):
            return f"the ISR is {sorted(state.isr)}, but the replicas are {sorted(state.replicas)}"
        for number in state.isr:
            member = step.now.brokers.get(number)
            held = None if member is None else member.replicas.get(key)
            if held is None or held.leader_epoch != state.leader_epoch:
                return f"broker {number} is in the ISR, but does not follow the leader"
            wanted = min(self._early[1].get(key, 0), replica.high_watermark)
            if held.high_watermark < wanted:
                return (
                    f"broker {number} has the high watermark {held.high_watermark}, but that of "
                    f"the leader was {wanted} before"
                )
        end = None if step.is_deleted(key) else self._committed_end(key)
        if end is not None and replica.high_watermark < end:
            return (
                f"only offsets below {replica.high_watermark} can be read, but {end} are committed"
            )
        return None


def _watermarks(step: Step, partitions: Mapping[str, PartitionState]) -> dict[str, int]:
    """The high watermarks of the partitions that have a leader, by partition."""
    return {
        key: replica.high_watermark
        for key, state in partitions.items()
        if (leader := step.now.brokers.get(state.leader)) is not None
        and (replica := leader.replicas.get(key)) is not None
        and replica.role == "leader"
    }
