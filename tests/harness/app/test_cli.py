"""The command line: help for every verb, and status 64 with one line for a wrong request."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest

from harness.app import cli
from harness.app.run import Failed, Interrupted
from model.plan import Plan

QUICK = Path(__file__).resolve().parents[3] / "examples" / "suites" / "quick.toml"


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def verbs(group: click.Group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += verbs(command, (*before, name))
        else:
            found.append((*before, name))
    return found


@pytest.mark.parametrize("verb", verbs(cli.faultline), ids=" ".join)
def test_every_verb_explains_itself(
    verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """``--help`` shows what a verb does, an example, and ``--json``."""
    status, out, _ = told(capsys, *verb, "--help")
    assert (status, told(capsys, *verb, "-h")) == (0, (0, out, ""))
    assert f"faultline {' '.join(verb)}" in out.partition("Example:")[2]
    assert "--json" in out


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
        (["check"], "Missing argument 'DIR|FILE…'."),
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
            "mutants show: there is no x; faultline mutants list lists all 1",
        ),
    ],
)
def test_a_wrong_request_is_one_line_and_64(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong request prints one line on stderr and starts nothing."""
    status, out, err = told(capsys, *arguments)
    assert (status, out) == (64, "")
    assert err.startswith(f"faultline: {line}")
    assert err.count("\n") == 1


def test_a_library_that_cannot_be_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library that cannot be loaded is reported in one line, without its page of advice.

    Numpy prints such a page if there is too little memory.
    """

    def fail(*_: object, **__: object) -> None:
        raise ImportError("PLEASE READ THIS\n\nOriginal error was: failed to map segment\n")

    monkeypatch.setattr("harness.app.cluster.status", fail)
    status, out, err = told(capsys, "cluster", "status")
    assert (status, out) == (70, "")
    reason = "a library cannot be loaded: Original error was: failed to map segment"
    assert err == f"faultline failed: {reason}\n"


@pytest.mark.parametrize("error", [RuntimeError("no idea"), PermissionError(13, "no idea")])
def test_a_failure_of_faultline_is_not_taken_for_a_verdict(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every failure of faultline has status 70, never 1, with which Python would exit."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("harness.app.cluster.status", fail)
    status, out, err = told(capsys, "cluster", "status")
    assert (status, out) == (70, "")
    assert err.splitlines()[-1].startswith("faultline failed: ")
    assert "no idea" in err.splitlines()[-1]


def test_a_score_that_is_broken_off_is_one_line_and_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted score has one line and status 70, and no traceback."""

    def interrupted(*_: object) -> None:
        raise Interrupted("interrupted; rows are in docs")

    monkeypatch.setattr("harness.app.score.measure.carry_out", interrupted)
    status, out, err = told(capsys, "mutants", "score")
    assert (status, out, err) == (70, "", "faultline failed: interrupted; rows are in docs\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_verb_in_one_line(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal ends every verb in one line, also during work without a handler of its own."""

    def kill() -> None:
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    monkeypatch.setattr("harness.app.cluster.status", kill)
    status, out, err = told(capsys, "cluster", "status")
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


def test_a_refusal_does_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in a file's name are replaced in a refusal."""
    status, _, err = told(capsys, "gate", "a\x1b[2J\nb.toml")
    assert (status, err) == (
        64, "faultline: a\ufffd[2J b.toml: No such file or directory\n"
    )  # fmt: skip


def test_without_a_verb_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a verb the help is printed, and the status is 64."""
    status, out, err = told(capsys)
    assert (status, out) == (64, "")
    assert "Commands:" in err


def test_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    """``mutants list`` names all mutants and ``mutants show`` describes one, both also as JSON."""
    _, out, _ = told(capsys, "mutants", "list", "--json")
    names = [mutant["name"] for mutant in json.loads(out)]
    _, out, _ = told(capsys, "mutants", "list")
    assert [line.split()[0] for line in out.splitlines()] == names
    _, out, _ = told(capsys, "mutants", "show", names[0])
    assert out.startswith(names[0])
    assert "shows as" in out
    _, out, _ = told(capsys, "mutants", "show", names[0], "--json")
    assert json.loads(out)["name"] == names[0]


@pytest.mark.parametrize(
    ("plan", "told_why"),
    [
        (Plan(), "no schedule"),
        (Plan(schedule=(), producer={"sasl.password": "***"}), "a secret in this plan was masked"),
    ],
)
def test_a_plan_that_cannot_be_repeated_is_refused(
    plan: Plan, told_why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``replay`` refuses a plan without a schedule or with a masked secret."""
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    status, _, err = told(capsys, "replay", str(tmp_path))
    assert status == 64
    assert told_why in err


@pytest.mark.parametrize(
    ("target", "asked", "inline"),
    [("simulated", None, True), ("processes", None, False), ("simulated", False, False),
     ("processes", True, True)],
)  # fmt: skip
def test_a_small_history_does_not_wait_for_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: str, asked: bool | None, inline: bool
) -> None:
    """Simulated runs are judged inline unless the command line asks for Spark."""
    told = []

    def run(plan: Plan, results: Path, *, inline: bool, screen: object) -> None:
        told.append(inline)
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    assert (
        cli._run(msgspec.convert({"target": target}, Plan), tmp_path, inline=asked, as_json=False)
        == cli.FAILED
    )
    assert told == [inline]
