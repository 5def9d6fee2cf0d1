"""Exit statuses: 64 with one line for a wrong request, 70 for a failure of faultline."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.app.cli.conftest import Call

QUICK = Path(__file__).resolve().parents[4] / "examples" / "suites" / "quick.toml"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["serve"], "No such command 'serve'."),
        (["x" * 9000], f"No such command '{'x' * 99}…'."),
        (
            ["run", "--seed", "x" * 9000],
            f"Invalid value for '--seed': '{'x' * 99}…' is not a valid",
        ),
        (["run", "--set", "x " * 9000], "--set x x x"),
        (["check", "x" * 9000], f"{'x' * 100}… cannot be read: File name too long"),
        (["run", "--brokers", "x"], "Invalid value for '--brokers': 'x' is not a valid integer."),
        (["run", "--bogus"], "No such option '--bogus'."),
        (["run", "--seed", "1", "--seed", "2"], "--seed is given more than once; give it once."),
        (["run", "--inline", "--spark"], "--inline/--spark is given more than once"),
        (["cluster", "up", "--brokers", "1", "--brokers=2"], "--brokers is given more than once"),
        (
            ["check", "x", "--set", "producer.acks=1", "--set", "producer.acks=all"],
            "--set producer.acks: this setting is given more than once; give it once",
        ),
        (
            ["run", "--set", "broker.a=1", "--set", "broker.b=1", "--set", "broker.a=1"],
            "--set broker.a: this setting is given more than once; give it once",
        ),
        (["run", "--target", "moon"], "--target: there is no moon; available: processes"),
        (["run", "--set", "acks=1"], "--set acks=1: write broker.KEY=VALUE"),
        (["run", "none.toml"], "none.toml: No such file or directory"),
        (["check"], "Missing argument 'DIR|FILE|URI…'."),
        (["check", "file:///nowhere"], "/nowhere does not exist"),
        (
            ["check", "--inline", "file:/nowhere/*.jsonl"],
            "/nowhere/*.jsonl: no file or folder has such a name",
        ),
        (["check", "--inline", "s3a://b/x"], "--inline: s3a://b/x can be read by Spark only"),
        (["check", "/nowhere"], "/nowhere does not exist"),
        (["check", "--inline", str(QUICK), "/nowhere"], "/nowhere does not exist"),
        (["replay", "/nowhere"], "/nowhere is not a run's folder"),
        (["run", "--results", "/dev/null"], "--results /dev/null: this path is not a folder"),
        (["run", "--results", "/dev/null/x"], "--results /dev/null/x: Not a directory"),
        (["run", "--nemesis", ""], "--nemesis '': a name is missing; name faults such as kill"),
        (["run", "--nemesis", "kill,,pause"], "--nemesis 'kill,,pause': a name is missing"),
        (["run", "--rate", "0"], "Invalid value for '--rate': '0': must be a number of writes per"),
        (["run", "--rate", "nan"], "Invalid value for '--rate': 'nan': must be a number"),
        (
            ["run", "--time-limit", "5m"],
            "Invalid value for '--time-limit': '5m': must be a number of seconds",
        ),
        (["run", "--seed", "9" * 30], "Invalid value for '--seed': "),
        (
            ["search", "--minutes", "nan"],
            "Invalid value for '--minutes': 'nan': must be a number of minutes",
        ),
        (
            ["search", "--minutes", "inf"],
            "Invalid value for '--minutes': 'inf': must be a number of minutes",
        ),
        (["search", "--jobs", "1000000"], "Invalid value for '--jobs': 1000000 is not in the"),
        (["search", "--runs", "1" + "0" * 400], "Invalid value for '--runs': "),
        (["mutants", "score", "--runs", "0"], "Invalid value for '--runs': 0 is not in the"),
        (
            ["mutants", "show", "ack-on-local-apend"],
            "mutants show: there is no ack-on-local-apend; did you mean ack-on-local-append?",
        ),
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["gate"], "Missing argument 'SUITE.toml'."),
        (["gate", "none.toml"], "none.toml: No such file or directory"),
        (["gate", str(QUICK), "--keep", "-1"], "Invalid value for '--keep': -1 is not in the"),
        (["gate", str(QUICK), "--mutant", "x"], "idempotent · pause,slow · default · processes"),
        (
            ["gate", str(QUICK), "--junit", "/dev/null/x"],
            "--junit /dev/null/x: /dev/null is not a folder",
        ),
        (["gate", str(QUICK), "--junit", "x" * 5000], f"--junit {'x' * 100}…: File name"),
        (["gate", str(QUICK), "--results", "/dev/null"], "--results /dev/null"),
        (
            ["mutants", "show", "x"],
            "mutants show: there is no x; faultline mutants list lists all 2",
        ),
    ],
)
def test_a_wrong_request_is_one_line_and_64(arguments: list[str], line: str, call: Call) -> None:
    """A wrong request prints one line on stderr and starts nothing."""
    status, out, err = call(*arguments)
    assert (status, out) == (64, "")
    assert err.startswith(f"faultline: {line}")
    assert err.count("\n") == 1


def test_a_library_that_cannot_be_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """A library that cannot be loaded is reported in one line, without its page of advice.

    Numpy prints such a page if there is too little memory.
    """

    def fail(*_: object, **__: object) -> None:
        raise ImportError("PLEASE READ THIS\n\nOriginal error was: failed to map segment\n")

    monkeypatch.setattr("harness.app.cluster.status", fail)
    status, out, err = call("cluster", "status")
    assert (status, out) == (70, "")
    reason = "a library cannot be loaded: Original error was: failed to map segment"
    assert err == f"faultline failed: {reason}\n"


@pytest.mark.parametrize("error", [RuntimeError("no idea"), PermissionError(13, "no idea")])
def test_a_failure_of_faultline_is_not_taken_for_a_verdict(
    error: Exception, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """Every failure of faultline has status 70, never 1, with which Python would exit."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("harness.app.cluster.status", fail)
    status, out, err = call("cluster", "status")
    assert (status, out) == (70, "")
    assert err.splitlines()[-1].startswith("faultline failed: ")
    assert "no idea" in err.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_verb_in_one_line(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """A signal ends every verb in one line, also during work without a handler of its own."""

    def kill() -> None:
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and stays so")
    monkeypatch.setattr("harness.app.cluster.status", kill)
    status, out, err = call("cluster", "status")
    assert (status, out, err.strip()) == (70, "", "faultline: interrupted")
    assert signal.getsignal(number) is before


EARLY = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
import harness.app.cli
"""


def test_a_signal_during_the_imports_is_one_line_too(repository: Path) -> None:
    """A signal during the first imports, before any handler exists, also ends in one line."""
    done = subprocess.run(
        [sys.executable, "-c", EARLY], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (70, "faultline: interrupted\n")


def test_a_refusal_does_nothing_to_a_terminal(call: Call) -> None:
    """Control characters in a file's name are replaced in a refusal."""
    status, _, err = call("gate", "a\x1b[2J\nb.toml")
    assert (status, err) == (
        64, "faultline: a\ufffd[2J b.toml: No such file or directory\n"
    )  # fmt: skip
