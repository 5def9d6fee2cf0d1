"""The figures of a case, from its run's folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from checkers.kernels.availability import Outage, Recovery
from checkers.verdict import Availability, Verdict
from harness.app.gate import figures
from harness.app.gate.outcome import FaultProof
from harness.engine.recorder import FaultRow, encode_row
from model import history
from model.op import NEMESIS, RECOVER, Op
from model.plan import Plan

SECOND = 1_000_000_000


def folder(tmp_path: Path, *, recovered: bool | None = True) -> Path:
    """Write a run's folder with two faults, one of them not proved.

    Recovery was requested at 20 s and answered at 21.5 s.
    """
    rows = [
        FaultRow(id=number, fault=name, targets=[], asked_ns=0, applied_ns=0, healed_ns=1,
                 effect={"proved": proved, "how": "…"})
        for number, name, proved in ((1, "kill", True), (2, "pause", False))
    ]  # fmt: skip
    (tmp_path / "schedule.jsonl").write_bytes(b"".join(map(encode_row, rows)))
    asked = [
        Op(index=0, time_ns=0, process=1, type="invoke", f="send", value=[["send", RECOVER, 1]]),
        Op(index=1, time_ns=20 * SECOND, process=NEMESIS, type="invoke", f=RECOVER),
    ]
    done = Op(index=2, time_ns=int(21.5 * SECOND), process=NEMESIS, type="info", f=RECOVER,
              value={"recovered": recovered})  # fmt: skip
    history.write(tmp_path / "history.jsonl", asked if recovered is None else [*asked, done])
    return tmp_path


def verdict(*recoveries: float | None, outage: Outage | None = None) -> Verdict:
    there = tuple(Recovery(number, "x-0", seconds) for number, seconds in enumerate(recoveries))
    return Verdict(
        valid=True,
        evidence={"acked": 5012},
        availability=Availability(longest=outage, recoveries=there),
    )


def test_the_figures_of_a_run(tmp_path: Path) -> None:
    """The figures are throughput over the time limit, longest wait, and each fault's proof."""
    outage = Outage("x-0", 3 * SECOND, int(6.25 * SECOND))
    assert figures.of_run(folder(tmp_path), verdict(outage=outage), Plan(time_limit_s=20.0)) == {
        "throughput_hz": 250.6,
        "unavailable_s": 3.25,
        "recovery_s": 1.5,
        "faults": (FaultProof("kill", True), FaultProof("pause", False)),
    }


@pytest.mark.parametrize(
    ("writes", "whole", "slowest"),
    [
        ((), True, 1.5),
        ((0.4, 0.2), True, 1.5),
        ((0.4, 4.2), True, 4.2),
        ((0.4, None), True, None),
        ((0.4,), False, None),
        ((0.4,), None, None),
    ],
)
def test_recovery_is_what_took_longest(
    writes: Sequence[float | None], whole: bool | None, slowest: float | None, tmp_path: Path
) -> None:
    """Recovery is the slowest return, of a partition after a heal or of the cluster at the end.

    If any of them never recovered, there is no figure.
    """
    found: dict[str, Any] = figures.of_run(
        folder(tmp_path, recovered=whole), verdict(*writes), Plan(time_limit_s=20.0)
    )
    assert found["recovery_s"] == slowest


@pytest.mark.parametrize("recovered", [True, False])
def test_the_recovery_of_a_long_run_is_in_a_later_file(tmp_path: Path, recovered: bool) -> None:
    """A history of several files has one recovery, which may begin in one and end in the next."""
    path = folder(tmp_path, recovered=recovered) / "history.jsonl"
    events = list(history.read(path))
    for number, op in enumerate(events):
        history.write(history.segment(path, number), [op])
    found: dict[str, Any] = figures.of_run(tmp_path, verdict(), Plan(time_limit_s=20.0))
    assert found["recovery_s"] == (1.5 if recovered else None)


def test_of_a_run_that_broke_off_there_are_its_faults(tmp_path: Path) -> None:
    """A run that broke off has its faults as figures, if there were any."""
    assert figures.of_remains(tmp_path) == {"faults": ()}
    assert len(figures.of_remains(folder(tmp_path))["faults"]) == 2
