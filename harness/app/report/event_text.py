"""Describes an event in a phrase."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from harness.app.report.faults import spoken
from model.op import Op

RANGES = 6
"""The number of ranges of an operation's records that are written out."""
ROWS = 400
"""The number of records of a longer poll that are described: those around the offset."""
CHARACTERS = 600
"""The maximum length of a phrase, as a transaction may touch a hundred partitions."""

Record = tuple[str, int]
"""A partition and a value."""


def shared_records(ops: Iterable[Op]) -> set[Record]:
    """Return the records that several witnesses contain.

    The finding's argument rests on them, even if they are in another partition than the finding's.
    """
    seen: set[Record] = set()
    shared: set[Record] = set()
    for op in ops:
        records = set(_records_of(op.value))
        shared |= seen & records
        seen |= records
    return shared


def _records_of(value: Any) -> Iterator[Record]:
    for micro in value if isinstance(value, list) else ():
        match micro:
            case ["send", str(where), int(number)] | ["send", str(where), [_, int(number)]]:
                yield where, number
            case ["poll", dict(polled)]:
                for where, rows in polled.items():
                    for row in rows if isinstance(rows, list) else ():
                        match row:
                            case [_, int(number)]:
                                yield str(where), number
                            case _:
                                pass
            case _:
                pass


def struck(value: Any) -> str:
    """Describe an event of the nemesis."""
    if not isinstance(value, dict):
        return "" if value is None else _short(value)
    if "node" in value:
        return f"{value['node']}: exited by itself with status {value.get('status')}"
    if "recovered" in value:
        return (
            "the cluster has recovered" if value["recovered"] else "the cluster has not recovered"
        )
    phases = {"apply": "applied to", "measure": "measured again on", "heal": "healed on"}
    phase = phases.get(str(value.get("phase")), "")
    where = spoken(value.get("targets"))
    effect = value.get("effect")
    how = str(effect.get("how", "")) if isinstance(effect, dict) else ""
    how = how.removeprefix(f"{where}: ").removeprefix(f"{where} ")
    return f"{phase} {where}".strip() + (f": {how}" if how else "")


def described(
    value: Any, key: str | None, offset: int | None, shared: AbstractSet[Record] = frozenset()
) -> str:
    """Describe an event, as far as it touches the partition or delivers a ``shared`` record.

    Of many records, only those around the offset or the shared records are written.
    """
    if not isinstance(value, list):
        return "" if value is None else _short(value)
    parts = []
    sent: dict[str, list[tuple[int | None, Any]]] = {}
    for micro in value:
        match micro:
            case ["send", str(where), [int(at), number]]:
                sent.setdefault(where, []).append((at, number))
            case ["send", str(where), number]:
                sent.setdefault(where, []).append((None, number))
            case ["poll", dict(polled)]:
                for where, rows in polled.items():
                    also = _offset_of(where, rows, shared)
                    if key is None or where == key or also is not None:
                        around = also if where != key or offset is None else offset
                        parts.append(f"{where} → {_records(rows, around)}")
            case ["poll"]:
                pass
            case ["catch-up", str(where)]:
                parts.append(f"{where} → read to the end")
            case ["catch-up", str(where), int(position), int(end)]:
                parts.append(f"{where} → position {position} of {end}")
            case str(text):
                parts.append(text)
            case _:
                parts.append(_short(micro))
    parts += [f"{where} ← {_ranges(records, offset)}" for where, records in sent.items()]
    return _clipped("; ".join(parts), CHARACTERS)


def _offset_of(where: str, rows: Any, shared: AbstractSet[Record]) -> int | None:
    """Return the offset at which a poll delivered the first of the shared records.

    Returns -1 if the client did not report the offset, and ``None`` if it delivered none of them.
    """
    if not shared or not isinstance(rows, list):
        return None
    for row in rows:
        match row:
            case [at, int(number)] if (where, number) in shared:
                return at if isinstance(at, int) else -1
            case _:
                pass
    return None


def _records(rows: Any, offset: int | None) -> str:
    if not isinstance(rows, list):
        return _short(rows)
    if len(rows) > ROWS:
        first = _near(rows, offset)
        before = "… " if first else ""
        after = " …" if first + ROWS < len(rows) else ""
        return f"{before}{_records(rows[first : first + ROWS], offset)}{after}"
    pairs = [
        (row[0], row[1]) if isinstance(row, list) and len(row) == 2 else (None, row) for row in rows
    ]
    return _ranges(pairs, offset)


def _near(rows: Sequence[Any], offset: int | None) -> int:
    """Return the first of the :data:`ROWS` rows to show of a long poll, with the offset in them."""
    place = 0
    if offset is not None:
        at = (n for n, row in enumerate(rows) if isinstance(row, list) and row[:1] >= [offset])
        with contextlib.suppress(TypeError):  # an offset that is not a number
            place = next(at, len(rows))
    return max(0, min(place - ROWS // 2, len(rows) - ROWS))


def _ranges(records: Sequence[tuple[Any, Any]], offset: int | None) -> str:
    """Format values and their offsets, as ranges where both are consecutive."""
    ranges: list[list[tuple[Any, Any]]] = []
    for at, number in records:
        if ranges and _next(ranges[-1][-1], (at, number)):
            ranges[-1][1:] = [(at, number)]
        else:
            ranges.append([(at, number)])
    first = 0
    if len(ranges) > RANGES:
        near = [
            place
            for place, ends in enumerate(ranges)
            if offset is None or (isinstance(ends[-1][0], int) and ends[-1][0] >= offset)
        ]
        first = max(0, (near[0] if near else len(ranges)) - RANGES // 2)
    shown = ranges[first : first + RANGES]
    before, after = "… " if first else "", " …" if first + len(shown) < len(ranges) else ""
    return f"{before}{', '.join(map(_range, shown))}{after}"


def _next(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Return whether the second record follows the first, by value and, if known, by offset."""
    return all(
        (isinstance(a, int) and isinstance(b, int) and b == a + 1) or (a is None and b is None)
        for a, b in zip(one, other, strict=True)
    )


def _range(ends: Sequence[tuple[Any, Any]]) -> str:
    (first_at, first), (last_at, last) = ends[0], ends[-1]
    values = str(first) if first == last else f"{first}…{last}"
    if first_at is None:
        return values
    return f"{values} at {first_at}" if first_at == last_at else f"{values} at {first_at}…{last_at}"


def _short(value: Any) -> str:
    return _clipped(msgspec.json.encode(value).decode(), 300)


def _clipped(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
