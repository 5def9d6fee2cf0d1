"""A run whose harness is killed leaves a history that can be judged, and no processes.

A run has a mark in its environment, which everything that it starts inherits. So the test finds
what is left of the run, whatever the harness had recorded.
"""

import contextlib
import json
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.app import catalogue
from model import history
from model.op import NEMESIS, RECOVER, Op

VALID, UNKNOWN, WRONG_REQUEST = 0, 2, 64
MARK = "FAULTLINE_TEST_SIGKILL"
PATIENCE_S = 60.0
"""How long a run may take to reach a phase; containers start slowly."""

ENDS_BY_ITSELF_S = 6.0
"""A JVM ends when its standard input is closed, but in its first seconds it does not check."""

PLAN = """
workload = "idempotent"
nemesis = ["kill", "partition"]
time-limit = 10
concurrency = 6

[[schedule]]
id = 1
at_s = 1.0
duration_s = 1.5
fault = "partition-one"
targets = "controller"
options = { from = ["brokers", "zookeeper"] }

# Last, since a busy machine may take seconds to start it again.
[[schedule]]
id = 2
at_s = 4.0
duration_s = 2.0
fault = "kill"
targets = "leader:topic0-0"
"""

pytestmark = [pytest.mark.prove, pytest.mark.cluster, pytest.mark.timeout(300)]


REAL = "apache-kafka:3.9.1"
"""A system whose nodes are processes, too, but not of this project."""


def targets() -> list[Any]:
    """Every target that starts its nodes; containers need an engine."""
    marks = {"containers": [pytest.mark.docker]}
    return [
        pytest.param(name, marks=marks.get(name, ()))
        for name in catalogue.TARGETS
        if name != "external"
    ]


REAPED = ("faultline: ended processes", "faultline: removed from the container engine")


