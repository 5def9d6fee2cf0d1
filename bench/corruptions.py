"""Corrupts correct histories in ways that no broker that keeps its promises can explain.

Each corruption takes a :class:`Work` (a history with everything that is known about its origin) and
changes it in one random place. It returns False if the history has no suitable place. The
corruption is decidable: the final reads are complete, and other events prove what the changed one
denies.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from bench.broker_model import Model, Write
from model.op import NEMESIS, Op

NOBODYS = 10**15
"""Values from here on are never sent."""

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


Corruption = Callable[[Work], bool]


def lose(work: Work) -> bool:
    """An acknowledged record is never delivered."""
    write = work.pick(
        [w for w in work.committed() if w.key not in work.deleted or work.ack_of(w) is not None]
    )
    if write is None:
        return False
    work.remove(write.value)
    return True


def lose_after_read(work: Work) -> bool:
    """A record that was read is missing from the final read."""
    read = {r[1] for d in work.of_readers() for r in d.records}
    write = work.pick([w for w in work.committed() if w.value in read])
    if write is None:
        return False
    work.remove(write.value, final_only=True)
    return True


def acknowledge_nothing(work: Work) -> bool:
    """A send that wrote nothing is acknowledged."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.offset is None
            and w.outcome in ("info", "fail")
            and not w.txn
            and w.key not in work.deleted
        ]
    )
    if write is None:
        return False
    work.ops[write.completed] = msgspec.structs.replace(work.ops[write.completed], type="ok")
    return True


def tear(work: Work) -> bool:
    """One record of a committed transaction is never delivered, while another is."""
    by_txn: dict[int, list[Write]] = {}
    for write in work.committed("ok", "info"):
        if write.txn:
            by_txn.setdefault(write.invoked, []).append(write)
    writes = work.pick([writes for writes in by_txn.values() if len(writes) > 1])
    if writes is None:
        return False
    work.remove(work.rng.choice(writes).value)
    return True


def double(work: Work) -> bool:
    """A record is in the log twice."""
    write = work.pick(work.committed("ok", "info"))
    if write is None:
        return False
    work.insert_finally(write.key, write.value)
    return True


def invent(work: Work) -> bool:
    """A value is read that was never sent."""
    work.insert_finally(work.rng.choice(work.model.names), NOBODYS + work.rng.randrange(1000))
    return True


def invent_without_offset(work: Work) -> bool:
    """A value is read that was never sent, and its offset is not stated."""
    delivery = work.pick(list(work.deliveries()))
    if delivery is None:
        return False
    delivery.records.append([None, NOBODYS + work.rng.randrange(1000)])
    return True


def misroute(work: Work) -> bool:
    """A record is read from another partition than the one it was sent to."""
    write = work.pick(work.committed("ok", "info"))
    others = [key for key in work.model.names if write is not None and key != write.key]
    if not others:
        return False
    work.insert_finally(work.rng.choice(others), write.value)
    return True


def read_failed(work: Work) -> bool:
    """The record of a send that certainly failed is read."""
    writes = work.model.writes.values()
    write = work.pick([w for w in writes if w.outcome == "fail" and not w.txn])
    if write is None:
        return False
    work.insert_finally(write.key, write.value)
    return True


def read_aborted(work: Work) -> bool:
    """The record of an aborted transaction is read at its place in the log."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.outcome == "fail" and w.offset is not None and w.aborted
        ]
    )
    if write is None:
        return False
    work.place_finally(write.key, write.offset, write.value)
    return True


def _pairs(work: Work, fits: Callable[[Write, Write], bool]) -> list[tuple[Write, Write]]:
    writes = work.committed()
    return [(a, b) for a in writes for b in writes if a.key == b.key and fits(a, b)]


def reorder_own(work: Work) -> bool:
    """A process's later record is in the log before its earlier one."""
    pair = work.pick(_pairs(work, lambda a, b: a.process == b.process and a.invoked < b.invoked))
    if pair is None:
        return False
    work.swap(*pair)
    return True


def reorder_within(work: Work) -> bool:
    """The records of one operation are in the log in another order than it sent them."""
    pair = work.pick(_pairs(work, lambda a, b: a.invoked == b.invoked and a.value < b.value))
    if pair is None:
        return False
    work.swap(*pair)
    return True


def reorder_in_time(work: Work) -> bool:
    """A record is in the log before one that was acknowledged before the record's send began."""
    pair = work.pick(
        _pairs(
            work,
            lambda a, b: a.process != b.process and int(a.completed or 0) < b.invoked,
        )
    )
    if pair is None:
        return False
    work.swap(*pair)
    return True


