"""Runs the cases of a suite in order, each once, and stores their results.

After every case ``gate.json`` contains everything that is known. A case that no longer fits into
the budget is skipped and reported; no case is retried.
"""

import contextlib
import math
import os
import shutil
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

import msgspec

from harness.app import files, private, signals, versions
from harness.app import run as run_
from harness.app.check import reasons
from harness.app.gate import console, figures, junit, outcome, page, summary
from harness.app.gate.outcome import Case, Gate, Status
from harness.app.gate.suite import Ready, Suite
from harness.app.lake.add import add_run
from harness.app.lake.store import Lake
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Done, Failed, Interrupted, Spark
from model.plan import Plan

_STATUS: dict[Any, Status] = {True: "valid", False: "invalid", "unknown": "unknown"}


class Run(Protocol):
    """The function that runs a case: :func:`harness.app.run.run`."""

    def __call__(
        self, plan: Plan, results: Path, *, inline: bool, screen: Screen, spark: Spark | None
    ) -> Done: ...


def run_gate(
    suite: Suite,
    cases: Sequence[Ready],
    results: Path,
    *,
    screen: Screen,
    junit_to: Path | None = None,
    seed: int | None = None,
    mutants: Sequence[str] = (),
    lake: Lake | None = None,
    run: Run = run_.run,
    clock_s: Callable[[], float] = time.monotonic,
) -> tuple[Gate, Path]:
    """Run all cases that the budget allows; return the gate and its folder in ``results/gates``.

    ``seed`` and ``mutants`` are only recorded: the cases already contain them. Each run is added to
    the ``lake``. An interruption ends the gate cleanly. Raises
    :class:`~harness.app.refused.Refused` if a requested file cannot be written, and
    :class:`~harness.app.run.Failed` if Spark does not start, before any case runs.
    """
    if junit_to is not None:
        junit_to = _prepare_path(junit_to, suite)
    utc = time.gmtime()
    folder = run_.new_folder(results / "gates", suite.name, utc)
    gate = Gate(
        suite=suite.name,
        name=folder.name,
        began=time.strftime("%Y-%m-%dT%H:%M:%SZ", utc),
        commit=versions.commit(),
        versions=versions.in_use(),
        seed=seed,
        mutants=tuple(mutants),
        budget_s=suite.budget_s,
        planned=len(cases),
    )
    screen.say(f"{folder}: {len(cases)} cases")
    with _Ending() as ending, contextlib.ExitStack() as stack:
        spark = None if suite.inline else stack.enter_context(_started(folder))
        series = _Series(suite, folder, screen, run, spark, clock_s, ending, lake)
        gate = series.run(gate, cases)
        _write_files(gate, folder, screen, junit_to)
    return gate, folder


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[Spark]:
    """Start Spark before the first case, because without it no case can be judged."""
    with Spark(folder) as spark:
        spark.start()
        try:
            spark.session()
        except Exception as error:
            raise Failed(str(error), folder) from error
        yield spark


