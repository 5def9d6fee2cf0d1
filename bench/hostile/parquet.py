"""Hostile histories in Parquet."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.hostile.case import ANY, READS, REFUSED, REFUSES, VALID, Case
from bench.hostile.histories import LINES, TEXT, check
from checkers import jsonl, pieces

PARQUET = "history.parquet"

Change = Callable[[pa.Table], pa.Table]


def _written(change: Change, **options: Any) -> Callable[[Path], None]:
    """Return a function that writes the valid history, changed, as a Parquet file."""

    def prepare(folder: Path) -> None:
        (folder / "lines.jsonl").write_bytes(TEXT)
        table = jsonl.read(folder / "lines.jsonl", lambda done: None)
        (folder / "lines.jsonl").unlink()
        pq.write_table(change(table), folder / PARQUET, **options)

    return prepare


def _parquet(
    name: str, change: Change, may: frozenset[int] = REFUSES, mentions: str = "", **options: Any
) -> Case:
    arguments = ("check", PARQUET, "--inline")
    prepare = _written(change, **options)
    return Case(f"Parquet: {name}", arguments, prepare, may, mentions, PARQUET)


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _cast(name: str, kind: pa.DataType) -> Change:
    return lambda table: _with(table, name, table[name].cast(kind))


def _cell(name: str, row: int, value: Any) -> Change:
    """Replace the value in one row."""

    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        kind = table.schema.field(name).type
        return _with(table, name, pa.array(values, kind))

    return change


def _nested(edit: Callable[[list[Any]], Any]) -> Change:
    """Change the nested column as Python values."""

    def change(table: pa.Table) -> pa.Table:
        values = table["value"].to_pylist()
        edit(values)
        return _with(table, "value", pa.array(values, table.schema.field("value").type))

    return change


def _set(row: int, name: str, value: Any, record: int | None = None) -> Change:
    """Set a field of the last micro-operation of a row, or of one of its records."""

    def edit(values: list[Any]) -> None:
        op = values[row][-1]
        (op if record is None else op["records"][record])[name] = value

    return _nested(edit)


def parquet() -> Iterator[Case]:
    """Yield other schemas and encodings, and cells that a history of lines cannot have."""
    valid = frozenset({VALID})
    same: Change = lambda table: table  # noqa: E731
    yield _parquet("unchanged", same, valid)
    yield _parquet("two row groups", same, valid, row_group_size=5)
    yield _parquet("plain encoding", same, valid, use_dictionary=False)
    yield _parquet("zstd", same, valid, compression="zstd")
    yield _parquet("pages of version 2", same, valid, data_page_version="2.0")
    yield _parquet("no stored schema", same, valid, store_schema=False)
    yield _parquet("no rows", lambda table: table.slice(0, 0))
    yield _parquet("another order of the columns", lambda t: t.select(t.schema.names[::-1]), valid)
    yield _parquet(
        "a further column",
        lambda t: t.append_column("node", pa.array(["n"] * len(t))),
        READS,
        "node",
    )
    yield from _more()
    for name in pieces.SCHEMA.names:
        yield _parquet(f"no {name}", lambda t, name=name: t.drop_columns([name]))
        yield _parquet(
            f"{name} with another name",
            lambda t, n=name: t.rename_columns([f"{c}_" if c == n else c for c in t.schema.names]),
        )
        yield _parquet(f"{name} twice", lambda t, n=name: t.append_column(n, t[n]))
        yield _parquet(
            f"{name} all null",
            lambda t, n=name: _with(t, n, pa.nulls(len(t))),
            ANY if name in ("value", "detail", "error") else REFUSES,
        )
        yield _parquet(
            f"{name} of booleans", lambda t, n=name: _with(t, n, pa.array([True] * len(t)))
        )
        yield _parquet(f"{name} of lists", lambda t, n=name: _with(t, n, pa.array([[1]] * len(t))))
    for name in ("index", "time_ns", "process"):
        yield _parquet(f"{name} as text", _cast(name, pa.string()), frozenset({VALID, REFUSED}))
        yield _parquet(
            f"{name} as fractions", _cast(name, pa.float64()), frozenset({VALID, REFUSED})
        )
        yield _parquet(
            f"{name} of 64 unsigned bits",
            lambda t, n=name: _with(t, n, pa.array([2**64 - 1] * len(t), pa.uint64())),
        )
        yield _parquet(
            f"{name} is NaN", lambda t, n=name: _with(t, n, pa.array([float("nan")] * len(t)))
        )
        yield _parquet(f"{name} is 1.5", lambda t, n=name: _with(t, n, pa.array([1.5] * len(t))))
        for value in (None, -7, 2**31 - 1):
            may = ANY if value == 2**31 - 1 else REFUSES
            yield _parquet(f"{name} {value} in one row", _cell(name, 3, value), may)
    for name in ("type", "f"):
        for text in (None, "", "surprise", "\x1b]0;a\x07"):
            yield _parquet(f"{name} {text!r} in one row", _cell(name, 3, text))
    yield _parquet("an error with escapes", _cell("error", 33, "\x1b]0;a\x07"), valid)
    for text in ("", "{", "nul", "[[]]", "[1]", '[["subscribe"]]', "[" * 5000, '"\\ud800"'):
        yield _parquet(f"detail {text[:20]!r} of a client", _cell("detail", 10, text))
        yield _parquet(f"detail {text[:20]!r} of the nemesis", _cell("detail", 4, text), ANY)
    yield _parquet("a detail in a plain operation", _cell("detail", 2, '[["init","z"]]'))
    yield _parquet("no detail in a completed subscription", _cell("detail", 11, None))
    for row, what in (
        (3, "an acknowledgement"),
        (13, "a poll"),
        (15, "a commit"),
        (31, "a catch-up"),
    ):
        for field, value in (
            ("op", "surprise"),
            ("op", "poll"),
            ("op", "send"),
            ("key", None),
            ("key", ""),
            ("offset", None),
            ("offset", -7),
            ("value", None),
            ("value", -(2**63)),
            ("records", None),
            ("records", []),
        ):
            yield _parquet(f"{field} {value!r} in {what}", _set(row, field, value), ANY)
    for field, value in (
        ("key", ""),
        ("key", "other-0"),
        ("offset", None),
        ("offset", -7),
        ("offset", -1),
        ("offset", 2**63 - 1),
        ("value", -(2**63)),
    ):
        yield _parquet(
            f"{field} {value!r} of a polled record", _set(13, field, value, record=0), ANY
        )
    yield _parquet(
        "no micro-operations in an acknowledgement", _nested(lambda v: v.__setitem__(3, []))
    )
    yield _parquet("null for an acknowledgement", _nested(lambda v: v.__setitem__(3, None)))
    yield _parquet("null for a micro-operation", _nested(lambda v: v.__setitem__(3, [None])))
    yield _parquet("null for a record", _nested(lambda v: v[13][-1].__setitem__("records", [None])))
    yield _parquet("null for a key of a record", _plain_record("key", None))
    yield _parquet("null for a value of a record", _plain_record("value", None))
    yield _parquet("values as text", _micro("value", pa.string()), frozenset({VALID, REFUSED}))
    yield _parquet("keys as numbers", _micro("key", pa.int64(), 7), ANY)
    yield _parquet("flat values", lambda t: _with(t, "value", pa.array(["[]"] * len(t))))
    yield _parquet("all rows twice", lambda t: pa.concat_tables([t, t]))
    yield _parquet("rows reversed", lambda t: t.take(pa.array(range(len(t) - 1, -1, -1))))
    yield _parquet(
        "only acknowledged rows", lambda t: t.filter(pc.equal(t["type"].cast(pa.string()), "ok"))
    )
    arguments = ("check", PARQUET, "--inline")
    for cut in (0, 3, 4, 12, 100, -1, -4, -8, -9, -200):
        yield Case(f"Parquet: cut at {cut}", arguments, _cut(cut), REFUSES)
    yield check("Parquet: JSON lines with its name", TEXT, history=PARQUET)
    yield Case(
        "Parquet: with the name of JSON lines",
        ("check", "history.jsonl", "--inline"),
        _renamed,
        REFUSES,
    )
    yield Case(
        "Parquet: another table",
        arguments,
        lambda folder: pq.write_table(pa.table({"a": [1]}), folder / PARQUET),
    )


def _more() -> Iterator[Case]:
    """Yield other codecs, types and metadata, and nested unknown fields."""
    valid, may = frozenset({VALID}), frozenset({VALID, REFUSED})
    same: Change = lambda table: table  # noqa: E731
    for codec in ("none", "snappy", "gzip", "brotli", "lz4"):
        yield _parquet(f"the codec {codec}", same, valid, compression=codec)
    yield _parquet("version 1.0", same, valid, version="1.0")
    for name, types in {
        "index": (pa.int8(), pa.uint8(), pa.uint64(), pa.int32()),
        "time_ns": (pa.timestamp("ns"), pa.duration("ns"), pa.uint64(), pa.decimal128(38)),
        "process": (pa.int8(), pa.int64(), pa.decimal128(20)),
        "f": (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
        "type": (pa.string(), pa.large_string(), pa.binary()),
        "error": (pa.string(), pa.binary()),
        "detail": (pa.large_string(), pa.binary()),
    }.items():
        for kind in types:
            yield _parquet(f"{name} of {kind}", _as(name, kind), may)
    for number in (1 << 31, 1 << 63, (1 << 64) - 1):
        yield _parquet(
            f"process {number}",
            lambda t, n=number: _with(t, "process", pa.array([n] * len(t), pa.uint64())),
        )
    yield _parquet("text that is not UTF-8", _raw("f", b"\xff\xfe"))
    yield _parquet("an error that is not UTF-8", _raw("error", b"\xff\xfe"))
    yield _parquet("an error of a megabyte", _cell("error", 33, "x" * 10**6), valid)
    yield _parquet("a name of a megabyte", _cell("f", 33, "x" * 10**6))
    for where in ("micro-operation", "record"):
        yield _parquet(
            f"a further field of each {where}", _further(where), READS_OR_NOT, "surprise"
        )
    for name, metadata in {
        "torn that is not UTF-8": {b"torn": b"\xff"},
        "torn with escapes": {b"torn": b"\x1b]0;a\x07\nVALID"},
        "fields that are not JSON": {b"unknown fields": b"{"},
        "fields that are a list": {b"unknown fields": b"[1]"},
        "deep fields": {b"unknown fields": b"[" * 50_000},
        "fields with escapes": {b"unknown fields": b'{"\\u001b]0;a": 7}'},
        "long metadata": {b"x" * 10**6: b"y" * 10**6},
        "an invalid schema": {b"ARROW:schema": b"AAAA"},
    }.items():
        yield _parquet(f"metadata: {name}", _metadata(metadata), READS_OR_NOT)
    names = {f"column{number}": pa.array([number] * len(LINES)) for number in range(300)}
    yield _parquet("300 further columns", _columns(names), READS, "column0")
    for name in ("", "\x1b]0;a\x07", "x" * 10_000, "Index", "__index_level_0__"):
        column = {name: pa.array([1] * len(LINES))}
        yield _parquet(f"the further column {name[:20]!r}", _columns(column), READS, "fields that")


READS_OR_NOT = frozenset({*READS, REFUSED})


def _as(name: str, kind: pa.DataType) -> Change:
    def change(table: pa.Table) -> pa.Table:
        column = table[name].cast(_plain(table.schema.field(name).type))
        return _with(table, name, column.cast(kind))

    return change


def _same(name: str, number: int) -> Change:
    """Set one number in all rows."""
    return lambda table: _with(table, name, pa.array([number] * len(table), pa.uint64()))


def _raw(name: str, content: bytes) -> Change:
    """Store bytes that are not valid text in a column that is declared as text."""

    def change(table: pa.Table) -> pa.Table:
        column = pa.array([content] * len(table), pa.binary())
        return _with(table, name, column.view(pa.string()))

    return change


def _further(where: str) -> Change:
    def change(table: pa.Table) -> pa.Table:
        kind = _plain(pieces.SCHEMA.field("value").type.value_type)
        fields = {field.name: field.type for field in kind}
        if where == "record":
            inner = [*fields["records"].value_type, pa.field("surprise", pa.int64())]
            fields["records"] = pa.list_(pa.struct(inner))
        else:
            fields["surprise"] = pa.int64()
        values = table["value"].to_pylist()
        for op in (op for ops in values for op in ops or ()):
            for found in op["records"] or () if where == "record" else (op,):
                found["surprise"] = 7
        return _with(table, "value", pa.array(values, pa.list_(pa.struct(list(fields.items())))))

    return change


def _metadata(metadata: dict[bytes, bytes]) -> Change:
    return lambda table: table.replace_schema_metadata(metadata)


def _columns(columns: dict[str, pa.Array]) -> Change:
    def change(table: pa.Table) -> pa.Table:
        for name, column in columns.items():
            table = table.append_column(name, column)
        return table

    return change


def _micro(name: str, kind: pa.DataType, value: Any = None) -> Change:
    """Change the type of a field of micro-operations."""

    def change(table: pa.Table) -> pa.Table:
        old = pieces.SCHEMA.field("value").type.value_type
        plain = [pa.field(f.name, kind if f.name == name else _plain(f.type)) for f in old]
        values = table["value"].to_pylist()
        for op in (op for ops in values if ops for op in ops):
            if op[name] is not None:
                op[name] = str(op[name]) if value is None else value
        return _with(table, "value", pa.array(values, pa.list_(pa.struct(plain))))

    return change


def _plain_record(name: str, value: Any) -> Change:
    """Set a field of a record, in a column whose fields may all be null."""

    def change(table: pa.Table) -> pa.Table:
        values = table["value"].to_pylist()
        values[13][-1]["records"][0][name] = value
        old = pieces.SCHEMA.field("value").type.value_type
        return _with(table, "value", pa.array(values, pa.list_(_plain(old))))

    return change


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without dictionaries, and with nulls permitted everywhere."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain(f.type)) for f in kind])
    return kind


def _cut(at: int) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        _written(lambda table: table)(folder)
        whole = (folder / PARQUET).read_bytes()
        (folder / PARQUET).write_bytes(whole[:at])

    return prepare


def _renamed(folder: Path) -> None:
    _written(lambda table: table)(folder)
    (folder / PARQUET).rename(folder / "history.jsonl")


def mutated(rng: random.Random, count: int) -> Iterator[Case]:
    """Yield Parquet files in which single bytes are changed."""
    for number in range(count):
        seed = rng.random()
        yield Case(
            f"Parquet: mutated bytes {number}",
            ("check", PARQUET, "--inline"),
            _bytes(seed),
            ANY,
            history=PARQUET,
        )


def _bytes(seed: float) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        rng = random.Random(seed)
        _written(lambda table: table)(folder)
        content = bytearray((folder / PARQUET).read_bytes())
        for _ in range(rng.choice((1, 3, 9))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (folder / PARQUET).write_bytes(content)

    return prepare


assert len(LINES) == 34, "cases refer to rows by number"
