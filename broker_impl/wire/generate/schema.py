"""Kafka's message schemas as values: what a file says, checked, with our spelling of names.

The format is described in Kafka's `clients/src/main/resources/common/message/README.md`. What no
schema of ours uses (varint fields, nullable structs, flexible versions per field) is refused.
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
    """A schema says something that this generator does not know."""


def snake_case(name: str) -> str:
    """`LeaderAndIsrRequest` → `leader_and_isr_request`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends included; `first > last` is none at all."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Reads `3`, `3-5`, `3+`, `none`; nothing is `none`."""
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
    """In our spelling."""
    type: str
    """The schema's name of the type; of the items, if this is an array."""
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    """Its number where it is tagged."""
    ignorable: bool
    """Whether a version without this field may drop a value that is not the default."""
    default: str
    """A Python expression."""

    @property
    def python_type(self) -> str:
        """The annotation of the attribute."""
        item = PYTHON_TYPES.get(self.type, self.type)
        whole = f"list[{item}]" if self.is_array else item
        optional = self.default == "None" or self.nullable.first <= self.nullable.last
        return f"{whole} | None" if optional else whole


@dataclass(frozen=True)
class Struct:
    """A sequence of fields with a name."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """One file: a request or a response."""

    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    structs: Mapping[str, Struct]
    """By name, each after those it holds; the last one is the message itself."""

    @property
    def root(self) -> Struct:
        """The struct that is the message."""
        return self.structs[self.name]

    @property
    def api_name(self) -> str:
        """`Produce` for both of `ProduceRequest` and `ProduceResponse`."""
        return self.name.removesuffix("Request").removesuffix("Response")

    @property
    def module(self) -> str:
        """The name of the file without its ending."""
        return snake_case(self.name)


def load(text: str) -> dict[str, Any]:
    """The JSON of one schema, which has comments on lines of their own."""
    raw = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert isinstance(raw, dict), "a schema is an object"
    return raw


def parse(raw: Mapping[str, Any]) -> Message:
    """The message of one schema. Raises `SchemaError` for what we do not know."""
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
    """Adds a struct behind those that its fields define or name."""
    for field in fields:
        inner = field["type"].removeprefix("[]")
        if "fields" in field:
            _add(structs, common, inner, field["fields"])
        elif inner in common and inner not in structs:
            _add(structs, common, inner, common[inner])
    if name in structs:
        raise SchemaError(f"two structs are called {name}")
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
            raise SchemaError(f"{name} has flexible versions of its own")
        if item not in PYTHON_TYPES and not item[0].isupper():
            raise SchemaError(f"{name} is of unknown type {kind}")
        if item[0].isupper() and not is_array and "nullableVersions" in raw:
            raise SchemaError(f"{name} is a nullable struct")
        if item == "records" and (is_array or nullable != versions or "tag" in raw):
            raise SchemaError(f"{name}: records stand alone, and are nullable wherever they are")
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
    """The default as a Python expression."""
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
