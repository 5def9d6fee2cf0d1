"""What the benchmark promises, computed from given figures."""

from bench.suite import bars
from bench.table import Series

FIGURES = {
    "produce 1 KB, null broker": 1000.0,
    "produce 1 KB, broker": 500.0,
    "produce 100 B, null broker": 150.0,
    "produce 100 B, broker": 80.0,
    "consume 1 KB, librdkafka": 499.0,
    "consume 1 KB, raw": 1500.0,
    "consume 100 B, librdkafka": 160.0,
    "consume 100 B, raw": 1500.0,
    "produce 1 KB, RF 3, acks=all": 100.0,
    "lone produce, acks=all, librdkafka: p50": 1.0,
    "lone produce, acks=all, raw: p50": 0.5,
    "transactions of 10 records to 3 partitions, RF 3": 100.0,
    "rebalance": 1000.0,
    "failover to the next transaction": 8.1,
    "memory of an idle broker": 81.0,
    "judging of 100,000 keys with a reader each": 59.0,
    "memory of judging, for each 10^6 operations": 401.0,
}


def test_bars_are_ratios_and_absolutes_of_the_figures() -> None:
    """Rates are compared within the run, and records per second follow from bytes per second."""
    found = bars([Series(what, "", (value,)) for what, value in FIGURES.items()])
    figures = {bar.what: bar.figure for bar in found}
    assert figures["produce 1 KB: share of the null broker's rate"] == 50.0
    assert figures["produce 100 B"] == 800_000.0
    assert figures["consume 100 B, librdkafka: share of produce's rate"] == 200.0
    assert [bar.what for bar in found if not bar.is_met] == [
        "consume 1 KB, librdkafka: share of produce's rate",
        "failover to the next transaction",
        "memory of an idle broker",
        "memory of judging, for each 10^6 operations",
    ]


def test_a_share_is_taken_within_each_round() -> None:
    """A share is taken within each round, since a busy machine slows both sides of a ratio."""
    rounds = {what: [value] * 3 for what, value in FIGURES.items()}
    rounds["produce 1 KB, null broker"] = [1000.0, 100.0, 1000.0]
    rounds["produce 1 KB, broker"] = [700.0, 70.0, 600.0]
    found = bars([Series(what, "", tuple(values)) for what, values in rounds.items()])
    figures = {bar.what: bar.figure for bar in found}
    assert figures["produce 1 KB: share of the null broker's rate"] == 70.0