def skip_within(work: Work) -> bool:
    """A poll leaves out a record between two that it delivers."""
    found = [d for d in work.deliveries() if len(d.records) > 2 and _is_kept(work, d)]
    delivery = work.pick(found)
    if delivery is None:
        return False
    del delivery.records[work.rng.randrange(1, len(delivery.records) - 1)]
    return True


def _is_kept(work: Work, delivery: Delivery) -> bool:
    """Return whether all records of the delivery are still in the log at the end."""
    return delivery.process != work.model.final and all(
        record[0] is not None and record[0] >= work.model.starts[delivery.key]
        for record in delivery.records
    )


def _consecutive(work: Work) -> list[tuple[Delivery, Delivery]]:
    """Return pairs of successive deliveries of a partition to a reader within one assignment."""
    last: dict[tuple[int, str], Delivery] = {}
    found = []
    deliveries: dict[int, list[Delivery]] = {}
    for delivery in work.of_readers():
        deliveries.setdefault(delivery.at, []).append(delivery)
    for op in work.ops:
        if op.f == "assign" and op.type == "ok":
            last = {place: d for place, d in last.items() if place[0] != op.process}
        for delivery in deliveries.get(op.index, ()):
            place = delivery.process, delivery.key
            if place in last and delivery.records and last[place].records:
                found.append((last[place], delivery))
            last[place] = delivery
    return found


def skip_between(work: Work) -> bool:
    """A reader that continues leaves out the record between two polls."""
    pairs = [(a, b) for a, b in _consecutive(work) if len(a.records) > 1 and _is_kept(work, a)]
    pair = work.pick(pairs)
    if pair is None:
        return False
    del pair[0].records[-1]
    return True


def repeat_within(work: Work) -> bool:
    """A poll delivers a record twice."""
    delivery = work.pick([d for d in work.deliveries() if d.records and d.kind == "ok"])
    if delivery is None:
        return False
    place = work.rng.randrange(len(delivery.records))
    delivery.records.insert(place, list(delivery.records[place]))
    return True


def repeat_between(work: Work) -> bool:
    """A poll begins with the last record of the poll before it."""
    pair = work.pick(_consecutive(work))
    if pair is None:
        return False
    pair[1].records.insert(0, list(pair[0].records[-1]))
    return True


def reorder_delivery(work: Work) -> bool:
    """A poll delivers two records in the wrong order."""
    delivery = work.pick([d for d in work.deliveries() if len(d.records) > 1])
    if delivery is None:
        return False
    place = work.rng.randrange(len(delivery.records) - 1)
    one, other = delivery.records[place : place + 2]
    delivery.records[place : place + 2] = [other, one]
    return True


