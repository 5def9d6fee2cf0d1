"""Generates the writer functions: one per layout, corresponding to the readers."""

from itertools import groupby

from broker_impl.wire.generate.layout import FIXED, Layout, Layouts, Placed
from broker_impl.wire.generate.schema import Field, Message, snake_case
from broker_impl.wire.generate.source import Source


def name(layouts: Layouts, one: Layout) -> str:
    """Return the name of the function that writes this layout."""
    return f"_write_{snake_case(one.struct.name)}_v{layouts.first(one)}"


def write_writer(source: Source, layouts: Layouts, one: Layout) -> None:
    """Add the function that writes one layout."""
    parts = f"parts: {source.writing('Parts')}"
    source.call(0, f"def {name(layouts, one)}", [parts, f"value: {one.struct.name}"], " -> None:")
    start = len(source.lines)
    for field in one.absent:
        if not field.ignorable:
            source.add(1, f"if {_is_set(field)}:")
            source.call(2, source.writing("refuse"), [f'"{field.name}"'])
    for fixed, run in groupby(one.placed, key=lambda place: place.is_fixed):
        if fixed:
            _write_run(source, [place.field for place in run])
            continue
        for place in run:
            _write_field(source, layouts, one, place, 1, "parts")
    if one.flexible:
        _write_tags(source, layouts, one)
    if len(source.lines) == start:
        source.add(1, "pass")
    source.add(0, "")
    source.add(0, "")


def _is_set(field: Field) -> str:
    """Return an expression that is true if the field's value is not its default."""
    value = f"value.{field.name}"
    match field.default:
        case "None":
            return f"{value} is not None"
        case "[]" | "False" | '""' | 'b""' | "0":
            return value if "None" not in field.python_type else f"{value} or {value} is None"
        case "True":
            return f"not {value}"
        case default if default.endswith("()"):
            return f"{value} != {nothing_of(field.type)}"
        case _:
            return f"{value} != {field.default}"


def nothing_of(struct: str) -> str:
    """Return the name of a struct's default instance, a constant to compare messages with."""
    return f"_NO_{snake_case(struct).upper()}"


def write_defaults(source: Source, message: Message) -> None:
    """Add the default instances that the writers of this message need."""
    fields = [field for struct in message.structs.values() for field in struct.fields]
    defaults = {field.type: None for field in fields if field.default == f"{field.type}()"}
    for struct in defaults:
        source.add(0, f"{nothing_of(struct)} = {struct}()")
    if defaults:
        source.add(0, "")
        source.add(0, "")


def _write_run(source: Source, fields: list[Field]) -> None:
    letters = "".join(FIXED[field.type][0] for field in fields)
    arguments = [f"value.{field.name}" for field in fields]
    packed = f"{source.format(letters)}.pack"
    if len(f"    parts.append({packed}({', '.join(arguments)}))") <= 100:
        source.call(1, "parts.append", [f"{packed}({', '.join(arguments)})"])
        return
    source.add(1, "parts.append(")
    source.call(2, packed, arguments)
    source.add(1, ")")


def _write_field(
    source: Source, layouts: Layouts, one: Layout, place: Placed, depth: int, parts: str
) -> None:
    """Write one field that is not part of a run."""
    field = place.field
    compact = "compact_" if one.flexible else ""
    null = "nullable_" if place.nullable else ""
    value = f"value.{field.name}"
    if "None" in field.python_type and not place.nullable:
        value = f'{source.writing("present")}({value}, "{field.name}")'
    if field.is_array:
        function = source.writing(f"write_{compact}{null}array")
        source.call(depth, function, [parts, value, _item_writer(source, layouts, one, place)])
    elif place.item:
        source.call(depth, name(layouts, place.item), [parts, value])
    elif field.type in FIXED:
        source.call(depth, source.writing(f"write_{field.type}"), [parts, value])
    elif field.type == "uuid":
        source.call(depth, source.writing("write_uuid"), [parts, value])
    else:
        source.call(depth, source.writing(f"write_{compact}{null}{field.type}"), [parts, value])


def _item_writer(source: Source, layouts: Layouts, one: Layout, place: Placed) -> str:
    if place.item:
        return name(layouts, place.item)
    kind = place.field.type
    compact = "compact_" if one.flexible and kind in ("string", "bytes") else ""
    return source.writing(f"write_{compact}{kind}")


def _write_tags(source: Source, layouts: Layouts, one: Layout) -> None:
    if not one.tagged:
        source.call(1, "parts.append", [source.writing("NO_TAGS")])
        return
    source.add(1, "tags: list[bytes] = []")
    for place in one.tagged:
        source.add(1, f"if {_is_set(place.field)}:")
        source.add(
            2, f"field: {source.writing('Parts')} = []" if place is one.tagged[0] else "field = []"
        )
        _write_field(source, layouts, one, place, 2, "field")
        source.call(2, "tags.append", [f"{source.writing('tagged')}({place.field.tag}, field)"])
    source.call(1, source.writing("write_tags"), ["parts", "tags"])