class Run:
    """``faultline run`` as a process."""

    def __init__(
        self, plan: Path, target: str, results: Path, environment: dict[str, str], *options: str
    ) -> None:
        self.mark = str(results)
        self._target = target
        self._results = results
        place = ("--system", target) if target == REAL else ("--target", target)
        where = (*place, "--results", str(results))
        self._harness = subprocess.Popen(
            ["faultline", "run", str(plan), "--json", *where, *options],
            env=environment | {MARK: self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def folder(self) -> Path | None:
        """The run's folder, once it exists."""
        return next(iter(sorted(self._results.glob("*"))), None)

    def ops(self) -> list[Op]:
        """The operations recorded so far."""
        path = self.folder and self.folder / "history.jsonl"
        return list(history.read(path)) if path and path.exists() else []

    def has(self, name: str) -> bool:
        """Does the run's folder have a file of this name?"""
        return self.folder is not None and any(self.folder.glob(name))

    def wait_for(self, there: Callable[["Run"], bool]) -> None:
        """Wait until the run has reached this phase."""
        end_s = time.monotonic() + PATIENCE_S
        while not there(self):
            assert self._harness.poll() is None, self._harness.communicate()[1]
            assert time.monotonic() < end_s, "it never came to the moment"
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the harness alone with SIGKILL."""
        self._harness.kill()
        self._harness.communicate()

    def clear(self) -> None:
        """Kill everything that a failed test has left."""
        self.kill()
        for process in self._processes():
            process.kill()

    def end(self) -> tuple[int, dict]:  # type: ignore[type-arg]
        """Return the exit status and the verdict."""
        told, error = self._harness.communicate(timeout=240)
        assert told, error
        return self._harness.returncode, json.loads(told)

    def left(self) -> list[str]:
        """Return the processes and the engine's objects that are left of the run."""
        return [*map(str, self._processes()), *self._things()]

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
                if process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def _things(self) -> Iterator[str]:
        if self.folder is None or self._target != "containers":
            return
        for kind in (["ps", "-a"], ["network", "ls"], ["volume", "ls"]):
            label = f"label=faultline={self.folder.name}"
            told = subprocess.run(
                ["docker", *kind, "-q", "--filter", label],
                capture_output=True,
                text=True,
                check=True,
            )
            yield from told.stdout.split()


Start = Callable[..., Run]


@dataclass(frozen=True)
class Phase:
    """A phase of a run."""

    name: str
    there: Callable[[Run], bool]
    """Has the phase begun?"""
    seconds: float
    """How long the phase takes, roughly."""


def _fault(run: Run) -> bool:
    return any(op.process == NEMESIS for op in run.ops())


def _recovery(kind: str) -> Callable[[Run], bool]:
    return lambda run: any(op.f == RECOVER and op.type == kind for op in run.ops())


PHASES = {
    phase.name: phase
    for phase in (
        Phase("start-up", lambda run: run.folder is not None, 1.0),
        Phase("main phase", lambda run: bool(run.ops()), 1.0),
        Phase("fault", _fault, 4.0),
        Phase("healing", _recovery("invoke"), 0.5),
        Phase("final reads", _recovery("info"), 2.0),
        Phase("judging", lambda run: run.has(".check-*") or run.has("history.parquet"), 3.0),
    )
}


@pytest.fixture
def environment(project_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment of a user with the project on PATH and nothing else running."""
    return project_environment | {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def start(environment: dict[str, str], plan: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts runs, each with a results folder of its own."""
    runs: list[Run] = []

    def start(target: str, *options: str) -> Run:
        results = tmp_path / f"results-{len(runs)}"
        runs.append(Run(plan, target, results, environment, *options))
        return runs[-1]

    yield start
    for run in runs:
        run.clear()


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def killed_in(phase: Phase, rng: random.Random, run: Run) -> Run:
    """Kill the run at a random moment of this phase."""
    run.wait_for(phase.there)
    time.sleep(rng.uniform(0, phase.seconds))
    run.kill()
    return run


def is_judged(run: Run, environment: dict[str, str]) -> int:
    """Check that the history so far can be judged without a false anomaly.

    Return the exit status.
    """
    assert run.folder is not None
    done = subprocess.run(
        ["faultline", "check", str(run.folder), "--inline"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.ops():
        assert done.returncode in (VALID, UNKNOWN), done.stdout + done.stderr
    else:
        assert done.returncode == WRONG_REQUEST, done.stdout + done.stderr
        *ended, line = done.stderr.splitlines()  # lines about the run, if it left anything
        assert all(each.startswith(REAPED) for each in ended), done.stderr
        assert line.startswith("faultline: "), done.stderr
    return done.returncode


def is_clean(after: list[Run], run: Run, environment: dict[str, str]) -> None:
    """Check that the run ends as if no other had been killed before it, and leaves nothing."""
    run.wait_for(lambda run: bool(run.ops()))
    end_s = time.monotonic() + ENDS_BY_ITSELF_S
    while left := [thing for killed in after for thing in killed.left()]:
        assert time.monotonic() < end_s, left
        time.sleep(0.1)
    status, verdict = run.end()
    assert status == VALID, verdict
    assert verdict["evidence"]["faults"] == verdict["evidence"]["faults_effective"] == 2
    assert run.left() == []
    state = Path(environment["XDG_STATE_HOME"])
    assert [path for path in state.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("target", targets())
def test_one_killed_after_the_other(target: str, start: Start, environment: dict[str, str]) -> None:
    """Three runs are killed, in a fault, at start-up and in the final reads; the next is clean."""
    rng = random.Random(3)
    killed: list[Run] = []
    for name in ("fault", "start-up", "final reads"):
        killed.append(killed_in(PHASES[name], rng, start(target, "--inline")))
        is_judged(killed[-1], environment)
    is_clean(killed, start(target, "--inline"), environment)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.parametrize("target", targets())
def test_killed_at_any_moment(
    target: str, number: int, start: Start, environment: dict[str, str]
) -> None:
    """A run can be killed in any phase, including Spark's start and judging."""
    phase = list(PHASES.values())[number % len(PHASES)]
    run = killed_in(phase, random.Random(f"{target}:{number}"), start(target))
    status = is_judged(run, environment)
    assert status == VALID or phase.name != "judging"
    is_clean([run], start(target), environment)


@pytest.mark.real_kafka
@pytest.mark.parametrize("number", range(10))
def test_no_jvm_outlives_the_next_start(
    number: int, start: Start, environment: dict[str, str]
) -> None:
    """A run of Apache Kafka can be killed in any phase; the next run ends its JVMs and proxies."""
    phase = list(PHASES.values())[number % len(PHASES)]
    killed = killed_in(phase, random.Random(number), start(REAL))
    is_judged(killed, environment)
    is_clean([killed], start(REAL), environment)
