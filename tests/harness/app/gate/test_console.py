"""A gate as text for a terminal."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.app.gate import console
from harness.app.gate.outcome import FaultProof

Make = Callable[..., Any]


def test_a_line_for_each_case(case: Make) -> None:
    """A case's line has its number, verdict, name, figures and reasons."""
    figures = {
        "seconds": 26.2, "throughput_hz": 812.4, "unavailable_s": 3.14, "recovery_s": None,
        "faults": (FaultProof("kill", True),),
    }  # fmt: skip
    assert console.line(case("valid", **figures), 3, 12) == (
        "[ 3/12] VALID    idempotent · kill · valid · 26 s, 812 acked/s, longest wait 3.1 s,"
        " recovery —, 1 of 1 faults proved"
    )
    assert console.line(case("invalid", why=("lost-write 3 · …",)), 12, 12).endswith(
        "0 of 0 faults proved · lost-write 3 · …"
    )
    assert console.line(case("skipped", why=("no time",)), 1, 9) == (
        "[1/9] SKIPPED  idempotent · kill · skipped · no time"
    )


def test_a_table_of_all(case: Make, gate: Make) -> None:
    """Cases that need attention come first, with the reason and the command to replay them."""
    there = gate(case(), case("invalid", why=("lost-write 3 · …",), folder="runs/a"), seconds=61.0)
    lines = console.table(there, Path("g")).splitlines()
    assert lines[:3] == [
        "INVALID  quick: 1 invalid, 1 valid of 2 cases in 1:01 min",
        "         g/index.html",
        "",
    ]
    assert [re.split(r"\s{2,}", line) for line in lines[3:]] == [
        ["", *console.COLUMNS],
        ["invalid", "idempotent · kill · invalid", "0 s", "—", "—", "—", "0 of 0"],
        ["", "lost-write 3 · …"],
        ["", "repeat: faultline replay g/runs/a"],
        ["valid", "idempotent · kill · valid", "0 s", "—", "—", "—", "0 of 0"],
    ]
    assert len({line.index("0 s") for line in lines if "0 s" in line}) == 1


def test_a_clock() -> None:
    """Durations are minutes and seconds, with hours if there are any."""
    assert [console.clock(seconds) for seconds in (0.4, 61, 3599.6)] == [
        "0:00 min",
        "1:01 min",
        "1:00:00 h",
    ]


def test_systems_are_compared_below_the_table(case: Make, gate: Make) -> None:
    """A second table has the medians of each system; a gate of one system has none."""
    system = "apache-kafka:3.9.1"
    ours = case(name="a · seed 1", throughput_hz=200.0)
    theirs = case(name=f"a · {system} · seed 1", system=system, throughput_hz=50.0)
    lines = console.table(gate(ours, theirs), Path("g")).splitlines()
    assert [re.split(r"\s{2,}", line)[:3] for line in lines[-4:]] == [
        [""],
        ["system", "valid", "median throughput"],
        ["kafka", "1 of 1", "200 /s"],
        [system, "1 of 1", "50 /s (ratio 0.25)"],
    ]
    assert "median throughput" not in console.table(gate(ours), Path("g"))
