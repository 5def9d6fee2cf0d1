"""Histories in a short notation, and tables made from them."""

import re
from pathlib import Path
from typing import Any

import pytest

from checkers import history_file, table_builder
from checkers.kernels.log import Log
from checkers.tables import Tables
from model import history
from model.op import MicroOp, Op

READER = 9
"""The process of a poll or an assignment that names none; that of a send is 0."""

_TOKEN = re.compile(r"(?P<phase>[<>]?)(?P<f>[a-z])(?P<process>\d*)(?P<end>[!?]?):(?P<rest>.*)")
_F = {
    "s": "send",
    "p": "poll",
    "a": "assign",
    "c": "catch-up",
    "t": "txn",
    "m": "subscribe",
    "k": "commit",
    "f": "committed",
    "l": "leave",
    "w": "watermarks",
    "d": "delete-records",
    "x": "delete-topic",
    "i": "init",
}
GROUP = "g"
"""The group that members join."""
_REBALANCES = {"^": "assigned", "-": "revoked", "~": "lost"}
_TYPE = {"": "ok", "!": "fail", "?": "info"}


def number(text: str) -> int:
    """Convert a value: a number, or a small letter for its place in the alphabet."""
    return ord(text) - 96 if text.isalpha() else int(text)


def _send(text: str, *, done: bool) -> list[MicroOp]:
    micro_ops: list[MicroOp] = []
    for part in text.split(","):
        key, _, record = part.partition("=")
        value, _, offset = record.partition("@")
        told = number(value)
        micro_ops.append(["send", key, [int(offset), told] if done and offset else told])
    return micro_ops


def _txn(text: str, *, done: bool) -> list[MicroOp]:
    micro_ops: list[MicroOp] = []
    for part in text.split("|"):
        if part.startswith("+"):
            micro_ops += _send(part.replace("+", ""), done=done)
        elif part == "abort":
            micro_ops.append([part])
        elif part.startswith("."):
            micro_ops.append(["delay", None, int(part[1:])])
        else:
            micro_ops += _poll(part) if done else _asked(_poll(part))
    return micro_ops


def _places(text: str) -> dict[str, int | list[int] | None]:
    """Parse partitions, each with an offset or none, perhaps with metadata."""
    parts = (part.partition("@") for part in filter(None, text.split(",")))
    return {key: _place(place) if place else None for key, _, place in parts}


def _place(text: str) -> int | list[int]:
    offset, _, metadata = text.partition("%")
    return [int(offset), int(metadata)] if metadata else int(offset)


def _rebalance(text: str) -> MicroOp:
    places, _, generation = text[1:].partition("#")
    kind = _REBALANCES[text[0]]
    told = _places(places)
    number = int(generation) if generation else None
    return [kind, GROUP, number, told if kind == "assigned" else list(told)]


def _asked(micro_ops: list[MicroOp]) -> list[MicroOp]:
    """Return the micro-operations of the invocation: the result of a poll is not known before."""
    asked: list[MicroOp] = []
    for micro_op in micro_ops:
        match micro_op:
            case ["poll", _]:
                asked.append(["poll"])
            case ["commit", group, _]:
                asked.append(["commit", group, None])
            case ["commit-plainly", *_]:
                asked.append(micro_op)
            case _:
                pass  # a completion alone reports a rebalance
    return asked


def _poll(text: str) -> list[MicroOp]:
    micro_ops: list[MicroOp] = []
    for poll in text.split("|"):
        if poll[:1] in ("^", "-", "~"):
            micro_ops.append(_rebalance(poll))
            continue
        if poll.startswith("!!"):
            micro_ops.append(["commit-plainly", GROUP, _places(poll[2:])])
            continue
        if poll.startswith("!"):
            places = None if poll == "!?" else _places(poll[1:])
            micro_ops.append(["commit", GROUP, places])
            continue
        records: dict[str, list[list[int]]] = {}
        for part in filter(None, poll.split(",")):
            key, _, record = part.partition("=")
            value, _, offset = record.partition("@")
            records.setdefault(key, []).append([int(offset), number(value)])
        micro_ops.append(["poll", records])
    return micro_ops


