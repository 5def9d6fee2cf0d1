"""Generates reader functions: one per layout, with one `unpack_from` per run of fixed fields."""

import builtins
from itertools import groupby

from broker_impl.wire.generate.layout import FIXED, Layout, Layouts, Placed, item_bytes_min
from broker_impl.wire.generate.schema import Field, snake_case
from broker_impl.wire.generate.source import Source

_MINE = {"buffer", "at", "number", "stop", "count", "whole"}
"""The names of a reader's own variables."""


def name(layouts: Layouts, one: Layout) -> str:
    """Return the name of the function that reads this layout."""
    return f"_read_{snake_case(one.struct.name)}_v{layouts.first(one)}"


def write_reader(source: Source, layouts: Layouts, one: Layout) -> None:
    """Add the function that reads one layout."""
    returned = f"tuple[{one.struct.name}, int]"
    source.call(
        0, f"def {name(layouts, one)}", ["buffer: memoryview", "at: int"], f" -> {returned}:"
    )
    at = "at"
    for fixed, run in groupby(one.placed, key=lambda place: place.is_fixed):
        if fixed:
            at = _read_run(source, [place.field for place in run], at)
            continue
        for place in run:
            _read_field(source, layouts, one, place, 1, at)
            at = "at"
    if one.flexible:
        if at != "at":
            source.add(1, at.replace(" + ", " += "))
            at = "at"
        _read_tags(source, layouts, one)
    whole = len(one.placed) == len(one.struct.fields)
    arguments = [
        _local(field) if whole else f"{field.name}={_local(field)}"
        for field in one.struct.fields
        if field not in one.absent
    ]
    made = f"{one.struct.name}({', '.join(arguments)})"
    if len(f"    return {made}, {at}") <= 100:
        source.add(1, f"return {made}, {at}")
    else:
        source.call(1, f"whole = {one.struct.name}", arguments)
        source.add(1, f"return whole, {at}")
    source.add(0, "")
    source.add(0, "")


def _local(field: Field) -> str:
    """Return the name of the local variable for the field."""
    hidden = field.name in _MINE or hasattr(builtins, field.name)
    return f"{field.name}_" if hidden else field.name


def _read_run(source: Source, fields: list[Field], at: str) -> str:
    """Read consecutive fields of fixed size; return the expression of the next position."""
    letters = "".join(FIXED[field.type][0] for field in fields)
    size = sum(FIXED[field.type][1] for field in fields)
    names = [_local(field) for field in fields]
    targets = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    unpacked = f"{source.format(letters)}.unpack_from"
    if len(f"    {targets} = {unpacked}(buffer, {at})") <= 100:
        source.call(1, f"{targets} = {unpacked}", ["buffer", at])
    else:
        source.add(1, "(")
        for target in names:
            source.add(2, f"{target},")
        source.add(1, f") = {unpacked}(buffer, {at})")
    return f"at + {size}"


def _read_field(
    source: Source, layouts: Layouts, one: Layout, place: Placed, depth: int, at: str
) -> None:
    """Read one field that is not part of a run; `at` is then the position after it."""
    field = place.field
    flexible, nullable = one.flexible, place.nullable
    compact = "compact_" if flexible else ""
    null = "nullable_" if nullable else ""
    target = f"{_local(field)}, at = "
    if field.is_array:
        function = source.reading(f"read_{compact}{null}array")
        least = str(item_bytes_min(place, flexible))
        source.call(
            depth,
            target + function,
            ["buffer", at, _item_reader(source, layouts, one, place), least],
        )
    elif field.type in FIXED:
        source.call(depth, target + source.reading(f"read_{field.type}"), ["buffer", at])
    elif place.item:
        source.call(depth, target + name(layouts, place.item), ["buffer", at])
    elif field.type == "uuid":
        source.call(depth, target + source.reading("read_uuid"), ["buffer", at])
    else:
        kind = "bytes" if field.type == "records" else field.type
        source.call(depth, target + source.reading(f"read_{compact}{null}{kind}"), ["buffer", at])


def _item_reader(source: Source, layouts: Layouts, one: Layout, place: Placed) -> str:
    if place.item:
        return name(layouts, place.item)
    kind = place.field.type
    compact = "compact_" if one.flexible and kind in ("string", "bytes") else ""
    return source.reading(f"read_{compact}{kind}")


def _read_tags(source: Source, layouts: Layouts, one: Layout) -> None:
    """Read the tagged fields; those that are missing keep their defaults."""
    if not one.tagged:
        skip = source.reading("skip_tags")
        source.add(1, f"at = {skip}(buffer, at) if buffer[at] else at + 1")
        return
    for place in one.tagged:
        annotation = f"{_local(place.field)}: {place.field.python_type}"
        if "None" not in annotation and not place.field.is_array:
            annotation = _local(place.field)
        source.add(1, f"{annotation} = {place.field.default}")
        if place.field.type in ("bytes", "records", "uuid"):
            source.use("broker_impl.wire.types", "Buffer")
    source.call(1, f"count, at = {source.reading('read_uvarint')}", ["buffer", "at"])
    source.add(1, "for _ in range(count):")
    source.call(2, f"number, at, stop = {source.reading('read_tag')}", ["buffer", "at"])
    word = "if"
    for place in one.tagged:
        source.add(2, f"{word} number == {place.field.tag}:")
        _read_field(source, layouts, one, place, 3, "at")
        source.call(3, source.reading("check_tag_end"), ["at", "stop"])
        word = "elif"
    source.add(2, "else:")
    source.add(3, "at = stop")
