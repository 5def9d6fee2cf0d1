"""The outcome of a gate: its verdict, its exit status and its file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkers.verdict import Valid
from harness.app.gate.outcome import (
    FILE,
    FaultProof,
    Status,
    by_urgency,
    earlier,
    exit_status,
    read,
    write,
)

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("statuses", "valid", "status"),
    [
        (["valid", "valid"], True, 0),
        (["valid", "unknown"], "unknown", 2),
        (["valid", "skipped"], "unknown", 2),
        (["valid", "failed", "unknown"], "unknown", 70),
        (["valid", "failed", "invalid", "unknown"], False, 1),
        ([], "unknown", 2),
    ],
)
def test_the_worst_case_decides(
    statuses: list[Status], valid: Valid, status: int, case: Make, gate: Make
) -> None:
    """Invalid outranks failed, which outranks unknown and skipped.

    A gate without cases is unknown.
    """
    there = gate(*map(case, statuses))
    assert there.valid == valid
    assert exit_status(there) == status


def test_an_excused_case_takes_nothing_away(case: Make, gate: Make) -> None:
    """A skipped case of an optional target leaves a gate valid, but alone it is no evidence.

    The target is one that the machine cannot offer.
    """
    left_out = case("skipped", excused=True)
    assert exit_status(gate(case("valid"), left_out)) == 0
    assert exit_status(gate(left_out)) == 2


def test_a_file_of_an_older_version_names_no_system(case: Make, gate: Make, tmp_path: Path) -> None:
    """Its cases were run with this project's broker."""
    write(tmp_path, gate(case()))
    path = tmp_path / FILE
    assert '"system": "kafka"' in path.read_text()
    path.write_text(path.read_text().replace('"system": "kafka",', ""))
    there = read(tmp_path)
    assert there is not None
    assert [each.system for each in there.cases] == ["kafka"]


def test_the_systems_of_a_gate(case: Make, gate: Make) -> None:
    """A gate has its systems in the order of its cases, and the cases of each of them."""
    ours, theirs = case(seed=1), case(seed=2, system="apache-kafka:3.9.1")
    there = gate(theirs, ours, theirs)
    assert there.systems == ("apache-kafka:3.9.1", "kafka")
    assert there.of_system("kafka").cases == (ours,)
    assert there.of_system("x").cases == ()


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("idempotent · kill · default · processes · seed 1", "kafka"),
        ("idempotent · kill · default · processes · apache-kafka:3.9.1 · seed 1",
         "apache-kafka:3.9.1"),
    ],
)  # fmt: skip
def test_the_name_without_the_system(name: str, system: str, case: Make) -> None:
    """Only the system's own part of a name is removed."""
    there = case(name=name, system=system, seed=1)
    assert there.name_of_any_system == "idempotent · kill · default · processes · seed 1"


def test_a_gate_that_did_not_reach_its_end_is_not_valid(case: Make, gate: Make) -> None:
    """A gate with fewer cases than planned is unknown, or failed (70) if it was interrupted."""
    assert gate(case("valid"), planned=2).valid == "unknown"
    assert exit_status(gate(case("valid"), planned=2, interrupted=True)) == 70
    assert exit_status(gate(case("invalid"), planned=2, interrupted=True)) == 1


def test_a_gate_survives_its_file(tmp_path: Path, case: Make, gate: Make) -> None:
    """A gate is read as it was written, and no other file is in the folder."""
    there = gate(
        case("valid", folder="runs/a", throughput_hz=1.5, faults=(FaultProof("kill", True),)),
        case("invalid", anomalies={"lost-write": 2}, why=("…",)),
        budget_s=600.0,
    )
    write(tmp_path, there)
    assert read(tmp_path) == there
    assert there.cases[0].kept
    assert not there.cases[1].kept
    assert there.counts() == {"invalid": 1, "valid": 1}
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_earlier_gates_are_of_the_same_suite(tmp_path: Path, gate: Make) -> None:
    """Earlier gates of the suite are listed oldest first.

    The gate itself, other suites and unreadable files are left out.
    """
    for name, suite, began in [
        ("b", "quick", "2026-11-21T00:00:00Z"),
        ("a", "quick", "2026-11-22T00:00:00Z"),
        ("c", "nightly", "2026-11-20T00:00:00Z"),
        ("me", "quick", "2026-11-23T00:00:00Z"),
    ]:
        (tmp_path / name).mkdir()
        write(tmp_path / name, gate(suite=suite, name=name, began=began))
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / FILE).write_text("{")
    (tmp_path / "a file").write_text("")
    assert [there.name for there in earlier(tmp_path / "me", "quick")] == ["b", "a"]


def test_what_needs_a_look_comes_first(case: Make) -> None:
    """Cases that need attention come first, in order of severity; excused ones come last."""
    left_out = case("skipped", excused=True)
    cases = [left_out, *map(case, ("valid", "skipped", "unknown", "failed", "invalid"))]
    there = [(one.status, one.excused) for one in by_urgency(cases)]
    assert [status for status, excused in there if not excused] == [
        "invalid", "failed", "unknown", "skipped", "valid",
    ]  # fmt: skip
    assert there[-1] == ("skipped", True)
