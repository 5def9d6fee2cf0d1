"""Generates large correct histories, block by block, with requested anomalies at known places.

In each cycle all writers send at the same time, and then all readers poll what was sent to their
partitions. At the end the readers have read every partition to its end.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bench.spark.blocks import (
    ABORT,
    ASSIGN,
    CATCH_UP,
    FAIL,
    INVOKE,
    NAMES,
    OK,
    POLL,
    SEND,
    Block,
    MicroOps,
    Records,
)
from checkers.kernels.rows import I64, UNKNOWN, Bools

WRITERS, READERS = 8, 4
CYCLES_OF_BLOCK = 10_000
PHANTOM_FROM = 10**12
"""Values from here on are never sent."""
RECORDS_MAX = 3
"""The most records of one operation; the records of a transaction have different partitions."""
ABORTED = 0.02
"""The share of transactions that abort."""
_OPERATIONS = WRITERS + READERS
_EVENTS = 2 * _OPERATIONS
_RECORDS = {"lost-write": 3, "duplicate": 2, "phantom": 1}
PLANTED: Mapping[str, Mapping[str, int]] = {
    "idempotent": _RECORDS,
    "transactions": {**_RECORDS, "G1a": 1, "torn-transaction": 1, "wr-cycle": 1},
}
"""How many findings of each anomaly are planted, by kind of history."""
_FORCED = {"torn-transaction": 2}
"""How many records the operation with the planted anomaly has, where it is more than one."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Describes a history."""

    kind: str
    operations: int
    """Pairs of an invocation and a completion."""
    partitions: int = 32
    hot: float = 0.0
    """The share of the operations that write to the first partition in any case."""
    planted: bool = False
    seed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the partitions."""
        return tuple(f"orders-{number}" for number in range(self.partitions))

    @property
    def cycles(self) -> int:
        """How many cycles there are besides the first assignments and the final operations."""
        return (self.operations - READERS - self.partitions) // _OPERATIONS

    @property
    def planted_names(self) -> tuple[str, ...]:
        """The planted anomalies, in the order of the history."""
        return tuple(Counter(PLANTED[self.kind]).elements()) if self.planted else ()

    @property
    def plants(self) -> dict[int, str]:
        """The planted anomaly of each cycle that has one, spread evenly over the history."""
        names = self.planted_names
        gap = self.cycles // (len(names) + 1)
        return {gap * (number + 1): name for number, name in enumerate(names)}


class _Sends(NamedTuple):
    """The sending operations of a block: one row per cycle and writer."""

    first: I64
    """The partition of the first record."""
    step: I64
    """The distance between the partitions of two records."""
    records: I64
    aborted: Bools


class _Log(NamedTuple):
    """What is appended to the logs: the records of sends, and planted copies of them."""

    send: I64
    """The row of the sending operation."""
    place: I64
    """The place of the record in its operation."""
    key: I64
    is_extra: Bools
    offset: I64
    value: I64


def blocks(spec: Spec) -> Iterator[Block]:
    """Yield the events of a history; raises :class:`ValueError` if it would have no cycle."""
    if spec.cycles <= len(spec.planted_names):
        raise ValueError(f"{spec.operations} operations are too few for {spec.kind}")
    block = _assignments(spec)
    yield block
    first = len(block.process)
    offset_next = np.zeros(spec.partitions, dtype=np.int64)
    value_next = np.zeros(spec.partitions, dtype=np.int64)
    for begin in range(0, spec.cycles, CYCLES_OF_BLOCK):
        end = min(spec.cycles, begin + CYCLES_OF_BLOCK)
        here = {c - begin: name for c, name in spec.plants.items() if begin <= c < end}
        block = _cycles(spec, begin, end - begin, here, (first, offset_next, value_next))
        yield block
        first += len(block.process)
    yield _ending(spec, first, offset_next)


def _cycles(
    spec: Spec, begin: int, cycles: int, plants: Mapping[int, str], state: tuple[int, I64, I64]
) -> Block:
    first, offset_next, value_next = state
    sends = _drawn(spec, np.random.default_rng([spec.seed, begin]), cycles, plants)
    row = {name: _rows(plants, name) for name in ("lost-write", "torn-transaction", "G1a")}
    log = _appended(spec, sends, plants, offset_next, value_next)
    is_first = (log.place == 0) & ~log.is_extra
    hidden = sends.aborted[log.send] & ~np.isin(log.send, row["G1a"])
    missing = np.append(row["lost-write"], row["torn-transaction"])
    hidden |= is_first & np.isin(log.send, missing)
    cycle, writer = np.divmod(log.send, WRITERS)
    invoked = cycle * _EVENTS + writer
    poll = cycle * _EVENTS + 2 * WRITERS + READERS + log.key % READERS
    read = Records(poll, log.key, log.offset, log.value)
    extra, circle = _circle(log, _rows(plants, "wr-cycle"), invoked)
    sent = Records(invoked, log.key, log.offset, log.value)
    micro_ops = (
        _micro_ops(_kept(sent, ~log.is_extra), log.place[~log.is_extra]),
        _aborts(sends),
        _polls(cycles),
        extra,
    )
    records = _joined([_kept(read, ~hidden), circle])
    kinds, names = _types(spec, sends, cycles), np.full((cycles, _EVENTS), NAMES.index("poll"))
    names[:, : 2 * WRITERS] = NAMES.index("txn" if spec.kind == "transactions" else "send")
    writers, readers = np.arange(WRITERS), np.arange(WRITERS, _OPERATIONS)
    process = np.tile(np.concatenate((writers, writers, readers, readers)), cycles)
    return Block(first, process, kinds, names.ravel(), _joined(micro_ops), Records(*records))


def _drawn(spec: Spec, rng: np.random.Generator, cycles: int, plants: Mapping[int, str]) -> _Sends:
    """Draw the sends, and set those that a planted anomaly needs."""
    count = cycles * WRITERS
    first = rng.integers(spec.partitions, size=count)
    first[rng.random(count) < spec.hot] = 0
    step = rng.integers(1, (spec.partitions - 1) // 2 + 1, size=count)
    records = rng.integers(1, RECORDS_MAX + 1, size=count)
    aborted = rng.random(count) < (ABORTED if spec.kind == "transactions" else 0.0)
    for cycle, name in plants.items():
        row = cycle * WRITERS
        records[row : row + 2] = _FORCED.get(name, 1)
        aborted[row : row + 2] = name == "G1a"
    if spec.kind != "transactions":
        step[:] = 0
    return _Sends(first, step, records, aborted)


def _rows(plants: Mapping[int, str], *names: str) -> I64:
    """Return the sends in which these anomalies are planted."""
    return np.array([c * WRITERS for c, name in plants.items() if name in names], dtype=np.int64)


def _appended(
    spec: Spec, sends: _Sends, plants: Mapping[int, str], offset_next: I64, value_next: I64
) -> _Log:
    """Append the records to the logs, after ``offset_next`` and ``value_next``, which move."""
    send = np.repeat(np.arange(len(sends.records)), sends.records)
    place = np.arange(len(send)) - np.repeat(_before(sends.records), sends.records)
    copied = (place == 0) & np.isin(send, _rows(plants, "duplicate", "phantom"))
    again = np.repeat(np.arange(len(send)), 1 + copied)
    is_extra = np.append(False, again[1:] == again[:-1])
    send, place = send[again], place[again]
    key = (sends.first[send] + place * sends.step[send]) % spec.partitions
    width = np.where(is_extra | (spec.kind != "transactions"), 1, 2)  # a marker ends each
    value = _numbers(key, 1 - is_extra.astype(np.int64), value_next) - is_extra
    value[is_extra & np.isin(send, _rows(plants, "phantom"))] += PHANTOM_FROM
    return _Log(send, place, key, is_extra, _numbers(key, width, offset_next), value)


def _before(widths: I64) -> I64:
    return np.cumsum(widths) - widths


def _numbers(key: I64, width: I64, following: I64) -> I64:
    """Number the rows of each key from ``following`` on, which moves by the sum of the widths."""
    order = np.argsort(key, kind="stable")
    sums = _before(width[order])
    begins = np.searchsorted(key[order], np.arange(len(following)))
    starts = np.append(sums, 0)[begins] - following
    numbers = np.empty_like(key)
    numbers[order] = sums - starts[key[order]]
    following += np.bincount(key, weights=width, minlength=len(following)).astype(np.int64)
    return numbers


def _micro_ops(sent: Records, place: I64) -> MicroOps:
    """Return the sends of records as they are requested, and as they are answered."""
    count = len(place)
    op = np.full(count, SEND)
    asked = MicroOps(sent.event, place, op, sent.key, np.full(count, UNKNOWN), sent.value)
    return _joined([asked, asked._replace(event=sent.event + WRITERS, offset=sent.offset)])


def _aborts(sends: _Sends) -> MicroOps:
    cycle, writer = np.divmod(np.flatnonzero(sends.aborted), WRITERS)
    invoked = cycle * _EVENTS + writer
    return _bare(ABORT, np.concatenate((invoked, invoked + WRITERS)), RECORDS_MAX)


def _polls(cycles: int) -> MicroOps:
    rows = np.arange(2 * WRITERS, _EVENTS)
    return _bare(POLL, (np.arange(cycles)[:, None] * _EVENTS + rows).ravel(), 0)


def _bare(op: int, event: I64, place: int) -> MicroOps:
    """Return micro-operations without fields."""
    none = np.full(len(event), UNKNOWN)
    return MicroOps(event, np.full(len(event), place), np.full(len(event), op), none, none, none)


def _circle(log: _Log, sends: I64, invoked: I64) -> tuple[MicroOps, Records]:
    """Let each of these transactions and the next one poll the record of the other."""
    place = UNKNOWN  # before the records of the transaction
    row = np.searchsorted(log.send, np.append(sends, sends + 1))
    other = np.searchsorted(log.send, np.append(sends + 1, sends))
    event = invoked[row]
    polls = _bare(POLL, np.concatenate((event, event + WRITERS)), place)
    return polls, Records(event + WRITERS, log.key[other], log.offset[other], log.value[other])


def _types(spec: Spec, sends: _Sends, cycles: int) -> I64:
    kinds = np.full((cycles, _EVENTS), OK)
    kinds[:, :WRITERS] = INVOKE
    kinds[:, 2 * WRITERS : 2 * WRITERS + READERS] = INVOKE
    aborted = sends.aborted.reshape(cycles, WRITERS)
    kinds[:, WRITERS : 2 * WRITERS][aborted] = FAIL
    return kinds.ravel()


def _kept(records: Records, kept: Bools) -> Records:
    return Records(*(column[kept] for column in records))


def _joined(parts: Sequence[Any]) -> Any:
    """Append the columns of tuples of one type."""
    return type(parts[0])(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _assignments(spec: Spec) -> Block:
    """Assign each partition to one reader."""
    key = np.arange(spec.partitions)
    named = _bare(ASSIGN, key % READERS, 0)._replace(place=key, key=key)
    readers = WRITERS + np.arange(READERS)
    return _serial(0, readers, np.full(READERS, NAMES.index("assign")), named, named)


def _ending(spec: Spec, first: int, ends: I64) -> Block:
    """Poll until the number of operations is right, and read each partition to its end."""
    key = np.arange(spec.partitions)
    polls = spec.operations - READERS - spec.cycles * _OPERATIONS - spec.partitions
    asked = _bare(CATCH_UP, polls + key, 0)._replace(key=key)
    answered = asked._replace(offset=ends, value=ends)
    poll = _bare(POLL, np.arange(polls), 0)
    reader = np.concatenate((np.zeros(polls, dtype=np.int64), key % READERS))
    names = np.where(np.arange(len(reader)) < polls, NAMES.index("poll"), NAMES.index("catch-up"))
    parts = (_joined([poll, asked]), _joined([poll, answered]))
    return _serial(first, WRITERS + reader, names, *parts)


def _serial(first: int, process: I64, names: I64, asked: MicroOps, answered: MicroOps) -> Block:
    """Return operations one after the other; ``event`` counts operations here."""
    invoked = asked._replace(event=2 * asked.event)
    completed = answered._replace(event=2 * answered.event + 1)
    none = np.zeros(0, dtype=np.int64)
    return Block(
        first,
        np.repeat(process, 2),
        np.tile(np.array([INVOKE, OK]), len(process)),
        np.repeat(names, 2),
        _joined([invoked, completed]),
        Records(none, none, none, none),
    )
