"""A history that is being corrupted, with everything that is known about its origin."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bench.broker_model import Model, Write
from model.op import Op

Records = list[list[Any]]


class Delivery(NamedTuple):
    """The records of one partition that one micro-operation delivered."""

    at: int
    """The index of the completion."""
    process: int
    f: str
    kind: str
    key: str
    records: Records
    """May be changed in place."""


class Work:
    """A history that is being corrupted, and the model that created it."""

    def __init__(self, model: Model, rng: random.Random) -> None:
        self.model, self.rng = model, rng
        self.ops = [
            msgspec.structs.replace(op, value=msgspec.json.decode(msgspec.json.encode(op.value)))
            for op in model.events
        ]
        self.deleted = {op.value[0][1] for op in self.ops if op.f == "delete-records"}
        """Partitions with deleted records: a record without a known offset may be one of them."""
        self.invoked: dict[int, int] = {}
        begun: dict[int, int] = {}
        for op in self.ops:
            if op.type == "invoke":
                begun[op.process] = op.index
            else:
                self.invoked[op.index] = begun[op.process]

    def deliveries(self) -> Iterator[Delivery]:
        """Yield all deliveries, in the order of events."""
        for op in self.ops:
            if op.type == "invoke" or op.f not in ("poll", "txn"):
                continue
            for micro_op in op.value:
                if micro_op[0] == "poll" and len(micro_op) > 1:
                    for key, records in micro_op[1].items():
                        yield Delivery(op.index, op.process, op.f, op.type, key, records)

    def final(self, key: str) -> list[Delivery]:
        """Return what the final reader received of a partition."""
        return [d for d in self.deliveries() if d.process == self.model.final and d.key == key]

    def of_readers(self) -> list[Delivery]:
        """Return what plain polls delivered to readers other than the final one."""
        return [
            d
            for d in self.deliveries()
            if d.process != self.model.final and d.f == "poll" and d.kind == "ok"
        ]

    def committed(self, *outcomes: str) -> list[Write]:
        """Return the records that final readers receive, by the outcome of their operation."""
        return [
            write
            for write in self.model.writes.values()
            if write.offset is not None
            and not write.aborted
            and write.outcome in (outcomes or ("ok",))
            and write.offset >= self.model.starts[write.key]
        ]

    def pick(self, choices: list[Any]) -> Any:
        """Return a random choice, or ``None`` if there is none."""
        return self.rng.choice(choices) if choices else None

    def remove(self, value: int, *, final_only: bool = False) -> None:
        """Remove this value from all deliveries, or from the final reader's only."""
        for delivery in self.deliveries():
            if not final_only or delivery.process == self.model.final:
                delivery.records[:] = [r for r in delivery.records if r[1] != value]

    def insert_finally(self, key: str, value: int) -> None:
        """Deliver a value to the final reader in a hole of its log, or at the log's end."""
        log = self.model.logs[key]
        start = self.model.starts[key]
        free = [n for n, entry in enumerate(log) if entry.value is None and n >= start]
        taken = {r[0] for d in self.final(key) for r in d.records if r[0] is not None}
        free = [n for n in free if n not in taken]
        if free and self.rng.random() < 0.5:
            self.place_finally(key, self.rng.choice(free), value)
            return
        end = max([len(log) - 1, *taken]) + 1
        self.place_finally(key, end, value)
        for op in self.ops:
            if op.f == "catch-up" and op.type == "ok" and op.value[0][1] == key:
                op.value[0][2:] = [end + 1, end + 1]

    def place_finally(self, key: str, offset: int, value: int) -> None:
        """Deliver a value to the final reader at an offset, in the order of the log."""
        for delivery in self.final(key):
            offsets = [record[0] for record in delivery.records if record[0] is not None]
            if offsets and offsets[-1] > offset:
                place = sum(record[0] is None or record[0] < offset for record in delivery.records)
                delivery.records.insert(place, [offset, value])
                return
        last = [op for op in self.ops if op.process == self.model.final and op.f == "poll"][-1]
        last.value[0][1].setdefault(key, []).append([offset, value])

    def swap(self, one: Write, other: Write) -> None:
        """Swap the offsets of two records in all deliveries and acknowledgements."""
        other_value = {one.value: other.value, other.value: one.value}
        for delivery in self.deliveries():
            for record in delivery.records:
                record[1] = other_value.get(record[1], record[1])
        place = {one.value: other.offset, other.value: one.offset}
        for micro_op in self._acks():
            if micro_op[2][1] in place:
                micro_op[2][0] = place[micro_op[2][1]]

    def _acks(self) -> Iterator[list[Any]]:
        for op in self.ops:
            if op.type != "invoke" and op.f in ("send", "txn"):
                for micro_op in op.value:
                    if micro_op[0] == "send" and isinstance(micro_op[2], list):
                        yield micro_op

    def ack_of(self, write: Write) -> list[Any] | None:
        """Return the micro-operation that states the offset of a record."""
        return next((m for m in self._acks() if m[2][1] == write.value), None)

    def probes(self) -> list[Op]:
        """Return the completions that state watermarks."""
        return [op for op in self.ops if op.f == "watermarks" and op.type == "ok"]

    def open_after(self) -> list[tuple[Write, int]]:
        """Return records of committed transactions, each with an event before the transaction
        ended.

        That event is the invocation that sent a record which precedes one of the transaction's
        records in the log, so the transaction cannot have ended before it.
        """
        writes = [w for w in self.model.writes.values() if w.offset is not None]
        shown = {w.value for w in self.committed("ok", "info")}
        found = []
        for mine in self.committed("ok"):
            if not mine.txn:
                continue
            for sibling in writes:
                if sibling.txn and sibling.invoked == mine.invoked:
                    found += [
                        (mine, below.invoked)
                        for below in writes
                        if below.key == sibling.key
                        and below.value in shown
                        and sibling.value in shown
                        and int(below.offset or 0) < int(sibling.offset or 0)
                        and below.invoked > mine.invoked
                    ]
        return found
