"""Kafka's message schemas as values: parsed, checked, and with names in snake case.

Kafka's `clients/src/main/resources/common/message/README.md` describes the format. Features that
the selected schemas do not use (varint fields, nullable structs, flexible versions per field) are
rejected.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

FOREVER: Final = 1 << 15  # versions are 16 bits wide

PYTHON_TYPES: Final[Mapping[str, str]] = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "uint32": "int",
    "int64": "int",
    "float64": "float",
    "string": "str",
    "bytes": "Buffer",
    "records": "Records",
    "uuid": "UUID",
}


class SchemaError(Exception):
    """A schema uses a feature that this generator does not support."""


def snake_case(name: str) -> str:
    """`LeaderAndIsrRequest` → `leader_and_isr_request`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends included; empty if `first > last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Parse `3`, `3-5`, `3+` or `none`; None means `none`."""
        if text is None or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), FOREVER)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last == FOREVER:
            return f"{self.first}+"
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Field:
    """One field of a struct."""

    name: str
    """The name in snake case."""
    type: str
    """The schema's name of the type; for an array, of its items."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    """The number of a tagged field."""
    ignorable: bool
    """Whether a version without this field may drop a value other than the default."""
    default: str
    """The default value as a Python expression."""

    @property
    def python_type(self) -> str:
        """The annotation of the attribute."""
        item = PYTHON_TYPES.get(self.type, self.type)
        whole = f"list[{item}]" if self.is_array else item
        optional = self.default == "None" or self.nullable.first <= self.nullable.last
        return f"{whole} | None" if optional else whole


@dataclass(frozen=True)
class Struct:
    """A named sequence of fields."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """One schema file: a request or a response."""

    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    structs: Mapping[str, Struct]
    """The structs by name, inner structs first; the last one is the message itself."""

    @property
    def root(self) -> Struct:
        """The struct of the message itself."""
        return self.structs[self.name]

    @property
    def api_name(self) -> str:
        """The API's name: `Produce` for both `ProduceRequest` and `ProduceResponse`."""
        return self.name.removesuffix("Request").removesuffix("Response")

    @property
    def module(self) -> str:
        """The name of the module's file without its suffix."""
        return snake_case(self.name)


def load(text: str) -> dict[str, Any]:
    """Parse the JSON of one schema, after removing its comment lines."""
    raw = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert isinstance(raw, dict), "a schema must be an object"
    return raw


def parse(raw: Mapping[str, Any]) -> Message:
    """Return the message of one schema. Raises `SchemaError` for unsupported features."""
    common = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", ())}
    structs: dict[str, Struct] = {}
    _add(structs, common, raw["name"], raw["fields"])
    return Message(
        name=raw["name"],
        api_key=raw["apiKey"],
        versions=Versions.parse(raw["validVersions"]),
        flexible=Versions.parse(raw["flexibleVersions"]),
        structs=structs,
    )


def _add(
    structs: dict[str, Struct],
    common: Mapping[str, list[dict[str, Any]]],
    name: str,
    fields: list[dict[str, Any]],
) -> None:
    """Add a struct after the structs that its fields define or name."""
    for field in fields:
        inner = field["type"].removeprefix("[]")
        if "fields" in field:
            _add(structs, common, inner, field["fields"])
        elif inner in common and inner not in structs:
            _add(structs, common, inner, common[inner])
    if name in structs:
        raise SchemaError(f"two structs have the name {name}")
    structs[name] = Struct(name, tuple(_fields(fields)))


def _fields(raws: list[dict[str, Any]]) -> Iterator[Field]:
    for raw in raws:
        name, kind = raw["name"], raw["type"]
        tagged = Versions.parse(raw.get("taggedVersions"))
        versions = Versions.parse(raw.get("versions", raw.get("taggedVersions")))
        nullable = Versions.parse(raw.get("nullableVersions"))
        is_array = kind.startswith("[]")
        item = kind.removeprefix("[]")
        if "flexibleVersions" in raw:
            raise SchemaError(f"{name} overrides its flexible versions, which is not supported")
        if item not in PYTHON_TYPES and not item[0].isupper():
            raise SchemaError(f"{name} has the unknown type {kind}")
        if item[0].isupper() and not is_array and "nullableVersions" in raw:
            raise SchemaError(f"{name} is a nullable struct, which is not supported")
        if item == "records" and (is_array or nullable != versions or "tag" in raw):
            raise SchemaError(
                f"{name}: records must be nullable in all versions, and neither an array nor tagged"
            )
        yield Field(
            name=snake_case(name),
            type=item,
            is_array=is_array,
            versions=versions,
            nullable=nullable,
            tagged=tagged,
            tag=raw.get("tag", -1),
            ignorable=raw.get("ignorable", False),
            default=_default(item, is_array, raw.get("default")),
        )


def _default(item: str, is_array: bool, written: Any) -> str:
    """Return the default as a Python expression."""
    if written == "null":
        return "None"
    if is_array:
        return "[]"
    match item:
        case "bool":
            return "True" if written in ("true", True) else "False"
        case "string":
            return repr(written or "").replace("'", '"')
        case "bytes":
            return 'b""'
        case "records":
            return "None"
        case "uuid":
            return "NO_UUID"
        case "float64":
            return repr(float(written or 0))
        case _ if item in PYTHON_TYPES:
            return str(int(str(written), 0)) if written not in (None, "") else "0"
        case _:
            return f"{item}()"
