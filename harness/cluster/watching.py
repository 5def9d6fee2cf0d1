"""White-box checks while a simulated cluster runs: snapshots between events, judged at once.

Violations go into a file of the run's folder as they are found; the verdict is made from that file
like everything else. Watching changes nothing of what happens: no process, no chance, no time.
"""

from collections.abc import Callable
from typing import Final

from checkers.expectations import Contract
from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from harness.cluster import settings
from harness.cluster.snapshots import Snapshots
from harness.simulation.world import World
from model.plan import Plan
from model.violation import Watched, encode

INTERVAL_S: Final = 0.02
"""Virtual time between two snapshots, at least: each is taken in the next lull after it."""
PRODUCERS_EVERY: Final = 100
"""Snapshots; what logs remember of producers is looked at in one of so many."""
RECOVERY_S: Final = 60.0
"""After the last heal the cluster is whole by then."""


def rules_of(plan: Plan) -> Rules:
    """What a plan's settings make of the invariants; brokers are ours, which hold the watermark
    below min.insync.replicas."""
    expiration_ms = plan.broker.get("producer.id.expiration.ms")
    return Rules(
        unclean_elections=Contract.of(plan).unclean_elections,
        isr_min=settings.min_isr(plan.brokers, plan.broker),
        isr_min_of={"__transaction_state": settings.transaction_min_isr(plan.broker)},
        producer_expiration_s=86_400.0 if expiration_ms is None else int(expiration_ms) / 1000,
        recovery_s=RECOVERY_S,
    )


class Watcher:
    """Looks at a world's cluster from its start to ``end``."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        record: Callable[[bytes], object],
        *,
        now_s: Callable[[], float],
        calm_since_ns: Callable[[], int | None] = lambda: None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """``record`` takes lines; ``now_s`` is the history's clock, and ``calm_since_ns`` says
        since when, by that clock, no fault has been active and none will be."""
        self.snapshots = Snapshots()
        self._world = world
        self._watch = Watch(rules)
        self._record = record
        self._interval_s = interval_s
        self._now_s = now_s
        self._calm_since_ns = calm_since_ns
        self._count = 0
        self._is_over = False
        self._due_s = world.now
        world.lull = self._turn

    def _turn(self) -> None:
        now_s = self._world.now
        if now_s >= self._due_s and not self._is_over:
            self._due_s = now_s + self._interval_s
            self.look(producers=self._count % PRODUCERS_EVERY == 0)

    def look(self, *, producers: bool = False) -> None:
        """Take a snapshot now, outside every process or inside one."""
        self._count += 1
        self.snapshots.calm_since_ns = self._calm_since_ns()
        state = self.snapshots.take(self._time_ns(), producers=producers)
        for violation in self._watch.step(state):
            self._record(encode(violation))

    def is_settled(self) -> bool:
        """Look now: is the cluster whole, or the time over that it was given for it? Also when it
        was given none, for faults are still to come."""
        if not self._is_over:
            self.look()
        return self._is_over or not self._watch.is_pending

    def end(self) -> None:
        """Look once more, and tell how much was looked at."""
        if not self._is_over:
            self.look(producers=True)
            self._is_over = True
            self._record(encode(Watched(snapshots=self._count, until_ns=self._time_ns())))

    def _time_ns(self) -> int:
        return int(self._now_s() * 1e9)
