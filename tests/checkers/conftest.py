"""Histories small enough to read, as text; and big enough to believe, from a simulated log."""

import re
from pathlib import Path
from typing import Any

import pytest

from checkers import tables as tables_
from checkers.kernels.rows import Log
from checkers.tables import Tables
from model import history
from model.op import MicroOp, Op

READER = 9
"""The process of a poll or an assignment that names none; a send's is 0."""

_TOKEN = re.compile(r"(?P<phase>[<>]?)(?P<f>[a-z])(?P<process>\d*)(?P<end>[!?]?):(?P<rest>.*)")
_F = {"s": "send", "p": "poll", "a": "assign", "c": "catch-up", "t": "txn"}
_TYPE = {"": "ok", "!": "fail", "?": "info"}


def number(text: str) -> int:
    """Values are numbers; one small letter stands for its place in the alphabet."""
    return ord(text) - 96 if text.isalpha() else int(text)


def _send(text: str, *, done: bool) -> list[MicroOp]:
    micro_ops: list[MicroOp] = []
    for part in text.split(","):
        key, _, record = part.partition("=")
        value, _, offset = record.partition("@")
        told = number(value)
        micro_ops.append(["send", key, [int(offset), told] if done and offset else told])
    return micro_ops


def _poll(text: str) -> list[MicroOp]:
    micro_ops: list[MicroOp] = []
    for poll in text.split("|"):
        records: dict[str, list[list[int]]] = {}
        for part in filter(None, poll.split(",")):
            key, _, record = part.partition("=")
            value, _, offset = record.partition("@")
            records.setdefault(key, []).append([int(offset), number(value)])
        micro_ops.append(["poll", records])
    return micro_ops


def events(text: str) -> list[Op]:
    """A history from a line of tokens, one per operation::

        s:x=a@0,x=b@1   process 0 sends a and b to x, acknowledged at offsets 0 and 1
        s3?:x=c  s3!:x=c  process 3's send ends in doubt, or fails (so for all of these)
        p:x=a@0|x=b@1   process 9 polls twice in one operation
        t:…             like p, but a transaction
        a:x,y           process 9 is assigned x and y
        c:x@7           process 9 caught up with x at position 7
        >s1:x=a  <s1:x=a@0   the invocation and the completion, with others between them

    Events are a second apart.
    """
    found: list[Op] = []

    def add(process: int, kind: str, f: str, value: Any) -> None:
        at = len(found)
        found.append(
            Op(
                index=at,
                time_ns=at * 1_000_000_000,
                process=process,
                type=kind,  # type: ignore[arg-type]
                f=f,
                value=value,
            )
        )

    for token in text.split():
        match = _TOKEN.fullmatch(token)
        assert match, f"{token!r} is no operation"
        phase, f, process, end, rest = match.groups()
        asked: list[Any]
        done: list[Any]
        if f == "s":
            asked, done = _send(rest, done=False), _send(rest, done=True)
        elif f in "pt":
            done = _poll(rest)
            asked = [["poll"] for _ in done]
        elif f == "c":
            key, _, position = rest.partition("@")
            asked, done = [["catch-up", key]], [["catch-up", key, int(position), int(position)]]
        else:
            asked = done = rest.split(",")
        who = int(process) if process else (0 if f == "s" else READER)
        if phase != "<":
            add(who, "invoke", _F[f], asked)
        if phase != ">":
            add(who, _TYPE[end], _F[f], done)
    return found


def tables_of(ops: list[Op], folder: Path) -> Tables:
    """The tables of these events, by way of a file as in real life."""
    path = folder / "history.jsonl"
    history.write(path, ops)
    return tables_.tables(tables_.read(path, lambda done: None))


class Histories:
    """Makes tables and logs from texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def events(self, text: str) -> list[Op]:
        return events(text)

    def tables(self, text: str | list[Op]) -> Tables:
        return tables_of(events(text) if isinstance(text, str) else text, self._folder)

    def log(self, text: str | list[Op], key: str = "x") -> Log:
        """The rows of one key."""
        (log,) = [log for log in self.tables(text).logs() if log.key == key]
        return log


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    return Histories(tmp_path_factory.mktemp("histories"))
