import pytest

from bench import beside_kafka
from bench.beside_kafka import APACHE, LONE_P50, OURS, PRODUCE
from bench.suite import CLIENTS, ONE, REPLICATED, TRANSACTIONS
from bench.table import Series

WHAT = (
    PRODUCE,
    f"produce {ONE}, {REPLICATED}",
    *(f"consume {ONE}, {name}" for name in CLIENTS),
    LONE_P50,
    TRANSACTIONS,
)


def met(ratios: tuple[float, ...]) -> list[bool]:
    """Which bars are met with these ratios of ours to Kafka's, in the order of ``WHAT``."""
    series = []
    for what, ratio in zip(WHAT, ratios, strict=True):
        # The median of the rounds counts, and neither the best round nor the median of each kind.
        series.append(Series(f"{what}, {OURS}", "", (ratio, 50 * ratio, 0.1)))
        series.append(Series(f"{what}, {APACHE}", "", (1.0, 10.0, 1.0)))
    return [bar.is_met for bar in beside_kafka.bars(series)]


LIMITS = (1.2, 1.2, 1.0, 1.0, 1.0, 2.0)


def test_limits_are_met() -> None:
    """Each ratio may be its limit."""
    assert met(LIMITS) == [True] * len(LIMITS)


@pytest.mark.parametrize("number", range(len(LIMITS)))
def test_limits_are_missed(number: int) -> None:
    """A latency is missed above its limit, all others below."""
    step = 0.01 if WHAT[number] == LONE_P50 else -0.01
    ratios = [limit + step * (at == number) for at, limit in enumerate(LIMITS)]
    assert met(tuple(ratios)) == [at != number for at in range(len(LIMITS))]
