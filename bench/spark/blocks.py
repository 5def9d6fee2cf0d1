"""Converts blocks of numeric columns to events: an Arrow table, and lines of JSON."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.rows import I64, UNKNOWN
from checkers.pieces import SCHEMA, TYPES

INVOKE, OK, FAIL = (TYPES.index(name) for name in ("invoke", "ok", "fail"))
NAMES = ("assign", "send", "txn", "poll", "catch-up")
"""What the codes in ``Block.f`` mean."""
OPS = ("assign", "send", "poll", "abort", "catch-up")
"""What the codes in ``MicroOps.op`` mean."""
ASSIGN, SEND, POLL, ABORT, CATCH_UP = range(len(OPS))
STEP_NS = 10_000
"""The time from one event to the next."""
_ABORTED = "aborted"
_TEXT = pa.dictionary(pa.int32(), pa.string())
_MICRO_OP = SCHEMA.field("value").type.value_type
_RECORD = _MICRO_OP.field("records").type.value_type


class MicroOps(NamedTuple):
    """Micro-operations in any order; ``UNKNOWN`` stands for a field that one does not have."""

    event: I64
    """The row of the event in the block."""
    place: I64
    """Orders the micro-operations of one event."""
    op: I64
    key: I64
    offset: I64
    value: I64


class Records(NamedTuple):
    """Records that polls delivered, in any order; an event has one poll at most."""

    event: I64
    key: I64
    offset: I64
    value: I64


class Block(NamedTuple):
    """Consecutive events of a history, whose index counts from ``first``."""

    first: int
    process: I64
    type: I64
    f: I64
    micro_ops: MicroOps
    records: Records


class _Sorted(NamedTuple):
    """The rows of a block in the order of a file, with the ends of its lists."""

    micro_ops: MicroOps
    records: Records
    micro_op_ends: I64
    record_ends: I64
    answered: pa.Array
    """Whether the event of each micro-operation is a completion."""


def table(block: Block, keys: tuple[str, ...]) -> pa.Table:
    """Return the events as a table of the schema of ``history.parquet``."""
    rows = _sorted(block)
    micro_ops, records = rows.micro_ops, rows.records
    index = _index(block)
    record = pa.StructArray.from_arrays(
        [_coded(records.key, keys), pa.array(records.offset), pa.array(records.value)],
        fields=list(_RECORD),
    )
    micro_op = pa.StructArray.from_arrays(
        [
            _coded(micro_ops.op, OPS),
            _coded(micro_ops.key, keys),
            _sparse(micro_ops.offset),
            _sparse(micro_ops.value),
            pa.ListArray.from_arrays(pa.array(rows.record_ends, pa.int32()), record),
            pa.nulls(len(micro_ops.op), _TEXT),
        ],
        fields=list(_MICRO_OP),
    )
    error = np.where(block.type == FAIL, 0, UNKNOWN)
    return pa.Table.from_arrays(
        [
            pa.array(index),
            pa.array(index * STEP_NS),
            pa.array(block.process, pa.int32()),
            _coded(block.type, TYPES),
            _coded(block.f, NAMES),
            pa.ListArray.from_arrays(pa.array(rows.micro_op_ends, pa.int32()), micro_op),
            pa.nulls(len(index), pa.string()),
            _coded(error, (_ABORTED,)),
        ],
        schema=SCHEMA,
    )


def lines(block: Block, keys: tuple[str, ...]) -> memoryview:
    """Return the events as lines of ``history.jsonl``."""
    rows = _sorted(block)
    texts = _joined_lists(_micro_op_texts(rows, keys), rows.micro_op_ends)
    index = _index(block)
    ends = pa.array(['],"error":"aborted"}\n', "]}\n"])
    whole = _text(
        '{"index":',
        index,
        ',"time_ns":',
        index * STEP_NS,
        ',"process":',
        block.process,
        ',"type":"',
        pa.array(TYPES).take(pa.array(block.type)),
        '","f":"',
        pa.array(NAMES).take(pa.array(block.f)),
        '","value":[',
        texts,
        ends.take(pa.array(np.where(block.type == FAIL, 0, 1))),
    )
    begin, end = whole.offset, whole.offset + len(whole)
    offsets = np.frombuffer(whole.buffers()[1], dtype=np.int32)
    return memoryview(whole.buffers()[2])[offsets[begin] : offsets[end]]


def _sorted(block: Block) -> _Sorted:
    order = np.lexsort((block.micro_ops.place, block.micro_ops.event))
    micro_ops = MicroOps(*(column[order] for column in block.micro_ops))
    records = block.records
    order = np.lexsort((records.offset, records.key, records.event))
    records = Records(*(column[order] for column in records))
    events = len(block.process)
    delivered = np.bincount(records.event, minlength=events)
    per_micro_op = np.where(micro_ops.op == POLL, delivered[micro_ops.event], 0)
    return _Sorted(
        micro_ops,
        records,
        _ends(np.bincount(micro_ops.event, minlength=events)),
        _ends(per_micro_op),
        pa.array(block.type[micro_ops.event] != INVOKE),
    )


def _ends(counts: I64) -> I64:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))


def _index(block: Block) -> I64:
    return np.arange(block.first, block.first + len(block.process), dtype=np.int64)


def _coded(codes: I64, names: tuple[str, ...]) -> pa.DictionaryArray:
    none = codes == UNKNOWN
    numbers = pa.array(codes, pa.int32(), mask=none if none.any() else None)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))


def _sparse(numbers: I64) -> pa.Array:
    return pa.array(numbers, mask=numbers == UNKNOWN)


def _micro_op_texts(rows: _Sorted, keys: tuple[str, ...]) -> pa.Array:
    """Return each micro-operation as it is written, given its operation and what it knows."""
    micro_ops = rows.micro_ops
    names = pa.array([f'"{key}"' for key in (*keys, "")])
    key = names.take(pa.array(micro_ops.key % len(names)))
    offset, value = pa.array(micro_ops.offset), pa.array(micro_ops.value)
    is_known = pa.array(micro_ops.offset != UNKNOWN)
    polled = pc.if_else(rows.answered, _polled_texts(rows, names), "")
    sent = pc.if_else(is_known, _text("[", offset, ",", value, "]"), _text(value))
    caught_up = pc.if_else(is_known, _text(",", offset, ",", value), "")
    forms = {
        ASSIGN: key,
        SEND: _text('["send",', key, ",", sent, "]"),
        POLL: _text('["poll"', polled, "]"),
        ABORT: pa.repeat('["abort"]', len(key)),
        CATCH_UP: _text('["catch-up",', key, caught_up, "]"),
    }
    return pc.choose(pa.array(micro_ops.op), *(forms[op] for op in range(len(OPS))))


def _polled_texts(rows: _Sorted, names: pa.Array) -> pa.Array:
    """Return for each micro-operation the map of records that a poll of it has delivered."""
    records = rows.records
    texts = _text("[", pa.array(records.offset), ",", pa.array(records.value), "]")
    is_new = np.ones(len(texts), dtype=np.bool_)
    is_new[1:] = (np.diff(records.event) != 0) | (np.diff(records.key) != 0)
    begins = np.flatnonzero(is_new)
    per_key = _joined_lists(texts, np.append(begins, len(texts)))
    entries = _text(names.take(pa.array(records.key[begins])), ":[", per_key, "]")
    ends = np.searchsorted(begins, rows.record_ends)
    return _text(",{", _joined_lists(entries, ends), "}")


def _joined_lists(texts: pa.Array, ends: I64) -> pa.Array:
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), texts), ",")


def _text(*parts: str | I64 | pa.Array) -> pa.Array:
    """Join texts and numbers, row by row."""
    columns = [part if isinstance(part, str) else pc.cast(part, pa.string()) for part in parts]
    return pc.binary_join_element_wise(*columns, "")
