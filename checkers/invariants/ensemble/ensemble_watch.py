"""All invariants of an ensemble together, as one fold."""

from collections.abc import Iterator

from checkers.invariants.ensemble.commits import CommittedOrder, Completeness, Deliveries
from checkers.invariants.ensemble.durability import Acknowledgements, Durable
from checkers.invariants.ensemble.logs import MemberEpochs, MemberLogs
from checkers.invariants.ensemble.member_step import MemberFold, Members
from checkers.invariants.ensemble.roles import EnsembleLiveness, EqualStates, OneLeader
from checkers.invariants.step import Rules, Step
from model.violation import Violation


class Ensemble:
    """Runs every fold on the servers that have changed; costs nothing without an ensemble."""

    def __init__(self, rules: Rules) -> None:
        order, self._durable = CommittedOrder(), Durable()
        self._members = Members()
        self._folds: list[MemberFold] = [
            MemberEpochs(),
            MemberLogs(),
            OneLeader(),
            Acknowledgements(self._durable),
            Deliveries(order, self._durable),
            Completeness(order),
            EqualStates(),
        ]
        self._liveness = EnsembleLiveness(rules, order)

    @property
    def is_pending(self) -> bool:
        """Whether a server did not serve in the last snapshot, and still has time to do so."""
        return self._liveness.is_pending

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        members = self._members.step(step)
        if members is not None:
            for change in (*members.changed, *members.ended):
                self._durable.see(change)
            for fold in self._folds:
                yield from fold.step(members)
        yield from self._liveness.step(step)
