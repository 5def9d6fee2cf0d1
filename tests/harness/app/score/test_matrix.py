"""The detection matrix: its rows, and that the published page equals the measurements."""

from pathlib import Path

import msgspec
import pytest

from harness.app.refused import Refused
from harness.app.score import matrix
from harness.app.score.matrix import Compared, Control, Drawn, Matrix, Row, Scripted
from harness.app.search.outcome import Status
from harness.cluster.mutants import catalogue

DOCS = Path(__file__).resolve().parents[4] / "docs"


def scripted(without: Status = "valid", **anomalies: int) -> Scripted:
    named = {name.replace("_", "-"): count for name, count in anomalies.items()}
    return Scripted(without=without, anomalies=named, faults=1, cpu_seconds=1.5)


def drawn(found: int, runs: int) -> Drawn:
    return Drawn(
        seed=1,
        runs=runs,
        found=found,
        first=2 if found else None,
        failed=0,
        anomalies={"stuck": found} if found else {},
        cpu_seconds=3.0,
    )


def row(
    name: str = "m", tier: int = 1, seen: Scripted | None = None, drew: Drawn | None = None
) -> Row:
    return Row(name=name, source="A01", tier=tier, symptom="lost-write", scripted=seen, drawn=drew)


@pytest.mark.parametrize(
    ("seen", "is_shown"),
    [
        (None, False),
        (scripted(lost_write=3), True),
        (scripted(lost_write=3, stuck=1), True),
        (scripted(stuck=1), False),  # found, but not its own symptom
        (scripted("unknown", lost_write=3), False),  # the correct broker must pass
        (scripted("invalid", lost_write=3), False),
    ],
)
def test_a_mutant_is_shown_by_its_symptom_alone(seen: Scripted | None, is_shown: bool) -> None:
    """A mutant is shown if the run has its symptom and the run without the mutant is valid."""
    assert row(seen=seen).is_shown is is_shown


@pytest.mark.parametrize(
    ("status", "allowed", "strict", "apart"),
    [
        ("valid", {"lost-write": 1}, {"lost-write": 1}, True),
        ("valid", {}, {}, False),  # the anomaly did not occur
        ("valid", {"lost-write": 1}, {}, False),  # the strict contract permits it
        ("invalid", {"lost-write": 1}, {"lost-write": 1}, False),
    ],
)
def test_a_control_is_found_under_both_contracts(
    status: Status, allowed: dict[str, int], strict: dict[str, int], apart: bool
) -> None:
    """A control's anomaly is permitted by its own contract and illegal under the strict one."""
    assert (
        Control(name="c", status=status, allowed=allowed, strict=strict).is_distinguished is apart
    )


def test_rows_are_kept_in_files(tmp_path: Path) -> None:
    """Rows are kept in a file by name; rows of mutants that no longer exist are dropped."""
    known = Matrix().with_row(row("b")).with_row(row("a", seen=scripted(lost_write=1)))
    known = known.with_control(Control(name="c", status="valid", allowed={}, strict={}))
    matrix.write(known, tmp_path)
    assert matrix.read(tmp_path) == known
    assert list(known.rows) == ["a", "b"]
    assert list(known.with_row(row("a")).of(["a", "z"]).rows) == ["a"]
    assert {path.name for path in tmp_path.iterdir()} == {matrix.DATA, matrix.PAGE}
    assert matrix.read(tmp_path / "elsewhere") == Matrix()


def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    """A data file of another format is refused, not overwritten."""
    (tmp_path / matrix.DATA).write_text('{"rows": []}')
    with pytest.raises(Refused, match=r"detection-matrix\.json: Expected `object`"):
        matrix.read(tmp_path)


