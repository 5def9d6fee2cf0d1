import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from setup import environment, main, state
from setup.problem import CannotGoOn


def test_what_is_missing_ends_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set-up that cannot go on says so in one line on stderr and exits non-zero."""

    def missing(tools: Path) -> Path:
        raise CannotGoOn("There is no uv here: install uv.")

    for name in ("uv.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    monkeypatch.setattr(environment, "uv", missing)
    assert main.main(["true"], root=tmp_path) == 69
    assert capsys.readouterr().err == "There is no uv here: install uv.\n"


def test_the_command_runs_in_the_environment_that_was_set_up(
    repository: Path, tmp_path: Path
) -> None:
    """After the set-up, the command replaces its process, so that its exit status is the result."""
    for name in ("bin/java", "toxiproxy-server", "project/.venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    project = tmp_path / "project"
    (project / ".tools").mkdir()
    for name in ("uv.lock", "pyproject.toml"):
        (project / name).touch()
    (project / "setup").mkdir()
    for source in sorted((repository / "setup").glob("*.py")):
        (project / "setup" / source.name).write_bytes(source.read_bytes())
    variables = {
        "JAVA_HOME": str(tmp_path),
        "FAULTLINE_TOXIPROXY": str(tmp_path / "toxiproxy-server"),
    }
    state.save(project / ".tools" / "env.json", state.stamp(project), variables)

    done = subprocess.run(
        [sys.executable, "-m", "setup", "sh", "-c", 'echo "$JAVA_HOME"; exit 7'],
        cwd=project,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr, done.returncode) == (str(tmp_path), "", 7)


def test_the_set_up_needs_nothing_installed(repository: Path) -> None:
    """It runs before anything is installed: it imports the standard library and itself."""
    imported = set()
    for source in sorted((repository / "setup").glob("*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert imported - sys.stdlib_module_names == {"setup"}
