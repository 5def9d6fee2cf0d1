"""How long code paths wait at points by chance."""

from broker_impl import failpoints
from harness.cluster.simulated.point_waits import REST_S, PointWaits

POINT, OTHER = failpoints.MARKERS, failpoints.LOAD


class Waiting:
    """Waits at a time that a test sets."""

    def __init__(self, share: float, seed: int = 7) -> None:
        self.now_s = 0.0
        self.is_over = False
        options = {"point_share": share, "point_ms": 500}
        self.waits = PointWaits(seed, options, lambda: self.now_s, lambda: self.is_over)

    def lengths(self, count: int) -> list[float]:
        """The lengths of waits at one point, far enough from each other."""
        found = []
        for _ in range(count):
            found.append(self.waits("broker-1", POINT))
            self.now_s += 2 * REST_S
        return found


def test_a_share_of_the_paths_waits() -> None:
    """The share that the options name waits, for different lengths up to the longest."""
    lengths = Waiting(0.3).lengths(2000)
    waits = [length for length in lengths if length]
    assert 500 < len(waits) < 700
    assert 0.45 < max(waits) <= 0.5
    assert min(waits) < 0.05
    assert lengths == Waiting(0.3).lengths(2000)
    assert lengths != Waiting(0.3, seed=8).lengths(2000)


def test_without_a_share_nothing_waits() -> None:
    """By default no code path waits."""
    assert not any(Waiting(0.0).lengths(100))


def test_nothing_waits_once_the_last_fault_is_healed() -> None:
    """A cluster recovers without further waits."""
    waiting = Waiting(1.0)
    assert all(waiting.lengths(5))
    waiting.is_over = True
    assert not any(waiting.lengths(5))


def test_paths_in_a_row_do_not_all_wait() -> None:
    """After a wait, others at the same point of the same node go on at once for some time."""
    waiting = Waiting(1.0)
    length = waiting.waits("broker-1", POINT)
    assert length
    assert not waiting.waits("broker-1", POINT)
    assert waiting.waits("broker-2", POINT)
    assert waiting.waits("broker-1", OTHER)
    waiting.now_s += length + REST_S
    assert waiting.waits("broker-1", POINT)