class _Series:
    """The cases of one gate, run one after another."""

    def __init__(
        self,
        suite: Suite,
        folder: Path,
        screen: Screen,
        run: Run,
        spark: Spark | None,
        clock_s: Callable[[], float],
        ending: "_Ending",
        lake: Lake | None,
    ) -> None:
        self._suite = suite
        self._folder = folder
        self._screen = screen
        self._run = run
        self._spark = spark
        self._clock_s = clock_s
        self._ending = ending
        self._lake = lake
        self._began_s = clock_s()
        self._beside: dict[tuple[str, str], list[float]] = {}
        """The seconds that cases took in addition to their time limits, by target and system."""

    def run(self, gate: Gate, cases: Sequence[Ready]) -> Gate:
        kept = _Sample(self._suite.keep, sum(case.left_out is None for case in cases))
        outcome.write(self._folder, gate)
        for number, ready in enumerate(cases, start=1):
            place = f"{number} of {len(cases)} · {ready.asked.name}"
            case = self._case(ready, self._screen.part(place))
            spare, ran = None, case.folder
            if ready.left_out is None and not kept.keeps(passed=case.status == "valid"):
                spare, case = case.folder, msgspec.structs.replace(case, folder=None)
            done = (*gate.cases, case)
            gate = msgspec.structs.replace(
                gate,
                cases=done,
                valid=outcome.overall(done, finished=len(done) == len(cases)),
                seconds=round(self._now_s(), 3),
                interrupted=self._ending.asked,
            )
            with contextlib.suppress(OSError):  # for example a full disk; reported at the end
                outcome.write(self._folder, gate)
            if self._lake is not None and ran is not None:
                self._add(self._lake, self._folder / ran, case)
            if spare is not None:
                self._remove(self._folder / spare)
            self._screen.say(console.line(case, number, len(cases)))
        return gate

    def _add(self, lake: Lake, run: Path, case: Case) -> None:
        """Add a run to the lake; the gate's verdict does not depend on whether that succeeds."""
        about = {"suite": self._suite.name, "configuration": case.configuration}
        why = add_run(lake, run, kept=None if case.folder is None else run, about=about)
        if why is not None:
            self._screen.say(f"{run.name} was not added to {lake.folder}: {why}")

    def _remove(self, folder: Path) -> None:
        try:
            shutil.rmtree(folder)
        except OSError as error:  # a leftover folder must not end the gate
            self._screen.say(f"{folder} could not be removed: {error}")

    def _now_s(self) -> float:
        return self._clock_s() - self._began_s

    def _case(self, ready: Ready, screen: Screen) -> Case:
        if ready.left_out is not None:
            return self._skipped(ready, ready.left_out, excused=True)
        if self._ending.asked:
            return self._skipped(ready, "the gate was interrupted")
        budget_s = self._suite.budget_s
        if budget_s is not None and self._now_s() + self._needs_s(ready.plan) > budget_s:
            return self._skipped(
                ready, f"the rest of the budget of {budget_s / 60:g} min is too short"
            )
        began_s = self._now_s()
        fields = self._tried(ready.plan, screen)
        seconds = self._now_s() - began_s
        beside_s = max(0.0, seconds - ready.plan.time_limit_s)
        self._beside.setdefault(_place(ready.plan), []).append(beside_s)
        return _described(ready, began_s=round(began_s, 3), seconds=round(seconds, 3), **fields)

    def _needs_s(self, plan: Plan) -> float:
        """Estimate a case's duration: its time limit, and the median overhead of its place."""
        beside_s = self._beside.get(_place(plan))
        return plan.time_limit_s + (statistics.median(beside_s) if beside_s else 0.0)

    def _skipped(self, ready: Ready, why: str, *, excused: bool = False) -> Case:
        began_s = round(self._now_s(), 3)
        return _described(ready, status="skipped", why=(why,), excused=excused, began_s=began_s)

    def _tried(self, plan: Plan, screen: Screen) -> dict[str, Any]:
        """Run a case, and return the fields that describe its result."""
        try:
            with self._ending.at_once():
                (verdict, findings), folder = self._run(
                    plan,
                    self._folder / "runs",
                    inline=self._suite.inline,
                    screen=screen,
                    spark=self._spark,
                )
        except (Interrupted, KeyboardInterrupt) as error:
            self._ending.asked = True
            return self._failed(str(error) or "interrupted", getattr(error, "folder", None))
        except Failed as error:
            return self._failed(str(error), error.folder)
        except Exception as error:  # noqa: BLE001 - the cases after it need not suffer for it
            return self._failed(f"{type(error).__name__}: {error}", None)
        fields: dict[str, Any] = {}
        why = files.attempted(
            lambda: fields.update(figures.of_run(folder, verdict, plan)),
            f"{folder}: no figures",
            folder,
        )
        if why is not None:
            self._screen.say(why)
        return {
            "status": _STATUS[verdict.valid],
            "why": tuple(reasons(verdict, findings)),
            "anomalies": verdict.anomalies,
            "allowed": verdict.allowed,
            "evidence": verdict.evidence,
            "folder": self._relative(folder),
            **fields,
        }

    def _failed(self, why: str, folder: Path | None) -> dict[str, Any]:
        fields: dict[str, Any] = {"status": "failed", "why": (" ".join(why.split()),)}
        if folder is not None:
            fields["folder"] = self._relative(folder)
            with contextlib.suppress(Exception):  # files may be torn; the case has failed anyway
                fields |= figures.of_remains(folder)
        return fields

    def _relative(self, folder: Path) -> str:
        return folder.relative_to(self._folder).as_posix()