def events(text: str) -> list[Op]:
    """Return the history of a line of tokens, one per operation::

        s:x=a@0,x=b@1   process 0 sends a and b to x, acknowledged at offsets 0 and 1
        s3?:x=c  s3!:x=c  process 3's send ends in doubt, or fails (so do all operations)
        p:x=a@0|x=b@1   process 9 polls twice in one operation
        t:+x=a@0|y=b@1  a transaction of process 9: it sends a to x and polls b of y
        t!:+x=a|abort   a transaction that is aborted
        t:+x=a@0|.2500  a transaction that waits for 2500 milliseconds before its end
        a:x,y           process 9 is assigned x and y
        c:x@7           process 9 caught up with x at position 7
        m1:x,y          process 1 subscribes to these topics, as a member of group g;
        m1:x#i          … with the group.instance.id i; m1:x#auto, m1:x#listener … and commits in
                        this way; m1:x#latest … and begins at the end if nothing is committed
        p1:^x@5#3|x=a@5 its poll reports first that generation 3 assigned it x, to begin at 5
        p1:-x#3|~y#3|   … that x is revoked, and y lost
        k1:x@6          it commits offset 6 of x, k1:x@6%7 with metadata 7; k1:x deletes the
                        committed offset of x; f1:x@6 and f1:x fetch the committed offset
        l1:             it leaves the group
        t1:x=a@5|!x@6   a transaction polls and commits offset 6 of x; !? commits unknown
                        offsets
        t1:!x@6|!!x@7   … and in the middle of it, offset 7 is committed plainly
        i1:t@7.2        it takes over the transactional id t, as producer 7 in epoch 2
        w:x@0/7/5       a leader reports the start, high watermark, last stable offset of x
        d:x@4/4         the records of x before offset 4 are deleted, and its log begins at 4
        x:t             the topic t is deleted, with all of its partitions
        z:40            40 seconds pass
        >s1:x=a  <s1:x=a@0   the invocation and the completion, with others between them

    There is one event per second.
    """
    found: list[Op] = []

    passed_s = 0

    def add(process: int, kind: str, f: str, value: Any) -> None:
        at = len(found)
        found.append(
            Op(
                index=at,
                time_ns=(at + passed_s) * 1_000_000_000,
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
        elif f == "t":
            asked, done = _txn(rest, done=False), _txn(rest, done=True)
        elif f == "p":
            done = _poll(rest)
            asked = _asked(done)
        elif f == "m":
            topics, _, how = rest.partition("#")
            commit = how if how in ("auto", "listener") else "sync"
            instance = how if how not in ("", "auto", "listener", "latest") else None
            options = {"instance": instance, "assignor": "range", "commit": commit}
            if how == "latest":
                options["auto.offset.reset"] = how
            asked = done = [["subscribe", GROUP, topics.split(","), options]]
        elif f == "k":
            asked = done = [["commit", GROUP, _places(rest), "sync"]]
        elif f == "f":
            told = _places(rest)
            asked = [["committed", GROUP, dict.fromkeys(told)]]
            done = [["committed", GROUP, told]]
        elif f == "l":
            asked = done = [["leave", GROUP]]
        elif f == "w":
            key, _, ends = rest.partition("@")
            numbers = [int(end) if end else None for end in ends.split("/")]
            told_ends = dict(zip(("start", "high", "stable"), numbers, strict=True))
            asked, done = [["watermarks", key]], [["watermarks", key, told_ends]]
        elif f == "x":
            asked = done = [["delete-topic", rest]]
        elif f == "d":
            key, _, offsets = rest.partition("@")
            numbers = [int(offset) for offset in offsets.split("/")]
            asked = [["delete-records", key, numbers[0]]]
            done = [["delete-records", key, *numbers]]
        elif f == "i":
            name, _, taken = rest.partition("@")
            asked = [["init", name]]
            done = [["init", name, [int(part) for part in taken.split(".")] if taken else None]]
        elif f == "z":
            passed_s += int(rest)
            continue
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
    """Return the tables of these events, which are written to a file and read from it."""
    path = folder / "history.jsonl"
    history.write(path, ops)
    return table_builder.of_history(history_file.read(path, lambda done: None))


class Histories:
    """Makes tables and logs from texts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def file(self) -> Path:
        """The file of the last history."""
        return self._folder / "history.jsonl"

    def events(self, text: str) -> list[Op]:
        return events(text)

    def tables(self, text: str | list[Op]) -> Tables:
        return tables_of(events(text) if isinstance(text, str) else text, self._folder)

    def log(self, text: str | list[Op], key: str = "x") -> Log:
        """Return the log of one partition."""
        (log,) = [log for log in self.tables(text).logs() if log.key == key]
        return log


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    return Histories(tmp_path_factory.mktemp("histories"))
