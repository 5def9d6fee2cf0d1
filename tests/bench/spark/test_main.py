"""The limits of judgements, as figures decide them."""

import dataclasses
import sys
from pathlib import Path

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


INLINE = bench.Measured(
    Judged(seconds=0.9, cpu_s=4.9, valid=True, anomalies={}, operations=10**6), Peaks(400.0)
)


@pytest.mark.parametrize(("suffix", "seconds", "cores"), [(".parquet", 1.1, 2), (".jsonl", 5.1, 1)])
def test_inline_has_a_limit_for_each_form(suffix: str, seconds: float, cores: int) -> None:
    """The rate is that of wall time, of lines on one core and of Parquet on two."""
    case = bench.Case(Spec("idempotent", 10**6), suffix, "inline")
    assert missed(case, INLINE) == []
    assert missed(case, changed(INLINE, seconds=seconds)) == ["rate"]
    assert bench.RATES[suffix].cores == cores


def test_transactions_from_parquet_have_no_limit() -> None:
    """The rate of a history whose cycles are searched has a limit for lines alone."""
    slow = changed(INLINE, seconds=5.1)
    assert missed(bench.Case(Spec("transactions", 10**6), ".parquet", "inline"), slow) == []
    assert missed(bench.Case(Spec("transactions", 10**6), ".jsonl", "inline"), slow) == ["rate"]


@pytest.mark.parametrize(("suffix", "cores"), [(".parquet", "1,5"), (".jsonl", "1")])
def test_inline_runs_on_the_cores_of_its_limit(suffix: str, cores: str) -> None:
    """The judging process may use as many cores as its limit is for, and Spark uses all."""
    case = bench.Case(Spec("idempotent", 10**6), suffix, "inline")
    command = bench.command(case, Path("history"), [1, 5, 6])
    assert command[:3] == ["taskset", "--cpu-list", cores]
    assert bench.command(CASE, Path("history"), [1, 5, 6])[0] == sys.executable


def test_each_time_has_its_own_median(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU time is the median of all judgements, and not that of the one with the typical wall
    time."""
    times = iter(((3.0, 30.0), (1.0, 20.0), (2.0, 10.0)))

    def judged(case: bench.Case, path: Path) -> bench.Measured:
        seconds, cpu_s = next(times)
        return changed(INLINE, seconds=seconds, cpu_s=cpu_s)

    monkeypatch.setattr(bench, "_measured", judged)
    case = bench.Case(Spec("idempotent", 10**6), ".jsonl", "inline")
    found = bench.measured(case, tmp_path, times=3)
    assert (found.judged.seconds, found.judged.cpu_s) == (2.0, 20.0)


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
    small = case._replace(spec=dataclasses.replace(case.spec, operations=10**6))
    assert missed(small, changed(GOOD, seconds=80.0, operations=10**6), 50.0) == []
