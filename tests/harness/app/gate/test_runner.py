"""A gate from its first case to its page, with fake runs."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from junitparser import JUnitXml

from checkers import findings as findings_
from checkers.verdict import Verdict
from harness.app import catalogue
from harness.app.gate import outcome, runner
from harness.app.gate.outcome import Gate, exit_status
from harness.app.gate.suite import Suite, load, ready, suite
from harness.app.judgements import Judged
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Done, Failed, Interrupted, Spark
from model import history
from model.finding import Finding
from model.op import NEMESIS, RECOVER, Op
from model.plan import Plan

Outcome = Verdict | BaseException | Callable[[], None]

VALID = Verdict(valid=True, evidence={"acked": 400})
UNKNOWN = Verdict(valid="unknown", unknown_because=("nothing was acknowledged",))
LOST = Verdict(valid=False, anomalies={"lost-write": 3}, evidence={"acked": 400})
FINDING = Finding(anomaly="lost-write", key="x-0", offset=118, ops=(), why="it was acknowledged")


class FakeRun:
    """A run that ends with the given outcomes and leaves a folder as a real one does."""

    def __init__(self, *outcomes: Outcome, took_s: float = 5.0) -> None:
        self.outcomes = list(outcomes)
        self.took_s = took_s
        self.now_s = 100.0
        self.plans: list[Plan] = []
        self.inline: list[bool] = []

    def __call__(
        self, plan: Plan, results: Path, *, inline: bool, screen: Screen, spark: Spark | None
    ) -> Done:
        folder = results / f"run-{len(self.plans)}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        self.plans.append(plan)
        self.inline.append(inline)
        self.now_s += self.took_s
        ended = self.outcomes.pop(0) if self.outcomes else VALID
        if isinstance(ended, Failed):
            ended.folder = folder
        if isinstance(ended, BaseException):
            raise ended
        if not isinstance(ended, Verdict):
            ended()
            ended = VALID
        found = [FINDING] if ended.anomalies else []
        findings_.write(folder / "findings.parquet", found)
        recovered = [
            Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f=RECOVER),
            Op(index=1, time_ns=10**9, process=NEMESIS, type="info", f=RECOVER,
               value={"recovered": True}),
        ]  # fmt: skip
        history.write(folder / "history.jsonl", recovered)
        return Done(Judged(ended, found), folder)


def asked(cases: int = 3, **changes: Any) -> Suite:
    """Make a suite of cases of 4 s each, which is too short for a fault."""
    seeds = ", ".join(map(str, range(1, cases + 1)))
    text = f"name = 'quick'\ntime-limit = 4\ninline = true\n[[matrix]]\nseed = [{seeds}]\n"
    document = tomllib.loads(f"{text}nemesis = [['none']]\n")
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    return suite({**document, **changed}, Path("quick.toml"))


def carried_out(
    tmp_path: Path, run: FakeRun, wanted: Suite | None = None, **options: Any
) -> tuple[Gate, Path, str]:
    """Run a gate; return it, its folder, and what was printed."""
    stream = StringIO()
    wanted = wanted or asked()
    gate, folder = runner.carry_out(
        wanted,
        ready(wanted),
        tmp_path,
        screen=Screen(stream),
        run=run,
        clock_s=lambda: run.now_s,
        **options,
    )
    return gate, folder, stream.getvalue()


def statuses(gate: Gate) -> list[str]:
    return [case.status for case in gate.cases]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_all_is_well(tmp_path: Path) -> None:
    """Each case runs once, in order.

    Its figures and all files for a CI system are in the folder.
    """
    run = FakeRun()
    gate, folder, told = carried_out(tmp_path, run, junit_to=tmp_path / "deep" / "junit.xml")
    assert statuses(gate) == ["valid"] * 3
    assert (gate.valid, exit_status(gate), gate.seconds) == (True, 0, 15.0)
    assert [plan.seed for plan in run.plans] == [1, 2, 3]
    assert run.inline == [True] * 3
    assert folder.parent == tmp_path / "gates"
    assert folder.name.endswith("Z-quick")
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}
    assert outcome.read(folder) == gate
    case = gate.cases[1]
    assert (case.began_s, case.seconds, case.throughput_hz) == (5.0, 5.0, 100.0)
    assert (case.recovery_s, case.evidence) == (1.0, {"acked": 400})
    (xml,) = JUnitXml.fromfile(str(tmp_path / "deep" / "junit.xml"))
    assert (xml.tests, xml.failures, xml.errors) == (3, 0, 0)
    assert [line[:14] for line in told.splitlines()[1:]] == [
        f"[{number}/3] VALID   " for number in (1, 2, 3)
    ]


def test_nothing_is_tried_twice_and_nothing_stops_the_rest(tmp_path: Path) -> None:
    """An invalid, failed or unknown case, or an exception, is reported and the next case begins."""
    run = FakeRun(LOST, Failed("OSError: no room (crash.txt)"), RuntimeError("oops"), UNKNOWN)
    gate, folder, _ = carried_out(tmp_path, run, asked(5))
    assert statuses(gate) == ["invalid", "failed", "failed", "unknown", "valid"]
    assert len(run.plans) == 5
    assert (gate.valid, exit_status(gate)) == (False, 1)
    why = [case.why for case in gate.cases]
    assert why[0] == ("lost-write 3 · partition x-0, offset 118: it was acknowledged",)
    assert why[1] == ("OSError: no room (crash.txt)",)
    assert why[2] == ("RuntimeError: oops",)
    assert why[3] == ("nothing was acknowledged",)
    assert [case.folder for case in gate.cases] == [
        "runs/run-0", "runs/run-1", None, "runs/run-3", "runs/run-4",
    ]  # fmt: skip
    xml = (folder / "junit.xml").read_text()
    assert "lost-write 3 · partition x-0, offset 118" in xml
    assert "lost-write" in (folder / "summary.md").read_text()
    assert "lost-write" in (folder / "index.html").read_text()


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [([VALID, Failed("x"), UNKNOWN], 70), ([VALID, UNKNOWN], 2), ([LOST, Failed("x")], 1)],
)
def test_the_exit_status_is_the_contracts(
    outcomes: Sequence[Outcome], status: int, tmp_path: Path
) -> None:
    """Exit status 1 outranks 70, and 70 outranks 2."""
    gate, _, _ = carried_out(tmp_path, FakeRun(*outcomes))
    assert exit_status(gate) == status


def test_what_no_longer_fits_is_not_begun(tmp_path: Path) -> None:
    """A case is begun only if its time limit and the usual overhead fit into the budget.

    The overhead is what earlier cases took beyond their time limits. A gate without all of its
    cases is unknown, and says why.
    """
    run = FakeRun(took_s=6.0)
    wanted = asked(4, budget_minutes=0.3)
    gate, _, _ = carried_out(tmp_path, run, wanted)
    assert statuses(gate) == ["valid", "valid", "valid", "skipped"]
    assert gate.cases[3].why == ("the rest of the budget of 0.3 min is too short",)
    assert (gate.valid, exit_status(gate), gate.budget_s) == ("unknown", 2, 18.0)
    run = FakeRun(took_s=6.0)
    wanted = asked(4, budget_minutes=17.9 / 60)
    gate, _, _ = carried_out(tmp_path / "less", run, wanted)
    assert len(run.plans) == 2


def test_a_shorter_case_may_still_fit(tmp_path: Path) -> None:
    """After a case that does not fit into the budget, a shorter one still runs."""
    seeds: list[dict[str, Any]] = [{"seed": [1]}, {"seed": [2], "time-limit": 9}, {"seed": [3]}]
    matrices = [{**matrix, "nemesis": [["none"]]} for matrix in seeds]
    wanted = asked(budget_minutes=0.2, matrix=matrices)
    gate, _, _ = carried_out(tmp_path, FakeRun(took_s=4.0), wanted)
    assert statuses(gate) == ["valid", "skipped", "valid"]


def test_an_optional_target_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of a missing optional target are skipped with the reason, and the gate is valid."""
    missing = dataclasses.replace(catalogue.TARGETS["containers"], refusal=lambda: "no engine")
    monkeypatch.setitem(catalogue.TARGETS, "containers", missing)
    matrix = {"target": ["processes", "containers"]}
    wanted = asked(optional_targets=["containers"], matrix=[matrix])
    gate, _, _ = carried_out(tmp_path, FakeRun(), wanted)
    assert statuses(gate) == ["valid", "skipped"]
    assert gate.cases[1].excused
    assert exit_status(gate) == 0


