"""Generates random histories of a broker that keeps every promise, for tests of the checkers.

The histories contain plain and transactional producers, readers that are assigned partitions,
watermarks, deleted records, and final reads of everything. The logs are a model: a list of entries
per partition, of which readers receive the committed ones. Clients act one step at a time, in
random order, and some of their operations end in doubt before or after they took effect. A checker
must find nothing in such a history.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from model.op import Op, OpType

RECORDS_MAX = 6
"""The maximum number of records that one poll delivers per partition."""


@dataclass
class Entry:
    """One offset of a log."""

    value: int | None
    """``None`` for a marker, and for an offset without a record."""
    txn: int | None = None
    """The index of the invocation of the transaction that wrote it."""


@dataclass
class Write:
    """A record that an operation tried to write."""

    key: str
    value: int
    process: int
    invoked: int
    """The index of the invocation."""
    txn: bool
    offset: int | None = None
    """The offset in the log; ``None`` if it is not there."""
    completed: int | None = None
    """The index of the completion."""
    outcome: OpType | None = None
    aborted: bool = False


@dataclass
class _Running:
    """An operation between its invocation and its completion."""

    index: int
    f: str
    steps: list[list[Any]]
    done: list[list[Any]] = field(default_factory=list)
    fate: str = "ok"
    writes: list[Write] = field(default_factory=list)


@dataclass
class Model:
    """Generates one history; ``events`` and ``writes`` are complete once :meth:`run` has ended."""

    rng: random.Random
    keys: int = 3
    doubt: float = 0.15
    """The probability that an operation does not end in ``ok``."""
    deletes: float = 0.01
    """The probability that an operation is a deletion of records."""
    transactional: int = 2
    """Number of transactional producers."""

    def __post_init__(self) -> None:
        self.names = [f"t{n // 2}-{n % 2}" for n in range(self.keys)]
        self.logs: dict[str, list[Entry]] = {key: [] for key in self.names}
        self.starts = dict.fromkeys(self.names, 0)
        self.events: list[Op] = []
        self.writes: dict[int, Write] = {}
        self.final = -1
        """The process of the final reads."""
        self._open: set[int] = set()
        self._aborted: set[int] = set()
        self._running: dict[int, _Running] = {}
        self._positions: dict[int, dict[str, int]] = {}
        self._late: list[list[Write]] = []
        self._time_ns = 0
        self._next_value = 0
        kinds = (
            "producer",
            "producer",
            *["transactional"] * self.transactional,
            "reader",
            "reader",
        )
        self._kinds = dict(enumerate(kinds))
        self._next_process = len(kinds)

    def run(self, operations: int) -> list[Op]:
        """Generate this many operations, then the final reads."""
        begun = 0
        while begun < operations or self._running:
            if self._late and self.rng.random() < 0.1:
                self._land(self._late.pop(self.rng.randrange(len(self._late))))
            idle = [process for process in self._kinds if process not in self._running]
            if begun < operations and idle and (not self._running or self.rng.random() < 0.4):
                self._begin(self.rng.choice(idle))
                begun += 1
            else:
                self._step(self.rng.choice(sorted(self._running)))
        for batch in self._late:
            self._land(batch)
        self._final_reads()
        return self.events

    # Events

    def _note(self, process: int, kind: OpType, f: str, value: Any) -> int:
        self._time_ns += self.rng.randrange(1_000, 3_000_000)
        index = len(self.events)
        self.events.append(
            Op(index=index, time_ns=self._time_ns, process=process, type=kind, f=f, value=value)
        )
        return index

    def _retire(self, process: int) -> None:
        """Replace a process whose operation ended in doubt, as it never acts again."""
        self._kinds[self._next_process] = self._kinds.pop(process)
        self._next_process += 1

    # Operations

    def _begin(self, process: int) -> None:
        kind = self._kinds[process]
        if kind == "producer":
            steps = [["send", *self._new_record()] for _ in range(self.rng.choice((1, 1, 2, 4)))]
            self._invoke(process, "send", steps)
        elif kind == "transactional":
            steps = [
                ["send", *self._new_record()] if self.rng.random() < 0.7 else ["poll"]
                for _ in range(self.rng.randint(1, 5))
            ]
            if self.rng.random() < self.doubt:
                steps.append(["abort"])
            self._invoke(process, "txn", steps)
        elif process not in self._positions or self.rng.random() < 0.08:
            count = self.rng.randint(1, self.keys)
            self._invoke(process, "assign", sorted(self.rng.sample(self.names, count)))
        elif self.rng.random() < self.deletes:
            key = self.rng.choice(self.names)
            offset = self.rng.randint(self.starts[key], self._stable(key))
            self._invoke(process, "delete-records", [["delete-records", key, offset]])
        elif self.rng.random() < 0.2:
            key = self.rng.choice(self.names)
            self._invoke(process, "watermarks", [["watermarks", key]])
        else:
            self._invoke(process, "poll", [["poll"]])

    def _new_record(self) -> tuple[str, int]:
        self._next_value += 1
        return self.rng.choice(self.names), self._next_value

    def _invoke(self, process: int, f: str, value: list[Any]) -> None:
        index = self._note(process, "invoke", f, value)
        fate = "ok"
        if f in ("send", "txn", "poll") and self.rng.random() < self.doubt:
            fates = {
                "send": ("fail", "info", "info-lost", "info-late", "info-part"),
                "txn": ("fail", "info", "info-lost"),
                "poll": ("info",),
            }
            fate = self.rng.choice(fates[f])
        running = _Running(index, f, list(value), fate=fate)
        for micro_op in value:
            if micro_op[0] == "send":
                write = Write(micro_op[1], micro_op[2], process, index, f == "txn")
                running.writes.append(write)
                self.writes[write.value] = write
        if f == "txn":
            self._open.add(index)
        self._running[process] = running

    def _step(self, process: int) -> None:
        running = self._running[process]
        if running.f == "send":
            self._step_of_send(process, running)
        elif running.f == "txn":
            self._step_of_txn(process, running)
        else:
            del self._running[process]
            self._complete_other(process, running)

    def _append(self, write: Write, txn: int | None = None) -> None:
        log = self.logs[write.key]
        if self.rng.random() < 0.03:
            log.append(Entry(None))
        write.offset = len(log)
        log.append(Entry(write.value, txn))

    def _land(self, batch: list[Write]) -> None:
        """Append the records of a send that its client no longer waits for."""
        for write in batch:
            self._append(write)

    def _step_of_send(self, process: int, running: _Running) -> None:
        """Append all records in one step, and end the operation in the next."""
        waiting = [write for write in running.writes if write.offset is None]
        if not running.done:
            count = len(waiting)
            if running.fate in ("fail", "info-lost", "info-late"):
                count = 0
            elif running.fate == "info-part":
                count = self.rng.randrange(len(waiting))
            for write in waiting[:count]:
                self._append(write)
            running.done = [["landed"]]
            return
        del self._running[process]
        kind: OpType = "ok" if running.fate == "ok" else "fail"
        if running.fate.startswith("info"):
            kind = "info"
            if running.fate == "info-late":
                self._late.append(waiting)
        reports_offset = kind == "ok" or running.fate == "info-part"
        value = [
            self._completed_send(write, reports_offset=reports_offset) for write in running.writes
        ]
        self._end(running, self._note(process, kind, "send", value), kind)
        if kind != "ok":
            self._retire(process)

    def _completed_send(self, write: Write, *, reports_offset: bool) -> list[Any]:
        if reports_offset and write.offset is not None and self.rng.random() < 0.95:
            return ["send", write.key, [write.offset, write.value]]
        return ["send", write.key, write.value]

    def _end(self, running: _Running, index: int, kind: OpType) -> None:
        for write in running.writes:
            write.completed, write.outcome = index, kind

    def _step_of_txn(self, process: int, running: _Running) -> None:
        if running.steps and running.steps[0] != ["abort"]:
            what, *rest = running.steps.pop(0)
            if what == "send":
                write = self.writes[rest[1]]
                self._append(write, running.index)
                running.done.append(self._completed_send(write, reports_offset=True))
            else:
                positions = self._positions.setdefault(process, dict.fromkeys(self.names, 0))
                running.done.append(["poll", self._deliver(positions)])
            return
        del self._running[process]
        aborts = running.steps == [["abort"]] or running.fate in ("fail", "info-lost")
        self._end_txn(running, aborts=aborts)
        if running.steps:
            kind: OpType = "fail" if running.fate == "ok" else "info"
        else:
            kind = "ok" if running.fate == "ok" else "fail" if running.fate == "fail" else "info"
        value = [*running.done, *running.steps]
        if kind == "info" and self.rng.random() < 0.5:
            value = [
                ["send", m[1], m[2][1] if type(m[2]) is list else m[2]] if m[0] == "send" else m
                for m in value
            ]
        self._end(running, self._note(process, kind, "txn", value), kind)
        if kind == "info":
            self._retire(process)
        elif kind == "fail":
            self._positions.pop(process, None)
            self._retire(process)

    def _end_txn(self, running: _Running, *, aborts: bool) -> None:
        """Write a marker to each partition, which makes the records visible, or aborts them."""
        self._open.discard(running.index)
        if aborts:
            self._aborted.add(running.index)
        for write in running.writes:
            write.aborted = aborts
        for key in dict.fromkeys(write.key for write in running.writes):
            self.logs[key].append(Entry(None))

    def _complete_other(self, process: int, running: _Running) -> None:
        f = running.f
        if f == "assign":
            old = self._positions.get(process, {})
            asked = [str(key) for key in running.steps]
            self._positions[process] = {key: old.get(key, 0) for key in asked}
            self._note(process, "ok", f, asked)
        elif f == "poll":
            value = [["poll", self._deliver(self._positions[process])]]
            if running.fate == "info":
                self._note(process, "info", f, value)
                del self._positions[process]
                self._retire(process)
            else:
                self._note(process, "ok", f, value)
        elif f == "watermarks":
            key = running.steps[0][1]
            ends = {
                "start": self.starts[key],
                "high": len(self.logs[key]),
                "stable": self._stable(key),
            }
            self._note(process, "ok", f, [["watermarks", key, ends]])
        else:
            _, key, offset = running.steps[0]
            self.starts[key] = max(self.starts[key], offset)
            self._note(process, "ok", f, [["delete-records", key, offset, self.starts[key]]])

    # Reads

    def _stable(self, key: str) -> int:
        """Return the last stable offset."""
        log = self.logs[key]
        return next((n for n, entry in enumerate(log) if entry.txn in self._open), len(log))

    def _deliver(self, positions: dict[str, int], most: int = RECORDS_MAX) -> dict[str, Any]:
        """Return the next records of each partition, in random order of partitions."""
        found: dict[str, Any] = {}
        for key in self.rng.sample(sorted(positions), len(positions)):
            begin = max(positions[key], self.starts[key])
            end = min(self._stable(key), begin + self.rng.randint(1, most))
            records = [
                [begin + n, entry.value]
                for n, entry in enumerate(self.logs[key][begin:end])
                if entry.value is not None and entry.txn not in self._aborted
            ]
            if records:
                found[key] = records
            positions[key] = max(begin, end)
        return found

    def _final_reads(self) -> None:
        self.final = process = self._next_process
        positions = dict.fromkeys(self.names, 0)
        self._note(process, "invoke", "assign", self.names)
        self._note(process, "ok", "assign", self.names)
        while any(positions[key] < len(log) for key, log in self.logs.items()):
            self._note(process, "invoke", "poll", [["poll"]])
            self._note(process, "ok", "poll", [["poll", self._deliver(positions, 50)]])
        for key, log in self.logs.items():
            self._note(process, "invoke", "catch-up", [["catch-up", key]])
            self._note(process, "ok", "catch-up", [["catch-up", key, len(log), len(log)]])


def history(rng: random.Random) -> Model:
    """Generate a history of random size and shape."""
    model = Model(
        rng,
        keys=rng.randint(1, 4),
        doubt=rng.choice((0.0, 0.1, 0.3)),
        deletes=rng.choice((0.0, 0.0, 0.1)),
    )
    model.run(rng.randint(20, 120))
    return model
