"""Text from outside cannot control a terminal."""

import io
import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.app import cli, terminal
from harness.app.progress import Screen

HOSTILE = {
    "OSC, which renames the window": "\x1b]0;owned\x07",
    "CSI, which clears the screen": "\x1b[2J",
    "C1 CSI": "\x9b2J",
    "C1 OSC": "\x9d0;owned\x9c",
    "carriage return": "VALID\r",
    "backspace": "\b\b\b",
    "delete": "\x7f",
    "right-to-left override": "\u202egro.elpmaxe",
    "bidirectional isolate": "\u2066x\u2069",
    "Arabic letter mark": "\u061c",
    "line separator": "\u2028",
    "invisible tags": "\U000e0041",
}


def is_shown(character: str) -> bool:
    """Check that a terminal draws a character, or that it is a newline or tab."""
    return character in "\n\t" or unicodedata.category(character)[0] not in "CZ" or character == " "


@given(st.text())
def test_text_is_all_that_is_left(raw: str) -> None:
    """Every other character is replaced one for one; a line holds no newline."""
    shown = terminal.text(raw)
    assert all(map(is_shown, shown))
    assert len(shown) == len(raw)
    assert "\n" not in terminal.line(raw)
    assert terminal.text(shown) == shown


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_keeps_all_characters(value: Any) -> None:
    """Printed JSON has printable characters only and decodes to the original value."""
    shown = terminal.json_text(value)
    assert all(map(is_shown, shown))
    assert json.loads(shown) == value


def test_the_filter_writes_what_the_other_stream_can_encode() -> None:
    """A character that the stream's encoding lacks is replaced without an error."""
    beneath = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    filter_ = terminal.Filter(beneath)
    filter_.write("a · \x1b[2J\udc80b\n")
    beneath.seek(0)
    assert beneath.read() == "a ? ?[2J?b\n"
    with pytest.raises(TypeError):
        filter_.write(b"\x1b[2J")  # type: ignore[arg-type]


def test_streams_that_were_closed_stay_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the caller closed standard error, the filter does not create one."""
    monkeypatch.setattr(sys, "stderr", None)
    with terminal.filtered():
        assert sys.stderr is None
        sys.stdout.write("\x1b[2J")
    assert sys.stderr is None


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_screens_show_text(hostile: str) -> None:
    """Permanent lines are filtered also if the stream is a terminal."""

    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (Tty(), io.StringIO()):
        Screen(terminal.Filter(stream)).say(f"a{hostile}b  c")  # type: ignore[arg-type]
        assert hostile not in stream.getvalue()
        assert stream.getvalue().endswith("b  c\n")


Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command and return its standard output and standard error."""

    def of(*arguments: object) -> tuple[str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit):
            cli.main([*map(str, arguments)])
        return capsys.readouterr()

    return of


def history(path: Path, key: str, error: str) -> None:
    """Write a history with a lost record of this key and a send that failed with this error."""
    events = [
        ("invoke", "send", [["send", key, 7]], None),
        ("ok", "send", [["send", key, [0, 7]]], None),
        ("invoke", "send", [["send", key, 8]], None),
        ("fail", "send", [["send", key, 8]], error),
        ("invoke", "poll", [["poll"]], None),
        ("ok", "poll", [["poll", {key: [[0, 9]]}]], None),
    ]
    lines = [
        {"index": n, "time_ns": n + 1, "process": 1, "type": type_, "f": f, "value": value}
        | ({} if error is None else {"error": error})
        for n, (type_, f, value, error) in enumerate(events)
    ]
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))


@pytest.mark.slow
def test_no_command_passes_control_characters_on(run: Run, tmp_path: Path) -> None:
    """Commands print no control characters from outside, as text or as JSON.

    Such characters may be in keys and errors of a history, in plans, suites and names of files.
    """
    hostile = "".join(HOSTILE.values())
    bare = tmp_path / "history.jsonl"
    history(bare, f"x{hostile}-0", f"error{hostile}")
    plan = tmp_path / f"plan{hostile}.toml"
    plan.write_text(f"workload = {json.dumps('w' + hostile)}\n")
    suite = tmp_path / "suite.toml"
    suite.write_text(f"name = {json.dumps('s' + hostile)}\n[[matrix]]\n")
    for arguments in (
        ("check", bare, "--inline"),
        ("check", bare, "--inline", "--json"),
        ("check", tmp_path / f"none{hostile}"),
        ("run", plan),
        ("run", "--mutant", hostile),
        ("run", "--set", f"producer.{hostile}=x"),
        ("run", "--set", f"producer.acks={hostile}"),
        ("gate", suite),
        ("mutants", "show", hostile),
        (hostile,),
    ):
        out, err = run(*arguments)
        assert out or err
        for stream in (out, err):
            assert all(map(is_shown, stream)), arguments


def test_a_key_cannot_forge_a_line(run: Run, tmp_path: Path) -> None:
    """A newline in a key does not begin a new line of the verdict."""
    history(tmp_path / "history.jsonl", "x\nVALID-0", "e")
    out, _ = run("check", tmp_path / "history.jsonl", "--inline")
    assert not any(line.startswith("VALID") for line in out.splitlines())


def test_json_has_the_characters_by_its_escapes(run: Run, tmp_path: Path) -> None:
    """JSON output has escapes for control characters, and decodes to the history's names."""
    name = "x\x9b\u202e-0"
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({"workload": name}))
    history(tmp_path / "history.jsonl", "x-0", "e")
    out, _ = run("check", tmp_path, "--inline", "--json")
    assert "\\u009b\\u202e" in out
    assert json.loads(out)["plan"]["workload"] == name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a word", "a word"),
        ("x" * 100, "x" * 100),
        (f"'{'x' * 9000}' is no number", f"'{'x' * 99}…' is no number"),
        (f"--seed {'9' * 400}: too large", f"--seed {'9' * 100}…: too large"),
        ("/long" * 60 + ", line 3: wrong", "/long" * 60 + ", line 3: wrong"),
        ("/long" * 999 + ": wrong", "/long" * 40 + "…" + "/long" * 40 + ": wrong"),
        ("a " * 5000, "a " * 500 + "…"),
    ],
)
def test_a_message_repeats_a_bounded_part(raw: str, shown: str) -> None:
    """A message shortens a long word or text to its beginning, and a long path to both ends."""
    assert terminal.sentence(raw) == shown


@given(st.text(), st.integers(1, 9999))
def test_a_sentence_is_one_short_line(part: str, times: int) -> None:
    """A message is one line of bounded length, whatever it repeats."""
    shown = terminal.sentence(part * times)
    assert len(shown) <= terminal.SENTENCE_MAX + 1
    assert "\n" not in shown