@pytest.mark.parametrize(
    ("keep", "unlucky", "kept"),
    [
        (0, (), []),
        (1, (), [0]),
        (2, (), [0, 3]),
        (2, (0, 3), [1, 4]),
        (3, (), [0, 2, 4]),
        (9, (), [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_sample_of_passes_is_kept(
    keep: int, unlucky: Sequence[int], kept: Sequence[int], tmp_path: Path
) -> None:
    """The folders of a sample of valid cases are kept, spread evenly and the same every time.

    If a case of the sample is kept anyway because it was not valid, the next valid one replaces it.
    The folders of all other valid cases are removed.
    """
    run = FakeRun(*(UNKNOWN if place in unlucky else VALID for place in range(6)))
    gate, folder, _ = carried_out(tmp_path, run, asked(6, keep=keep))
    passed = [place for place, case in enumerate(gate.cases) if case.status == "valid"]
    assert [place for place in passed if gate.cases[place].kept] == list(kept)
    there = names(folder / "runs")
    assert there == {Path(case.folder).name for case in gate.cases if case.folder}
    assert len(there) == len(kept) + len(unlucky)


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
import test_runner as t
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


def test_a_folder_that_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's folder that cannot be removed stays, a message says so, and the gate continues."""

    def fail(*_: object) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(shutil, "rmtree", fail)
    gate, _, told = carried_out(tmp_path, FakeRun(), asked(keep=0))
    assert statuses(gate) == ["valid"] * 3
    assert told.count("could not be removed: [Errno 13] not yours") == 3


def test_without_spark_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark cannot start, no case begins, because no run could be judged."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("There is no Java here")

    monkeypatch.setattr("checkers.session.start", fail)
    run = FakeRun()
    with pytest.raises(Failed, match="There is no Java here"):
        carried_out(tmp_path, run, asked(inline=False))
    assert not run.plans


@pytest.mark.parametrize("path", ["/dev/null/x/junit.xml", "folder"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    path: str, tmp_path: Path
) -> None:
    """A JUnit path that cannot be written is refused in one line before any case begins."""
    (tmp_path / "folder").mkdir()
    run = FakeRun()
    with pytest.raises(Refused, match="--junit "):
        carried_out(tmp_path, run, junit_to=tmp_path / path)
    assert not run.plans


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """A JUnit path that is a device, pipe or folder is refused; a link is followed and stays.

    Replacing a device would remove it for the whole machine.
    """
    pipe, link, there = tmp_path / "pipe", tmp_path / "link", tmp_path / "deep" / "junit.xml"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path):
        with pytest.raises(Refused, match="this path exists and is not a regular file"):
            carried_out(tmp_path, FakeRun(), junit_to=path)
    assert pipe.is_fifo()
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(Refused, match="this path exists and is not a regular file"):
        carried_out(tmp_path, FakeRun(), junit_to=link)
    link.unlink()
    link.symlink_to(there)
    carried_out(tmp_path, FakeRun(), junit_to=link)
    assert link.is_symlink()
    assert there.read_text().startswith("<testsuites")


def test_a_suite_is_not_replaced_by_its_junit_file(tmp_path: Path) -> None:
    """A JUnit path that is the suite's file, or a plan of it, by any name, is refused."""
    (tmp_path / "plan.toml").write_text("seed = 1\n")
    (tmp_path / "suite.toml").write_text("[[matrix]]\nplan = 'plan.toml'\n")
    (tmp_path / "link.xml").symlink_to("suite.toml")
    asked = dataclasses.replace(load(tmp_path / "suite.toml"), inline=True)
    for name in ("suite.toml", "plan.toml", "link.xml"):
        with pytest.raises(Refused, match="this file belongs to the suite itself"):
            carried_out(tmp_path, FakeRun(), asked, junit_to=tmp_path / name)
    assert (tmp_path / "suite.toml").stat().st_size
    assert (tmp_path / "plan.toml").stat().st_size


def test_a_file_that_cannot_be_written_meanwhile_does_not_lose_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ``gate.json`` cannot be written after a case, the gate continues and writes it later."""
    write = outcome.write

    def full(folder: Path, gate: Gate) -> None:
        if len(gate.cases) == 1:
            raise OSError(28, "No space left on device")
        write(folder, gate)

    monkeypatch.setattr(outcome, "write", full)
    gate, folder, _ = carried_out(tmp_path, FakeRun(LOST))
    assert (statuses(gate), exit_status(gate)) == (["invalid", "valid", "valid"], 1)
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}


class FakeSession:
    """A Spark session with its JVM."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.alive = True


def test_a_jvm_that_dies_costs_no_more_than_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the JVM ends during a case, a new Spark session judges the next cases.

    Each session is stopped once.
    """
    started: list[FakeSession] = []
    stopped: list[FakeSession] = []
    judges: list[Any] = []

    def start(home: Path) -> FakeSession:
        started.append(FakeSession(home))
        return started[-1]

    class Judging(FakeRun):
        def __call__(self, plan: Plan, results: Path, **options: Any) -> Done:
            options["spark"].start()
            judges.append(options["spark"].session())
            judges[-1].alive = plan.seed == 1
            return super().__call__(plan, results, **options)

    monkeypatch.setattr("checkers.session.start", start)
    monkeypatch.setattr("checkers.session.stop", stopped.append)
    monkeypatch.setattr("checkers.session.is_alive", lambda session: session.alive)
    gate, folder, _ = carried_out(tmp_path, Judging(LOST), asked(3, inline=False))
    assert (statuses(gate), exit_status(gate)) == (["invalid", "valid", "valid"], 1)
    assert [started.index(judge) for judge in judges] == [0, 0, 1]
    assert stopped == started
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}


def test_a_gate_is_told_before_spark_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are written before Spark is stopped, so that an error there cannot lose them."""

    there: set[str] = set()

    def stop(session: FakeSession) -> None:
        there.update(names(session.home))
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("checkers.session.start", FakeSession)
    monkeypatch.setattr("checkers.session.stop", stop)
    monkeypatch.setattr("checkers.session.is_alive", lambda session: session.alive)
    gate, _, _ = carried_out(tmp_path, FakeRun(LOST), asked(3, inline=False))
    assert exit_status(gate) == 1
    assert there == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}


def test_the_job_summary_is_added_to_githubs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is appended to that of GitHub's job, after the text of other steps."""
    github = tmp_path / "step.md"
    github.write_text("# Build\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(github))
    _, folder, _ = carried_out(tmp_path, FakeRun())
    assert github.read_text() == "# Build\n" + (folder / "summary.md").read_text()


def test_a_page_that_cannot_be_written_does_not_change_the_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that cannot be written is reported, and does not change the verdict."""

    def fail(*_: object) -> None:
        raise ValueError("no ink")

    monkeypatch.setattr("harness.app.gate.page.render", fail)
    gate, folder, told = carried_out(tmp_path, FakeRun())
    assert exit_status(gate) == 0
    assert "index.html could not be written: ValueError: no ink" in told
    assert names(folder) == {"gate.json", "junit.xml", "summary.md", "runs"}


def test_earlier_gates_are_on_the_page(tmp_path: Path) -> None:
    """Trends come from earlier gates of the same suite in the same results folder."""
    first, _, _ = carried_out(tmp_path, FakeRun())
    _, folder, _ = carried_out(tmp_path, FakeRun())
    assert names(tmp_path / "gates") >= {first.name, folder.name}
    assert len(names(tmp_path / "gates")) == 2
    assert [gate.name for gate in outcome.earlier(folder, "quick")] == [first.name]


def test_what_was_asked_in_the_suites_place_is_told(tmp_path: Path) -> None:
    """``--seed`` and ``--mutant`` are recorded in ``gate.json``, and mutants in each case."""
    wanted = suite({"inline": True, "matrix": [{}]}, Path("q.toml"), seed=7,
                   mutants=["no-min-isr-check"])  # fmt: skip
    _, folder, _ = carried_out(tmp_path, FakeRun(), wanted, seed=7, mutants=["no-min-isr-check"])
    there = json.loads((folder / "gate.json").read_text())
    assert (there["seed"], there["mutants"]) == (7, ["no-min-isr-check"])
    assert there["cases"][0]["mutants"] == ["no-min-isr-check"]
    assert there["cases"][0]["seed"] == 7
