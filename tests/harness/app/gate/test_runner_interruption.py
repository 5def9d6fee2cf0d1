"""A gate that is interrupted or killed keeps what it has."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.app.gate import outcome
from harness.app.gate.outcome import Gate, exit_status
from harness.app.run import Interrupted
from tests.harness.app.gate.fake_runs import VALID, FakeRun, asked, carried_out, names, statuses


@pytest.mark.parametrize("ended", [Interrupted("interrupted (crash.txt)"), KeyboardInterrupt()])
def test_an_interrupted_gate_keeps_what_there_is(ended: BaseException, tmp_path: Path) -> None:
    """After an interruption the running case is failed and no other begins.

    All files are written.
    """
    run = FakeRun(VALID, ended)
    gate, folder, _ = carried_out(tmp_path, run, junit_to=tmp_path / "junit.xml")
    assert statuses(gate) == ["valid", "failed", "skipped"]
    assert gate.cases[1].why[0].startswith("interrupted")
    assert gate.cases[2].why == ("the gate was interrupted",)
    assert gate.interrupted
    assert exit_status(gate) == 70
    assert len(run.plans) == 2
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}
    assert (tmp_path / "junit.xml").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_case_that_runs(number: signal.Signals, tmp_path: Path) -> None:
    """A signal ends the running case; afterwards the earlier signal handlers are restored."""
    before = signal.getsignal(number)
    gate, _, _ = carried_out(tmp_path, FakeRun(VALID, lambda: os.kill(os.getpid(), number)))
    assert statuses(gate) == ["valid", "failed", "skipped"]
    assert signal.getsignal(number) is before


def test_a_signal_between_two_cases_waits_for_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal while a file is written takes effect when it is complete."""
    write = outcome.write

    def interrupted(folder: Path, gate: Gate) -> None:
        if len(gate.cases) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        write(folder, gate)

    monkeypatch.setattr(outcome, "write", interrupted)
    gate, folder, _ = carried_out(tmp_path, FakeRun())
    assert statuses(gate) == ["valid", "skipped", "skipped"]
    assert gate.interrupted
    assert exit_status(gate) == 70
    assert outcome.read(folder) == gate


def test_every_case_is_in_the_file_before_the_next_begins(tmp_path: Path) -> None:
    """Each case is in ``gate.json`` before the next begins, for readers and after a SIGKILL."""
    seen: list[tuple[int, object, set[str]]] = []

    def look() -> None:
        (folder,) = (tmp_path / "gates").iterdir()
        there = outcome.read(folder)
        assert there is not None
        seen.append((len(there.cases), there.valid, names(folder / "runs")))

    carried_out(tmp_path, FakeRun(look, look, look), asked(3, keep=1))
    assert seen == [
        (0, "unknown", {"run-0"}),
        (1, "unknown", {"run-0", "run-1"}),
        (2, "unknown", {"run-0", "run-2"}),
    ]


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {root!r}]
import fake_runs as t
run = t.FakeRun(t.LOST, lambda: os.kill(os.getpid(), signal.SIGKILL))
t.carried_out(Path({where!r}), run, junit_to=Path({where!r}) / "junit.xml")
"""


@pytest.mark.slow
def test_a_killed_gate_leaves_what_it_knew(tmp_path: Path, repository: Path) -> None:
    """A killed gate leaves a complete ``gate.json`` with the cases that had ended.

    A JUnit file of an earlier gate is removed, so that it cannot be taken for this one's.
    """
    (tmp_path / "junit.xml").write_text("<testsuites/>")
    code = KILLED.format(
        tests=str(Path(__file__).parent), root=str(repository), where=str(tmp_path)
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, cwd=repository)
    assert done.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "gates").iterdir()
    gate = outcome.read(folder)
    assert gate is not None
    assert statuses(gate) == ["invalid"]
    assert (gate.finished, gate.valid, exit_status(gate)) == (False, False, 1)
    assert not (tmp_path / "junit.xml").exists()
