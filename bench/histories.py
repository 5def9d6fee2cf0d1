"""Generates histories of any length from a simulated log, with a requested number of defects.

    python bench/histories.py history.jsonl --operations 1000000 --lost 3 --doubled 2 --phantom 1

It tests the checkers themselves: without defects they must find nothing, and with defects exactly
those.
"""

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model import history
from model.op import NEMESIS, Op

POLL_RECORDS_MAX = 40
PHANTOM_FROM = 10**12
"""Values from here on are never sent."""


@dataclass
class _Reader:
    keys: list[str] | None = None
    """The assigned partitions; ``None`` before the first assignment."""
    positions: dict[str, int] = field(default_factory=dict)


@dataclass
class _Pending:
    """An operation in progress, with its outcome, which is drawn when it is invoked."""

    f: str
    asked: list[Any]
    fate: str
    landed: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class World:
    """A simulation of logs, writers, readers and a clock that generates a history."""

    rng: random.Random
    keys: int = 3
    writers: int = 3
    readers: int = 2
    doubt: float = 0.05
    """The probability that a send does not succeed: it fails or its outcome is unknown."""
    restarts: float = 0.02
    """The probability that a reader assigns other partitions or crashes, instead of polling."""
    faults: bool = True
    lost: int = 0
    doubled: int = 0
    phantom: int = 0
    """The number of defects of each kind to plant, spread over ``span`` records."""
    span: int = 1

    def __post_init__(self) -> None:
        self._names = [f"orders-{number}" for number in range(self.keys)]
        self._logs: dict[str, list[int | None]] = {key: [] for key in self._names}
        self._hidden: set[int] = set()
        self._index = self._now_ns = self._next_value = 0
        self._next_process = 0
        self._pending: dict[int, _Pending] = {}
        self._late: list[list[tuple[str, int]]] = []
        self._writers = {
            self._new_process(): self.rng.choice(self._names) for _ in range(self.writers)
        }
        self._readers = {self._new_process(): _Reader() for _ in range(self.readers)}
        self._fault = 0
        self._broken: int | None = None
        kinds = ["lost"] * self.lost + ["doubled"] * self.doubled + ["phantom"] * self.phantom
        places = self.rng.sample(range(max(self.span, len(kinds))), len(kinds))
        self._defects = dict(zip(places, kinds, strict=True))

    def events(self, operations: int) -> Iterator[Op]:
        """Yield the events of a history with this many operations of clients.

        Faults are included. At the end all operations are completed, the last fault is healed, and
        every partition is read to its end.
        """
        begun = 0
        while begun < operations:
            yield from self._sometimes()
            idle = [p for p in (*self._writers, *self._readers) if p not in self._pending]
            if idle and (not self._pending or self.rng.random() < 0.6):
                yield self._invoke(self.rng.choice(idle))
                begun += 1
            else:
                yield self._complete(self.rng.choice(list(self._pending)))
        while self._pending:
            yield self._complete(next(iter(self._pending)))
        if self._broken is not None:
            yield from self._heal()
        for batch in self._late:
            self._land_late(batch)
        yield from self._final_reads()

    def _event(self, process: int, kind: Any, f: str, value: Any, error: str | None = None) -> Op:
        self._now_ns += self.rng.randrange(10_000, 400_000)
        self._index += 1
        return Op(
            index=self._index - 1,
            time_ns=self._now_ns,
            process=process,
            type=kind,
            f=f,
            value=value,
            error=error,
        )

    def _new_process(self) -> int:
        self._next_process += 1
        return self._next_process - 1

    def _sometimes(self) -> Iterator[Op]:
        """With a small probability, append the records of a late send, or start or heal a fault."""
        if self._late and self.rng.random() < 0.05:
            self._land_late(self._late.pop(self.rng.randrange(len(self._late))))
        if self.faults and self.rng.random() < 0.002:
            yield from self._heal() if self._broken is not None else self._break()

    def _break(self) -> Iterator[Op]:
        value: dict[str, Any] = {"id": self._fault, "phase": "apply", "targets": ["broker-1"]}
        value["options"] = {}
        yield self._event(NEMESIS, "invoke", "pause", value)
        effect = {"proved": True, "how": "state T"}
        yield self._event(NEMESIS, "info", "pause", value | {"effect": effect})
        self._broken, self._fault = self._fault, self._fault + 1

    def _heal(self) -> Iterator[Op]:
        value: dict[str, Any] = {"id": self._broken, "phase": "heal", "targets": ["broker-1"]}
        value["options"] = {}
        yield self._event(NEMESIS, "invoke", "pause", value)
        yield self._event(NEMESIS, "info", "pause", value)
        self._broken = None

    def _append(self, key: str, value: int) -> int:
        """Append the value and return its offset; sometimes leave one offset before it unused."""
        log = self._logs[key]
        if self.rng.random() < 0.02:
            log.append(None)
        log.append(value)
        return len(log) - 1

    def _invoke(self, process: int) -> Op:
        if process in self._writers:
            pending = self._begin_send(self._writers[process])
        else:
            pending = self._begin_read(self._readers[process])
        self._pending[process] = pending
        return self._event(process, "invoke", pending.f, pending.asked)

    def _begin_send(self, key: str) -> _Pending:
        values = range(self._next_value, self._next_value + self.rng.choice((1, 1, 1, 2, 4)))
        self._next_value = values.stop
        fate = "ok"
        if self.rng.random() < self.doubt:
            fate = self.rng.choice(
                ("fail", "lands", "lands late", "does not land", "lands in part")
            )
        pending = _Pending("send", [["send", key, value] for value in values], fate)
        if fate in ("ok", "lands", "lands in part") and self.rng.random() < 0.5:
            self._land(pending)  # otherwise at completion
        return pending

    def _land(self, pending: _Pending) -> None:
        whole = len(pending.asked)
        count = self.rng.randrange(whole) if pending.fate == "lands in part" else whole
        for _, key, value in pending.asked[:count]:
            pending.landed.append((value, self._append(key, value)))
            self._plant(key, value, certain=pending.fate == "ok")

    def _land_late(self, batch: list[tuple[str, int]]) -> None:
        for key, value in batch:
            self._append(key, value)

    def _plant(self, key: str, value: int, *, certain: bool) -> None:
        """Plant the next defect that is due; only records that will be acknowledged get one."""
        due = [place for place in self._defects if place <= value]
        if certain and due:
            kind = self._defects.pop(due[0])
            if kind == "lost":
                self._hidden.add(value)
            else:
                self._append(key, value if kind == "doubled" else PHANTOM_FROM + value)

    def _begin_read(self, reader: _Reader) -> _Pending:
        if reader.keys is None and not self.restarts:
            return _Pending("assign", self._names, "ok")
        if reader.keys is None or self.rng.random() < self.restarts / 2:
            count = self.rng.randint(1, self.keys)
            return _Pending("assign", sorted(self.rng.sample(self._names, count)), "ok")
        fate = "info" if self.rng.random() < self.restarts / 2 else "ok"
        return _Pending("poll", [["poll"]], fate)

    def _complete(self, process: int) -> Op:
        pending = self._pending.pop(process)
        if pending.f == "send":
            return self._complete_send(process, pending)
        reader = self._readers[process]
        if pending.f == "assign":
            reader.keys = pending.asked
            reader.positions = {key: reader.positions.get(key, 0) for key in reader.keys}
            return self._event(process, "ok", "assign", pending.asked)
        value = [["poll", self._deliver(reader, POLL_RECORDS_MAX)]]
        if pending.fate == "info":
            del self._readers[process]
            self._readers[self._new_process()] = _Reader()
            return self._event(process, "info", "poll", value, "_TRANSPORT")
        return self._event(process, "ok", "poll", value)

    def _complete_send(self, process: int, pending: _Pending) -> Op:
        fate = pending.fate
        if fate == "fail":
            return self._event(process, "fail", "send", pending.asked, "NOT_ENOUGH_REPLICAS")
        if fate in ("ok", "lands", "lands in part") and not pending.landed:
            self._land(pending)
        if fate == "lands late":
            self._late.append([(key, value) for _, key, value in pending.asked])
        offsets = dict(pending.landed) if fate in ("ok", "lands in part") else {}
        value = [
            ["send", key, [offsets[v], v] if v in offsets else v] for _, key, v in pending.asked
        ]
        if fate == "ok":
            return self._event(process, "ok", "send", value)
        del self._writers[process]
        self._writers[self._new_process()] = self.rng.choice(self._names)
        return self._event(process, "info", "send", value, "_MSG_TIMED_OUT")

    def _deliver(self, reader: _Reader, count_max: int) -> dict[str, list[list[int]]]:
        assert reader.keys is not None, "polls come after an assignment"
        records: dict[str, list[list[int]]] = {}
        for key in reader.keys:
            begin = reader.positions[key]
            end = min(len(self._logs[key]), begin + self.rng.randint(1, count_max))
            found = [
                [offset, value]
                for offset, value in enumerate(self._logs[key][begin:end], begin)
                if value is not None and value not in self._hidden
            ]
            if found:
                records[key] = found
            reader.positions[key] = end
        return records

    def _final_reads(self) -> Iterator[Op]:
        process, reader = (
            self._new_process(),
            _Reader(list(self._names), dict.fromkeys(self._names, 0)),
        )
        yield self._event(process, "invoke", "assign", self._names)
        yield self._event(process, "ok", "assign", self._names)
        while any(reader.positions[key] < len(log) for key, log in self._logs.items()):
            yield self._event(process, "invoke", "poll", [["poll"]])
            yield self._event(process, "ok", "poll", [["poll", self._deliver(reader, 1000)]])
        for key, log in self._logs.items():
            yield self._event(process, "invoke", "catch-up", [["catch-up", key]])
            value = [["catch-up", key, len(log), len(log)]]
            yield self._event(process, "ok", "catch-up", value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("path", type=Path)
    for name, default in (
        ("operations", 1_000_000),
        ("seed", 0),
        ("keys", 12),
        ("writers", 8),
        ("readers", 2),
        ("lost", 0),
        ("doubled", 0),
        ("phantom", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = vars(parser.parse_args())
    path, operations = asked.pop("path"), asked.pop("operations")
    rng = random.Random(asked.pop("seed"))
    world = World(rng, doubt=0.002, restarts=0.0, span=operations // 4, **asked)
    history.write(path, world.events(operations))


if __name__ == "__main__":
    main()
