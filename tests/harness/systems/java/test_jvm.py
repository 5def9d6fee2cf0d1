"""Java is found, and its command has the options of a test in Java's order."""

from pathlib import Path

import pytest

from harness.cluster.system import SystemUnavailable
from harness.systems.java import jvm
from harness.systems.java.jvm import Runtime


def program(folder: Path) -> Path:
    """Create an executable file called ``java``."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.touch(mode=0o755)
    return java


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the Java of this machine."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``JAVA_HOME`` is preferred to the path."""
    on_path, at_home = program(tmp_path / "path"), program(tmp_path / "home" / "bin")
    assert jvm.find() == on_path
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert jvm.find() == at_home


def test_a_home_without_java_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ``JAVA_HOME`` without an executable ``bin/java`` does not count."""
    on_path, at_home = program(tmp_path / "path"), program(tmp_path / "home" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    at_home.chmod(0o644)
    assert jvm.find() == on_path
    at_home.unlink()
    assert jvm.find() == on_path


def test_without_java_the_error_says_what_helps() -> None:
    """A machine without Java is an error that names ``make setup`` and ``JAVA_HOME``."""
    with pytest.raises(SystemUnavailable, match="run `make setup`, or set JAVA_HOME"):
        jvm.find()


def test_a_command_has_options_before_the_class_and_arguments_after(tmp_path: Path) -> None:
    """Java takes what precedes the main class as its own, and gives what follows to the program."""
    java = program(tmp_path / "path")
    command = jvm.command(
        Runtime(jvm.find(), [Path("/jars/*"), Path("/more.jar")]),
        "a.Main",
        ["first", "second"],
        heap_mb=256,
        folder=Path("/node"),
        properties={"name": "value", "other": "x y"},
        options=("-Xss1m",),
    )
    assert command[0] == str(java)
    assert command[-5:] == ["-cp", "/jars/*:/more.jar", "a.Main", "first", "second"]
    options = command[1:-5]
    assert options[-1] == "-Xss1m", "the caller's options win"
    assert {"-Xmx256m", "-Dname=value", "-Dother=x y"} < set(options)
    assert "-XX:ErrorFile=/node/hs_err_pid%p.log" in options
    assert set(jvm.OPTIONS) < set(options)


def test_packages_of_java_are_opened(tmp_path: Path) -> None:
    """Each ``--add-opens`` is followed by a package that it opens to all code."""
    program(tmp_path / "path")
    command = jvm.command(
        Runtime(jvm.find(), []), "M", [], heap_mb=1, folder=Path("/node"), properties={}
    )
    opened = [command[at + 1] for at, option in enumerate(command) if option == "--add-opens"]
    assert "java.base/java.nio=ALL-UNNAMED" in opened
    assert all(word.startswith("java.base/") and word.endswith("=ALL-UNNAMED") for word in opened)
