"""White-box checks during a simulated run: snapshots between events, checked at once.

Violations are written to a file of the run's folder when they are found; the verdict reads that
file like all others. The checks change nothing about the run: no process, no random draw, no time.
"""

from collections.abc import Callable
from typing import Final

from checkers.expectations import Contract
from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from harness.cluster import settings
from harness.cluster.observe.snapshots import Snapshots
from harness.simulation.world import World
from model.plan import Plan
from model.violation import Watched, encode

INTERVAL_S: Final = 0.02
"""The least virtual time between two snapshots; each is taken in the first idle moment after it."""
PRODUCERS_EVERY: Final = 100
"""The producer state of logs is part of one snapshot out of this many."""
RECOVERY_S: Final = 60.0
"""The cluster must have recovered this long after the last heal."""


def rules_of(plan: Plan) -> Rules:
    """The invariants' parameters that follow from a plan's settings.

    They apply to this project's brokers, which hold the high watermark below min.insync.replicas.
    """
    expiration_ms = plan.broker.get("producer.id.expiration.ms")
    return Rules(
        unclean_elections=Contract.of(plan).unclean_elections,
        isr_min=settings.min_isr(plan.brokers, plan.broker),
        isr_min_of={"__transaction_state": settings.transaction_min_isr(plan.broker)},
        producer_expiration_s=86_400.0 if expiration_ms is None else int(expiration_ms) / 1000,
        recovery_s=RECOVERY_S,
    )


class Watcher:
    """Takes snapshots of a world's cluster from its start to ``end``, and checks each of them."""

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
        """``record`` takes lines; ``now_s`` is the history's clock.

        ``calm_since_ns`` returns the time on that clock since which no fault has been active and
        none will be.
        """
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
        world.on_idle = self._turn

    def _turn(self) -> None:
        now_s = self._world.now
        if now_s >= self._due_s and not self._is_over:
            self._due_s = now_s + self._interval_s
            self.look(producers=self._count % PRODUCERS_EVERY == 0)

    def look(self, *, producers: bool = False) -> None:
        """Take and check a snapshot now, outside every process or inside one."""
        self._count += 1
        self.snapshots.calm_since_ns = self._calm_since_ns()
        state = self.snapshots.take(self._time_ns(), producers=producers)
        for violation in self._watch.step(state):
            self._record(encode(violation))

    def is_settled(self) -> bool:
        """Take a snapshot; return whether the cluster is whole, or its time to recover is over.

        Also true while no such time has begun, because faults are still to come.
        """
        if not self._is_over:
            self.look()
        return self._is_over or not self._watch.is_pending

    def end(self) -> None:
        """Take a last snapshot, and record how many there were."""
        if not self._is_over:
            self.look(producers=True)
            self._is_over = True
            self._record(encode(Watched(snapshots=self._count, until_ns=self._time_ns())))

    def _time_ns(self) -> int:
        return int(self._now_s() * 1e9)
