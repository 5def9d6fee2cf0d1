"""The limits of judgements, as figures decide them."""

import dataclasses

import msgspec
import pytest

from bench.spark import __main__ as bench
from bench.spark import histories
from bench.spark.histories import Spec
from bench.spark.judge import Judged
from bench.spark.memory import Peaks

PLANTED = dict(histories.PLANTED["idempotent"])
CASE = bench.Case(Spec("idempotent", 10**7), ".parquet", "spark")
GOOD = bench.Measured(
    Judged(seconds=50.0, cpu_s=2.0, valid=True, anomalies={}, operations=10**7),
    Peaks(150.0, 700.0, 600.0),
)


def missed(case: bench.Case, found: bench.Measured, even_s: float | None = None) -> list[str]:
    return [
        bar.what.rpartition(": ")[2] for bar in bench.bars(case, found, even_s) if not bar.is_met
    ]


def changed(found: bench.Measured, **fields: object) -> bench.Measured:
    return found._replace(judged=msgspec.structs.replace(found.judged, **fields))


def test_a_judgement_within_all_limits() -> None:
    """Nothing is missed."""
    assert missed(CASE, GOOD) == []


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (changed(GOOD, seconds=61.0), "time"),
        (changed(GOOD, anomalies={"phantom": 1}), "found"),
        (changed(GOOD, operations=10**7 - 1), "found"),
        (GOOD._replace(peaks=Peaks(1100.0, 700.0, 600.0)), "driver"),
        (GOOD._replace(peaks=Peaks(150.0, 700.0, 2100.0)), "executor"),
        (GOOD._replace(peaks=Peaks(150.0, 2100.0, 600.0)), "executor"),
    ],
)
def test_each_limit_can_be_missed(found: bench.Measured, what: str) -> None:
    """A figure beyond its limit misses that limit alone."""
    assert missed(CASE, found) == [what]


def test_planted_anomalies_are_found_exactly() -> None:
    """One that is not found is missed, as is one more."""
    case = CASE._replace(spec=dataclasses.replace(CASE.spec, planted=True))
    assert missed(case, changed(GOOD, anomalies=PLANTED)) == []
    assert missed(case, GOOD) == ["found"]
    assert missed(case, changed(GOOD, anomalies={**PLANTED, "G1a": 1})) == ["found"]


def test_a_hot_partition_is_compared_with_even_ones() -> None:
    """The ratio counts, and not the time."""
    case = CASE._replace(spec=dataclasses.replace(CASE.spec, hot=0.9))
    assert missed(case, changed(GOOD, seconds=70.0), 50.0) == []
    assert missed(case, changed(GOOD, seconds=80.0), 50.0) == ["ratio to even"]
