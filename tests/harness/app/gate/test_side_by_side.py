"""The systems of a gate side by side."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app.gate import side_by_side
from harness.app.gate.outcome import Case, Gate
from harness.app.gate.side_by_side import FIGURES, Comparison, compare

Make = Callable[..., Any]
APACHE = "apache-kafka:3.9.1"
THROUGHPUT, WAIT, RECOVERY = FIGURES


def of(system: str, name: str = "idempotent · kill · default · processes", **more: Any) -> Case:
    """Make a case of a system, named as a suite names it."""
    place = "" if system == "kafka" else f" · {system}"
    given: dict[str, Any] = {
        "seed": 1, "status": "valid", "throughput_hz": 100.0, "recovery_s": 1.0,
    } | more  # fmt: skip
    return Case(
        name=f"{name}{place} · seed {given['seed']}",
        workload="idempotent", nemesis=("kill",), configuration="default", target="processes",
        system=system, **given,
    )  # fmt: skip


def compared(gate: Gate) -> Comparison:
    comparison = compare(gate)
    assert comparison is not None
    return comparison


def test_cases_that_differ_in_the_system_only(gate: Make) -> None:
    """Cases are paired by the rest of their name, in order; a case without a pair is no row."""
    pair, other = [of("kafka"), of(APACHE)], [of(APACHE, seed=2), of("kafka", seed=2)]
    alone = of("kafka", "idempotent · kill · default · containers")
    comparison = compared(gate(*pair, alone, *other))
    assert comparison.systems == ("kafka", APACHE)
    assert [row.name for row in comparison.rows] == [
        "idempotent · kill · default · processes · seed 1",
        "idempotent · kill · default · processes · seed 2",
    ]
    assert [row.cases for row in comparison.rows] == [tuple(pair), (other[1], other[0])]
    assert [comparison.count(place) for place in (0, 1)] == [2, 2]


def test_one_system_is_not_compared(gate: Make) -> None:
    """A gate of one system, and systems without a common case, have nothing to compare."""
    assert compare(gate(of("kafka"), of("kafka", seed=2))) is None
    assert compare(gate(of("kafka"), of(APACHE, seed=2))) is None
    assert compare(gate()) is None


def test_a_case_of_two_systems_out_of_three(gate: Make) -> None:
    """A system without the case has no value there, so the row does not count for the median."""
    both = [of("kafka", throughput_hz=10.0), of(APACHE, throughput_hz=30.0)]
    all_of = [of(name, seed=2, throughput_hz=hz) for name, hz in
              (("kafka", 50.0), (APACHE, 60.0), ("apache-kafka:2.8.2", 70.0))]  # fmt: skip
    comparison = compared(gate(*both, *all_of))
    assert comparison.rows[0].values(THROUGHPUT) == (10.0, 30.0, None)
    assert comparison.summaries[0].medians == (50.0, 60.0, 70.0)
    assert comparison.summaries[0].rows == 1


def test_medians_count_the_same_cases_of_every_system(gate: Make) -> None:
    """A case that one system could not measure counts for no system."""
    comparison = compared(
        gate(
            *(of("kafka", seed=seed, throughput_hz=10.0 * seed) for seed in (1, 2, 3)),
            *(of(APACHE, seed=seed, throughput_hz=5.0 * seed) for seed in (1, 2)),
            of(APACHE, seed=3, throughput_hz=None, status="failed"),
        )
    )
    assert [summary.rows for summary in comparison.summaries] == [2, 0, 3]
    assert comparison.summaries[0].medians == (15.0, 7.5)
    assert comparison.summaries[0].ratios == (1.0, 0.5)
    assert comparison.summaries[1].medians == (None, None)
    assert comparison.summaries[1].ratios == (None, None)
    assert (comparison.green(0), comparison.green(1)) == (3, 2)
    assert comparison.largest(THROUGHPUT) == 30.0
    assert comparison.largest(WAIT) == 0.0


def test_a_skipped_case_has_no_values(gate: Make) -> None:
    """A case that was not run is in its row, but without values."""
    skipped = of(APACHE, status="skipped", throughput_hz=0.0)
    (row,) = compared(gate(of("kafka"), skipped)).rows
    assert row.cases[1] is skipped
    assert row.values(THROUGHPUT) == (100.0, None)


def test_a_median_of_zero_has_no_ratio(gate: Make) -> None:
    """A ratio to zero is not defined."""
    comparison = compared(gate(of("kafka", recovery_s=0.0), of(APACHE)))
    assert comparison.summaries[2].medians == (0.0, 1.0)
    assert comparison.summaries[2].ratios == (None, None)


def test_the_summary_as_text(gate: Make) -> None:
    """Each system has a row with its medians and their ratios to those of the first system."""
    theirs = of(APACHE, throughput_hz=42.0, status="unknown", recovery_s=14.0)
    assert side_by_side.table(compared(gate(of("kafka"), theirs))) == [
        ("system", "valid", "median throughput", "median longest wait", "median recovery"),
        ("kafka", "1 of 1", "100 /s", "—", "1.0 s"),
        (APACHE, "0 of 1", "42 /s (ratio 0.42)", "—", "14.0 s (ratio 14)"),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "—"), (0.0, "0.00"), (0.417, "0.42"), (12.4, "12"), (1e4, "10,000")]
)
def test_a_ratio_as_text(value: float | None, text: str) -> None:
    """Ratios below ten have two digits after the point."""
    assert side_by_side.ratio(value) == text


@given(
    seeds=st.lists(st.integers(-5, 99), unique=True, min_size=1),
    systems=st.lists(
        st.sampled_from(["kafka", APACHE, "apache-kafka:2.8.2"]), unique=True, min_size=2
    ),
    values=st.randoms(use_true_random=False),
)
def test_the_order_of_cases_changes_no_summary(
    seeds: list[int], systems: list[str], values: Any
) -> None:
    """Every case is in exactly one row, and the medians do not depend on the order of the rows."""
    cases = [
        of(system, seed=seed, throughput_hz=values.choice([None, values.uniform(0, 1e4)]))
        for seed in seeds
        for system in systems
    ]
    whole = Gate(suite="quick", name="x", began="", cases=tuple(cases))
    comparison = compared(whole)
    assert sorted(id(case) for row in comparison.rows for case in row.cases) == sorted(
        map(id, cases)
    )
    backwards = msgspec.structs.replace(
        whole,
        cases=tuple(case for seed in reversed(seeds) for case in cases if case.seed == seed),
    )
    assert compared(backwards).summaries == comparison.summaries