def test_the_page_tells_what_was_not_found() -> None:
    """A schedule that does not show its bug is marked; what was not measured is named."""
    known = Matrix()
    for each in (
        row("good", seen=scripted(lost_write=2), drew=drawn(3, 7)),
        row("bad", seen=scripted(stuck=4), drew=drawn(0, 200)),
        row("late", tier=2, seen=scripted(lost_write=2), drew=drawn(0, 200)),
        row("new"),
        row("silent", tier=3, drew=msgspec.structs.replace(drawn(0, 200), reached=0)),
        row("hidden", tier=3, drew=msgspec.structs.replace(drawn(0, 200), reached=41)),
    ):
        known = known.with_row(each)
    text = matrix.page(known.with_control(Control(name="c", status="valid", allowed={}, strict={})))
    assert "Bugs that their schedules show: 2 of 6." in text
    unknown = "1 not found, and not recorded whether reached"
    assert f"Bugs of tier 1 that drawn seeds show: 1 of 2; {unknown}; 1 not measured." in text
    assert f"Bugs of tier 2 that drawn seeds show: 0 of 1; {unknown}." in text
    missed = "1 reached but not seen; 1 never reached"
    assert f"Bugs of tier 3 that drawn seeds show: 0 of 2; {missed}." in text
    assert "| idempotent | 0 of 200 | 41 | never | nothing |" in text
    assert (
        "| `good` | A01 | 1 | lost-write | yes | idempotent | 3 of 7 | not measured | 2 |" in text
    )
    assert "| `bad` | A01 | 1 | lost-write | **no**: stuck 4 | idempotent | 0 of 200 |" in text
    assert "| `new` | A01 | 1 | lost-write | not measured |" in text
    assert "| `c` | nothing | nothing | **no** |" in text


def test_the_page_tells_what_was_measured() -> None:
    """The page names the measured commits, the schedule's first, and only one if both are equal."""
    seen, drew = scripted(lost_write=2), drawn(1, 4)
    for one, other, told in (
        ("abc", "def", "abc, def"),
        ("abc", "abc", "abc"),
        (None, "def", "def"),
        (None, None, "not recorded"),
    ):
        measured = row(
            seen=msgspec.structs.replace(seen, commit=one),
            drew=msgspec.structs.replace(drew, commit=other),
        )
        assert f"| stuck | {told} |" in matrix.page(Matrix().with_row(measured))


def test_the_page_compares_searches() -> None:
    """Rows without a comparison are not part of that table, which is left out if it has none."""
    assert "Guided searches" not in matrix.page(Matrix().with_row(row("m")))
    compared = Compared(chance=drawn(0, 50), guided=drawn(1, 21))
    both = msgspec.structs.replace(row("m"), compared=compared)
    text = matrix.page(Matrix().with_row(both).with_row(row("other")))
    assert "Found by chance: 0 of 1, in 50 runs and 3 seconds of CPU." in text
    assert "Found guided: 1 of 1, in 21 runs and 3 seconds of CPU." in text
    assert "| `m` | idempotent | never | 50 | 3 | 2 | 21 | 3 | not recorded |" in text


def test_the_page_tells_of_runs_that_failed() -> None:
    """Failed runs of a search count as runs without a detection."""
    drew = msgspec.structs.replace(drawn(1, 4), failed=2)
    text = matrix.page(Matrix().with_row(row("m", seen=scripted(lost_write=2), drew=drew)))
    assert "| yes | idempotent | 1 of 4 (2 failed) | not measured | 2 | stuck |" in text


def test_the_published_page_is_the_measurements() -> None:
    """The published page equals the data, and each row agrees with its mutant's definition."""
    published = matrix.read(DOCS)
    assert (DOCS / matrix.PAGE).read_text() == matrix.page(published)
    known = catalogue()
    for name, each in published.rows.items():
        told = known[name]
        assert (each.source, each.tier, each.symptom) == (told.source, told.tier, told.symptom)
        assert each.is_shown, name
    planted = {name for name, each in known.items() if each.is_measured}
    assert published.rows.keys() == planted, "a mutant without a row: faultline mutants score"
    assert all(control.is_distinguished for control in published.controls.values())