def read_early(work: Work) -> bool:
    """A record is read before its send began."""
    write = work.pick(work.committed("ok", "info"))
    polls = [op for op in work.ops if op.f == "poll" and op.type == "ok"]
    poll = work.pick([op for op in polls if write is not None and op.index < write.invoked])
    if poll is None:
        return False
    poll.value[0][1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def read_own(work: Work) -> bool:
    """A transaction reads a record that it has sent itself."""
    found = [
        (op, micro_op, write)
        for op in work.ops
        if op.f == "txn" and op.type != "invoke"
        for micro_op in op.value
        if micro_op[0] == "poll" and len(micro_op) > 1
        for write in work.model.writes.values()
        if write.completed == op.index and write.offset is not None
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    _, micro_op, write = choice
    micro_op[1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def acknowledge_elsewhere(work: Work) -> bool:
    """A record is acknowledged at the offset of another record."""
    writes = [w for w in work.committed() if work.ack_of(w) is not None]
    write = work.pick(writes)
    others = [w for w in work.committed() if write is not None and w.key == write.key]
    other = work.pick([w for w in others if w.value != write.value])
    if other is None:
        return False
    ack = work.ack_of(write)
    assert ack is not None, "only acknowledged sends were candidates"
    ack[2][0] = other.offset
    return True


def disagree(work: Work) -> bool:
    """A reader receives, in the place of a record, a value that was sent but never written."""
    never = [
        w
        for w in work.model.writes.values()
        if w.offset is None and w.outcome == "info" and not w.txn
    ]
    found = [
        (record, write)
        for delivery in work.of_readers()
        for record in delivery.records
        for write in never
        if write.key == delivery.key
        and write.invoked < delivery.at
        and record[0] is not None
        and record[0] >= work.model.starts[delivery.key]
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    record, write = choice
    record[1] = write.value
    return True


def _later_probe(work: Work, end: str, before: str) -> tuple[dict[str, int], int] | None:
    """Return the ends that a probe states, and an end that an earlier probe had stated.

    The earlier probe completed before the later one was invoked.
    """
    probes = work.probes()
    found = [
        (later.value[0][2], earlier.value[0][2][before])
        for earlier in probes
        for later in probes
        if earlier.value[0][1] == later.value[0][1]
        and earlier.index < work.invoked[later.index]
        and earlier.value[0][2][before] > 0
        and later.value[0][2][end] >= earlier.value[0][2][before]
    ]
    choice: tuple[dict[str, int], int] | None = work.pick(found)
    return choice


def regress_high(work: Work) -> bool:
    """A high watermark is lower than one that was stated before."""
    choice = _later_probe(work, "high", "high")
    if choice is None:
        return False
    ends, before = choice
    ends["high"] = work.rng.randrange(before)
    return True


def regress_stable(work: Work) -> bool:
    """A last stable offset is lower than one that was stated before."""
    choice = _later_probe(work, "stable", "stable")
    if choice is None:
        return False
    ends, before = choice
    ends["stable"] = work.rng.randrange(before)
    return True


def regress_start(work: Work) -> bool:
    """A log start offset is lower than one that was stated before."""
    choice = _later_probe(work, "start", "start")
    if choice is None:
        return False
    ends, before = choice
    ends["start"] = work.rng.randrange(before)
    return True


def end_below_acknowledged(work: Work) -> bool:
    """A high watermark, requested after a record was acknowledged, is not above its offset."""
    found = [
        (probe.value[0][2], write.offset)
        for probe in work.probes()
        for write in work.committed()
        if write.key == probe.value[0][1] and int(write.completed or 0) < work.invoked[probe.index]
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    ends, offset = choice
    ends["high"] = work.rng.randint(0, offset)
    return True


def stable_above_open(work: Work) -> bool:
    """A last stable offset is above the record of an open transaction."""
    found = [
        (probe.value[0][2], write.offset)
        for write, until in work.open_after()
        for probe in work.probes()
        if probe.value[0][1] == write.key and write.invoked < probe.index < until
    ]
    found = [(ends, offset) for ends, offset in found if ends["high"] > offset]
    choice = work.pick(found)
    if choice is None:
        return False
    ends, offset = choice
    ends["stable"] = work.rng.randint(offset + 1, ends["high"])
    return True


def read_open(work: Work) -> bool:
    """A record of a transaction is read while the transaction is open."""
    found = [
        (op, write)
        for write, until in work.open_after()
        for op in work.ops
        if op.f == "poll" and op.type == "ok" and write.invoked < op.index < until
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    op, write = choice
    op.value[0][1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def restore_deleted(work: Work) -> bool:
    """The final reader receives a record that was deleted."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.offset is not None
            and not w.aborted
            and w.outcome == "ok"
            and w.offset < work.model.starts[w.key]
        ]
    )
    if write is None:
        return False
    work.place_finally(write.key, write.offset, write.value)
    return True


def read_in_a_circle(work: Work) -> bool:
    """Two transactions read each other's records."""
    txns: dict[int, tuple[list[Any], Write]] = {}
    for write in work.committed("ok"):
        op = work.ops[write.completed or 0]
        polls = [m for m in op.value if m[0] == "poll" and len(m) > 1]
        if op.f == "txn" and polls:
            txns[op.index] = polls[0], write
    if len(txns) < 2:
        return False
    (poll, write), (other_poll, other) = work.rng.sample(list(txns.values()), 2)
    poll[1].setdefault(other.key, []).append([other.offset, other.value])
    other_poll[1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def crash(work: Work) -> bool:
    """A broker exits unexpectedly."""
    end = work.ops[-1]
    value = {"node": "broker-1", "serves": True, "status": 1, "last_line": "out of memory"}
    work.ops.append(
        Op(
            index=end.index + 1,
            time_ns=end.time_ns + 1,
            process=NEMESIS,
            type="info",
            f="crash",
            value=value,
        )
    )
    return True


CORRUPTIONS: tuple[Corruption, ...] = (
    lose,
    lose_after_read,
    acknowledge_nothing,
    tear,
    double,
    invent,
    invent_without_offset,
    misroute,
    read_failed,
    read_aborted,
    reorder_own,
    reorder_within,
    reorder_in_time,
    skip_within,
    skip_between,
    repeat_within,
    repeat_between,
    reorder_delivery,
    read_early,
    read_own,
    acknowledge_elsewhere,
    disagree,
    regress_high,
    regress_stable,
    regress_start,
    end_below_acknowledged,
    stable_above_open,
    read_open,
    restore_deleted,
    read_in_a_circle,
    crash,
)


def corrupt(model: Model, rng: random.Random, count: int) -> tuple[list[Op], list[str]]:
    """Return the history with up to ``count`` corruptions, and their names in order."""
    work = Work(model, rng)
    made: list[str] = []
    for corruption in rng.sample(CORRUPTIONS, len(CORRUPTIONS)):
        if len(made) == count:
            break
        if corruption(work):
            made.append(corruption.__name__)
    return work.ops, made