def _place(plan: Plan) -> tuple[str, str]:
    """Return what a case's start and end depend on most: its target and its system."""
    return plan.target, plan.system


def _described(ready: Ready, **fields: Any) -> Case:
    asked = ready.asked
    return Case(
        name=asked.name,
        workload=asked.plan.workload,
        nemesis=asked.nemesis,
        configuration=asked.configuration,
        target=asked.plan.target,
        system=asked.plan.system,
        seed=asked.plan.seed,
        mutants=asked.plan.mutants,
        **fields,
    )


class _Sample:
    """Chooses which valid cases keep their folders: a fixed number, spread over all cases."""

    def __init__(self, keep: int, cases: int) -> None:
        self._keep = keep
        self._cases = cases
        self._seen = 0
        self._kept = 0

    def keeps(self, *, passed: bool) -> bool:
        """Return whether the next case keeps its folder.

        A case that did not pass always keeps its folder. If it would have been part of the sample,
        the next case that passes replaces it there.
        """
        self._seen += 1
        if not passed:
            return True
        if self._kept >= math.ceil(self._keep * self._seen / self._cases):
            return False
        self._kept += 1
        return True


class _Ending:
    """Handles SIGINT and SIGTERM: they end the running case, and no further case begins.

    Files that are written between two cases are completed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._at_once = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._handle) for number in signals.ending()}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise KeyboardInterrupt on a signal within the block."""
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._at_once:
            raise KeyboardInterrupt


def _prepare_path(path: Path, suite: Suite) -> Path:
    """Resolve the path of the JUnit file, check that it is writable, and remove an older file.

    Refuses a path at which there is anything but a regular file, or a file of the suite itself.
    """
    try:
        there = path.resolve()
    except RuntimeError:  # a loop of links; Python 3.13 leaves it as it is
        there = path
    try:
        if there.is_symlink() or (there.exists() and not there.is_file()):
            raise Refused(f"--junit {path}: this path exists and is not a regular file")
        if there in [file.resolve() for file in suite.files]:
            raise Refused(f"--junit {path}: this file belongs to the suite itself")
        with private.as_asked():
            there.parent.mkdir(parents=True, exist_ok=True)
        _as_asked(there, b"")
        there.unlink()
    except FileExistsError:
        raise Refused(f"--junit {path}: {there.parent} is not a folder") from None
    except OSError as error:
        raise Refused(f"--junit {path}: {error.strerror}") from None
    return there


def _write_files(gate: Gate, folder: Path, screen: Screen, junit_to: Path | None) -> None:
    """Write the gate's files for users and tools; an error in one does not prevent the others."""
    xml = junit.encode(gate, folder)
    text = summary.markdown(gate, folder)
    steps: list[tuple[str, Callable[[], object]]] = [
        (outcome.FILE, lambda: outcome.write(folder, gate)),
        ("junit.xml", lambda: files.replace(folder / "junit.xml", xml)),
        ("summary.md", lambda: files.replace(folder / "summary.md", text.encode())),
        ("index.html", lambda: page.render(folder, outcome.earlier(folder, gate.suite))),
    ]
    if junit_to is not None:
        steps.append((str(junit_to), lambda: _as_asked(junit_to, xml)))
    if github := os.environ.get("GITHUB_STEP_SUMMARY"):
        steps.append((github, lambda: _append(Path(github), text)))
    for name, step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the gate's word stands without it
            screen.say(f"{name} could not be written: {type(error).__name__}: {error}")


def _as_asked(path: Path, content: bytes) -> None:
    """Write a file that the user requested elsewhere, with the user's own umask."""
    with private.as_asked():
        files.replace(path, content)


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
