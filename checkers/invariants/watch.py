"""All invariants together: takes snapshots, and yields each violation once."""

from collections.abc import Iterator

from checkers.invariants.after_kill import AfterKill, Reload
from checkers.invariants.committed import Committed
from checkers.invariants.ensemble.after_kill import HistoriesAfterKill, ReloadHistories
from checkers.invariants.ensemble.ensemble_watch import Ensemble
from checkers.invariants.laggards import Laggards
from checkers.invariants.leaders import Leaders, OneLogPerEpoch, Watermarks
from checkers.invariants.liveness import Liveness
from checkers.invariants.logs import Compactions, Epochs, Offsets, Producers, Starts
from checkers.invariants.retention import Retention
from checkers.invariants.step import Fold, Rules, Stepper
from checkers.invariants.survivors import Survivors
from checkers.invariants.topic_settings import SettingsOfTopics
from checkers.invariants.views import Views
from checkers.invariants.zookeeper import Controllers, Moves, States
from model.snapshot import ClusterState
from model.violation import Violation


class Watch:
    """Runs every fold on every snapshot."""

    def __init__(
        self,
        rules: Rules,
        reload: Reload = lambda broker, key: None,
        reload_histories: ReloadHistories = dict,
    ) -> None:
        """``reload`` loads a log of a broker from a copy of its files, and ``reload_histories`` the
        histories of ZooKeeper."""
        committed = Committed()
        self._stepper = Stepper()
        self._folds: list[Fold] = [
            States(),
            Moves(),
            Controllers(),
            Views(),
            Offsets(),
            Starts(),
            Epochs(),
            Producers(rules),
            Compactions(),
            Retention(),
            SettingsOfTopics(),
            Leaders(),
            Watermarks(rules),
            OneLogPerEpoch(),
            Laggards(rules),
            HistoriesAfterKill(reload_histories),
        ]
        if not rules.unclean_elections:
            self._folds += [committed, Survivors(committed), AfterKill(rules, reload)]
        self._liveness = Liveness(rules, committed.end)
        self._ensemble = Ensemble(rules)
        self._folds += [self._liveness, self._ensemble]
        self._reported: set[tuple[str, str | None]] = set()

    @property
    def is_pending(self) -> bool:
        """Whether the cluster was not whole in the last snapshot, and still has time to become
        so."""
        return self._liveness.is_pending or self._ensemble.is_pending

    def step(self, now: ClusterState, *, is_last: bool = False) -> Iterator[Violation]:
        """Yield new violations. Each invariant is reported once for each partition, because it
        mostly stays violated, and makes others fail with it."""
        step = self._stepper.step(now, is_last=is_last)
        for fold in self._folds:
            for violation in fold.step(step):
                if self.is_new(violation):
                    yield violation

    def is_new(self, violation: Violation) -> bool:
        """Return whether it is the first of its invariant and partition, and remember it."""
        place = violation.invariant, violation.key
        if place in self._reported:
            return False
        self._reported.add(place)
        return True
