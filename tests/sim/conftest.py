"""``faultline`` as a user calls it, each time in a process of its own that pins its environment."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import plan_resolution
from model.plan import Plan

VALID, INVALID = 0, 1


@dataclass(frozen=True)
class CommandResult:
    """The result of a command."""

    status: int
    verdict: dict[str, Any]
    folder: Path

    def hash_of(self, name: str) -> str:
        """The hash of a file in its folder."""
        return sha256((self.folder / name).read_bytes()).hexdigest()


Faultline = Callable[..., CommandResult]


@pytest.fixture
def faultline(project_environment: dict[str, str], tmp_path: Path) -> Faultline:
    """Runs a command that makes a run's folder; ``results`` names its parent, below the test's
    own."""

    def call(
        *words: object, results: str = "results", cwd: Path = tmp_path, **environment: str
    ) -> CommandResult:
        there = tmp_path / results
        ended = subprocess.run(
            ["faultline", *map(str, words), "--inline", "--json", "--results", str(there)],
            env=project_environment | environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert ended.stdout, ended.stderr
        (folder,) = there.iterdir()
        return CommandResult(ended.returncode, json.loads(ended.stdout), folder)

    return call


@dataclass(frozen=True)
class Done:
    """A simulation that has ended."""

    folder: Path

    @property
    def verdict(self) -> dict[str, Any]:
        """The content of ``verdict.json``."""
        verdict: dict[str, Any] = json.loads((self.folder / "verdict.json").read_text())
        return verdict

    @property
    def schedule(self) -> list[dict[str, Any]]:
        """The row of each fault, in the order of their ends."""
        lines = (self.folder / "schedule.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


Simulate = Callable[[Plan], Done]


@pytest.fixture(scope="session")
def simulator() -> Iterator[subprocess.Popen[str]]:
    """A pinned process that simulates (``simulator.py``), so that a test always has the same
    result."""
    here = Path(__file__).resolve().parent
    with subprocess.Popen(
        [sys.executable, str(here / "simulator.py")],
        cwd=here.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def simulate(simulator: subprocess.Popen[str], tmp_path: Path) -> Simulate:
    """Simulates a plan as requested, in a folder below the test's own, and judges it."""
    count = 0

    def call(asked: Plan) -> Done:
        nonlocal count
        count += 1
        path, folder = tmp_path / f"plan{count}.json", tmp_path / f"run{count}"
        path.write_bytes(msgspec.json.encode(plan_resolution.resolve(asked)))
        assert simulator.stdin is not None
        assert simulator.stdout is not None
        simulator.stdin.write(json.dumps([str(path), str(folder)]) + "\n")
        simulator.stdin.flush()
        answer = json.loads(simulator.stdout.readline() or '"the simulator has ended"')
        assert answer == "done", answer
        return Done(folder)

    return call
