"""``laggard-leaves-isr``: a leader removes followers from the ISR that have lagged for too long.

With acks=all, producers wait for all members of the ISR. A leader that keeps a follower which it
cannot reach blocks them for as long as the fault lasts (``replica.lag.time.max.ms``, KAFKA-1546).

A leader checks the ISR at intervals, and notes when it has found that no member lags. This is
compared with the follower's own log, by the leader's own clock: neither a pause nor a slow clock of
the leader matters. A check while a change of the ISR is pending is not noted. A follower may lack
records that it had before a restart, and that the leader knows of by earlier fetches. So it is
judged only by records that the leader has appended since both of them run.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkers.invariants.step import Rules, Step
from model.snapshot import ReplicaState
from model.violation import Violation


class _Term(NamedTuple):
    """What must stay the same while a follower is judged."""

    leader: int
    leader_life: int
    leader_epoch: int
    state_version: int
    follower: int
    follower_life: int


class _Known(NamedTuple):
    """What is known of a follower and its leader since the term began."""

    first_end: int
    """The end of the leader's log in the first snapshot."""
    end: int | None = None
    """A later end, which the follower has not reached since; None: it does not lag."""
    noted_at: float = 0.0
    """The leader's last note when its log had that end."""
    since: float | None = None
    """The leader's first note after that."""


class Laggards:
    """Follows each member of an ISR."""

    def __init__(self, rules: Rules) -> None:
        self._lag_max_s = rules.lag_max_s
        self._known: dict[str, dict[_Term, _Known]] = {}
        """By partition."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for key in step.touched:
            before, held = self._known.pop(key, {}), dict(step.replicas(key))
            now = self._known[key] = {
                term: _followed(before.get(term), held[term.leader], held[term.follower])
                for term in _terms(step, held)
            }
            for term, known in now.items():
                lasted_s = _lasted_s(known, held[term.leader])
                if lasted_s > self._lag_max_s:
                    yield step.violation(
                        "laggard-leaves-isr",
                        f"broker {term.leader} has found that no member of the ISR lags, but for"
                        f" {lasted_s:.3f} s broker {term.follower} has not had all records before"
                        f" {known.end}",
                        key=key,
                        offset=known.end,
                        brokers=(term.leader, term.follower),
                        epochs=(term.leader_epoch,),
                    )


def _terms(step: Step, held: Mapping[int, ReplicaState]) -> Iterator[_Term]:
    """Yield each follower that its leader has in the ISR; both run."""
    for number, leader in held.items():
        if leader.role != "leader":
            continue
        for member in leader.isr:
            if member != number and member in held:
                yield _Term(
                    number,
                    step.now.brokers[number].life,
                    leader.leader_epoch,
                    leader.state_version,
                    member,
                    step.now.brokers[member].life,
                )


def _followed(before: _Known | None, leader: ReplicaState, follower: ReplicaState) -> _Known:
    if before is None:
        return _Known(leader.log_end)
    if before.end is None or follower.log_end >= before.end:
        if leader.log_end > max(before.first_end, follower.log_end):
            return _Known(before.first_end, leader.log_end, leader.in_sync_at)
        return _Known(before.first_end)
    if before.since is None and leader.in_sync_at > before.noted_at:
        return before._replace(since=leader.in_sync_at)
    return before


def _lasted_s(known: _Known, leader: ReplicaState) -> float:
    """Return for how long a leader has tolerated the lag of a follower, by its own clock."""
    return 0.0 if known.since is None else leader.in_sync_at - known.since
