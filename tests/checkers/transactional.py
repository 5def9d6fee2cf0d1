"""Generated histories of transactions: two partitions with markers, and their readers."""

import random
from typing import Any, NamedTuple

from model.op import Op

KEYS = ("x", "y")


class Record(NamedTuple):
    """A record in a log; ``value`` is ``None`` for a marker, and ``sender`` is the operation that
    appended it."""

    value: int | None
    sender: int


class Transactional:
    """Generates transactions that act step by step, each a process of its own.

    Plain sends and polls are in between. Some transactions end in doubt, after they were committed
    or aborted. ``isolated``: readers receive only what is committed. ``torn``: the number of
    transactions that are committed in one partition and aborted in the other.
    """

    def __init__(self, rng: random.Random, *, isolated: bool = True, torn: int = 0) -> None:
        self.rng, self.isolated, self.torn = rng, isolated, torn
        self.logs: dict[str, list[Record]] = {key: [] for key in KEYS}
        self.open: set[int] = set()
        self.aborted: set[tuple[str, int]] = set()
        self.events: list[Op] = []
        self.next_value = 0
        self.running: dict[int, list[Any]] = {}
        self.positions: dict[int, dict[str, int]] = {}

    def history(self, steps: int) -> list[Op]:
        """Return the history of some steps, then of the end of all transactions and of the final
        reads."""
        for process in range(steps):
            what = self.rng.random()
            if what < 0.3:
                self.note(process, "invoke", "txn", [])
                self.running[process] = []
                self.open.add(process)
            elif what < 0.4:
                self.note(process, "invoke", "poll", [["poll"]])
                self.note(process, "ok", "poll", [self.poll(process)])
            elif what < 0.5:
                sent = self.send(process)
                self.note(process, "invoke", "send", [["send", sent[1], sent[2][1]]])
                self.note(process, "ok", "send", [sent])
            elif self.running:
                self.step(self.rng.choice(sorted(self.running)))
        for process in sorted(self.running):
            self.end(process)
        self.note(steps, "invoke", "poll", [["poll"]])
        self.note(steps, "ok", "poll", [self.poll(steps)])
        for key, log in self.logs.items():
            self.note(steps, "invoke", "catch-up", [["catch-up", key]])
            self.note(steps, "ok", "catch-up", [["catch-up", key, len(log), len(log)]])
        return self.events

    def note(self, process: int, kind: Any, f: str, value: Any) -> None:
        at = len(self.events)
        self.events.append(Op(index=at, time_ns=at, process=process, type=kind, f=f, value=value))

    def send(self, process: int) -> list[Any]:
        key = self.rng.choice(KEYS)
        self.next_value += 1
        self.logs[key].append(Record(self.next_value, process))
        return ["send", key, [len(self.logs[key]) - 1, self.next_value]]

    def poll(self, process: int) -> list[Any]:
        """Poll all that a process receives from its position on."""
        places = self.positions.setdefault(process, dict.fromkeys(KEYS, 0))
        return ["poll", {key: found for key in KEYS if (found := self.read(key, places))}]

    def read(self, key: str, places: dict[str, int]) -> list[list[int]]:
        given = []
        for offset in range(places[key], len(self.logs[key])):
            value, sender = self.logs[key][offset]
            if self.isolated and sender in self.open:
                break
            places[key] = offset + 1
            hidden = self.isolated and (key, sender) in self.aborted
            if value is not None and not hidden:
                given.append([offset, value])
        return given

    def step(self, process: int) -> None:
        what = self.rng.random()
        if what < 0.5:
            self.running[process].append(self.send(process))
        elif what < 0.7:
            self.running[process].append(self.poll(process))
        else:
            self.end(process)

    def end(self, process: int) -> None:
        """Commit or abort, with a marker in each partition; the client may receive no answer."""
        self.open.discard(process)
        micro_ops = self.running.pop(process)
        keys = {m[1] for m in micro_ops if m[0] == "send"}
        kind = self.rng.choice(("ok", "ok", "fail", "info"))
        if kind == "fail" or (kind == "info" and self.rng.random() < 0.5):
            self.aborted |= {(key, process) for key in keys}
        elif len(keys) > 1 and self.torn:
            self.torn -= 1
            self.aborted.add((self.rng.choice(sorted(keys)), process))
        for key in sorted(keys):
            self.logs[key].append(Record(None, -1))
        if self.rng.random() < 0.2:  # not even the sends are reported
            micro_ops = [m if m[0] == "poll" else ["send", m[1], m[2][1]] for m in micro_ops]
            kind = "info" if kind == "ok" else kind
        self.note(process, kind, "txn", micro_ops)
