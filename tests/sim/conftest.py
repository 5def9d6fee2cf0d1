"""``faultline`` as a user calls it, each time in a process of its own, which pins itself."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

VALID, INVALID = 0, 1


@dataclass(frozen=True)
class Told:
    """What came of a command."""

    status: int
    verdict: dict[str, Any]
    folder: Path

    def hash_of(self, name: str) -> str:
        """Of a file in its folder."""
        return sha256((self.folder / name).read_bytes()).hexdigest()


Faultline = Callable[..., Told]


@pytest.fixture
def faultline(project_environment: dict[str, str], tmp_path: Path) -> Faultline:
    """Runs a verb that makes a run's folder; ``results`` names where, below the test's own."""

    def call(
        *words: object, results: str = "results", cwd: Path = tmp_path, **environment: str
    ) -> Told:
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
        return Told(ended.returncode, json.loads(ended.stdout), folder)

    return call
