"""Generates the classes of a message: one per struct, with defaults and the versions of fields."""

from broker_impl.wire.generate.schema import Field, Message, Struct
from broker_impl.wire.generate.source import Source

_TYPES = "broker_impl.wire.types"


def write_class(source: Source, message: Message, struct: Struct) -> None:
    """Add the class of one struct."""
    source.add(0, f"class {struct.name}(msgspec.Struct):")
    if struct is message.root:
        kind = "request" if struct.name.endswith("Request") else "response"
        source.add(1, f'"""The {kind} of {message.api_name} (API {message.api_key})."""')
    else:
        source.add(1, f'"""A part of `{message.name}`."""')
    if struct.fields:
        source.add(0, "")
    for field in struct.fields:
        _write_field(source, message, field)
    source.add(0, "")
    source.add(0, "")


def _write_field(source: Source, message: Message, field: Field) -> None:
    default = field.default
    if field.type in message.structs and not field.is_array:
        default = f"msgspec.field(default_factory={field.type})"
    if field.type == "uuid":
        source.use("uuid", "UUID")
        if not field.is_array:
            source.use(_TYPES, "NO_UUID")
    if field.type == "bytes":
        source.use(_TYPES, "Buffer")
    if field.type == "records":
        source.writing("Records")
    line = f"{field.name}: {field.python_type} = {default}"
    whole = message.versions
    if field.versions.first > whole.first or field.versions.last < whole.last:
        line += f"  # v{field.versions}"
    source.add(1, line)
