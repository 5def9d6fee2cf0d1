"""Printed commands work in the shell in which the program was started."""

import sys
from pathlib import Path

import pytest

from harness.app import command_line

SHELL = "/usr/bin:/bin"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the program in a virtual environment in the current folder."""
    there = tmp_path / ".venv" / "bin" / "faultline"
    there.parent.mkdir(parents=True)
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(sys, "argv", [str(there)])
    monkeypatch.setenv("PATH", SHELL)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return there


@pytest.mark.usefixtures("installed")
def test_started_by_a_path() -> None:
    """A program started by a path is printed with its relative path, quoted for the shell."""
    assert command_line.command("replay", Path("a b")) == ".venv/bin/faultline replay 'a b'"


def test_started_from_elsewhere(
    installed: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is absolute if it is outside the current folder."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert command_line.command("check") == f"{installed} check"


def test_on_a_path_that_is_ours_alone(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is printed if PATH has the program only because ``make`` added its environment.

    The user's shell does not have that entry.
    """
    monkeypatch.setenv("PATH", f"{installed.parent}:{SHELL}")
    assert command_line.command("check") == ".venv/bin/faultline check"


def test_in_an_activated_environment(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an activated environment the bare name is printed."""
    monkeypatch.setenv("PATH", f"{installed.parent}:{SHELL}")
    monkeypatch.setenv("VIRTUAL_ENV", str(installed.parent.parent))
    assert command_line.command("check") == "faultline check"


def test_installed_for_the_user(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link on PATH into an environment counts as the program."""
    link = tmp_path / "bin" / "faultline"
    link.parent.mkdir()
    link.symlink_to(installed)
    monkeypatch.setenv("PATH", f"{link.parent}:{SHELL}")
    monkeypatch.setattr(sys, "argv", [str(link)])
    assert command_line.command("check") == "faultline check"


def test_started_as_a_module(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program started as a module is printed as the interpreter with ``-m``."""
    monkeypatch.setattr(sys, "argv", [str(Path("harness", "app", "cli", "__main__.py"))])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "harness.app.cli", "check"])
    monkeypatch.setattr(sys, "executable", str(installed.with_name("python")))
    assert command_line.command("check") == ".venv/bin/python -m harness.app.cli check"


def test_started_by_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that uses the modules prints the bare name."""
    monkeypatch.setattr(sys, "argv", ["examples/05_judge_again.py"])
    assert command_line.command("check") == "faultline check"
