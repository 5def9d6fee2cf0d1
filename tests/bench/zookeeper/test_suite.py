"""The promises about ensembles follow from the figures of both."""

from bench.table import Series
from bench.zookeeper import suite


def _series(factor: float, failover_s: float) -> list[Series]:
    rates = [
        Series(f"{what}, {load}, {name}", "1/s", values)
        for what in (suite.CREATES, suite.GETS)
        for load in suite.LOADS
        for name, values in (
            (suite.OURS, (10 * factor, 1000 * factor, 100 * factor)),
            (suite.APACHE, (10.0, 1000.0, 100.0)),
        )
    ]
    return [
        *rates,
        Series(f"{suite.LONE_P50}, {suite.OURS}", "ms", (2.0, 2.0)),
        Series(f"{suite.LONE_P50}, {suite.APACHE}", "ms", (1.0, 2.0)),
        Series(f"{suite.FAILOVER}, {suite.OURS}", "s", (0.1, failover_s, 5.0)),
    ]


def test_ratios_are_taken_within_rounds() -> None:
    """A ratio compares figures of the same round, so a slow round does not change it."""
    bars = suite.bars(_series(0.7, 1.0))
    assert [bar.figure for bar in bars] == [0.7] * 6 + [1.5, 1.0]
    assert all(bar.is_met for bar in bars)


def test_missed_promises_are_seen() -> None:
    """A rate that is too low, and a failover that is too slow, are missed promises."""
    bars = suite.bars(_series(0.69, 1.1))
    assert [bar.is_met for bar in bars] == [False] * 6 + [True, False]
