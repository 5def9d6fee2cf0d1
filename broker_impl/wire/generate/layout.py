"""Layouts: the formats of a struct, each shared by the versions that write it alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker_impl.wire.generate.schema import Field, Message, Struct

FIXED: Final = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
}
"""The types of fixed size: their letter in a `struct` format and their size in bytes."""


@dataclass(frozen=True)
class Placed:
    """A field in one layout."""

    field: Field
    nullable: bool
    item: "Layout | None"
    """The layout of the field's struct, or of its items if it is an array of structs."""

    @property
    def is_fixed(self) -> bool:
        """Whether the field always has the same size."""
        return not self.field.is_array and self.field.type in FIXED


@dataclass(frozen=True)
class Layout:
    """The format of a struct in some versions."""

    struct: Struct
    flexible: bool
    placed: tuple[Placed, ...]
    """The untagged fields, in order."""
    tagged: tuple[Placed, ...]
    """The tagged fields, in the order of their numbers."""
    absent: tuple[Field, ...]

    @property
    def bytes_min(self) -> int:
        """The smallest size of such a struct in bytes."""
        return sum(_bytes_min(place, self.flexible) for place in self.placed) + self.flexible


def item_bytes_min(place: Placed, flexible: bool) -> int:
    """The smallest size of an array item in bytes."""
    if place.item:
        return place.item.bytes_min
    if place.field.type in FIXED:
        return FIXED[place.field.type][1]
    return _length_bytes(place.field.type, flexible)


def _bytes_min(place: Placed, flexible: bool) -> int:
    if place.field.is_array:
        return 1 if flexible else 4
    return item_bytes_min(place, flexible)


def _length_bytes(kind: str, flexible: bool) -> int:
    if kind == "uuid":
        return 16
    if flexible:
        return 1
    return 2 if kind == "string" else 4


def layout(message: Message, struct: Struct, version: int) -> Layout:
    """Return the format of the struct in a version of the message."""
    placed: list[Placed] = []
    tagged: list[Placed] = []
    absent: list[Field] = []
    for field in struct.fields:
        if version not in field.versions:
            absent.append(field)
            continue
        inner = message.structs.get(field.type)
        place = Placed(
            field=field,
            nullable=version in field.nullable,
            item=layout(message, inner, version) if inner else None,
        )
        (tagged if version in field.tagged else placed).append(place)
    return Layout(
        struct=struct,
        flexible=version in message.flexible,
        placed=tuple(placed),
        tagged=tuple(sorted(tagged, key=lambda place: place.field.tag)),
        absent=tuple(absent),
    )


class Layouts:
    """All layouts of a message, each identified by its struct and its first version."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.by_version = [
            layout(message, message.root, version)
            for version in range(message.versions.first, message.versions.last + 1)
        ]
        self._first: dict[Layout, int] = {}
        for version, root in enumerate(self.by_version, message.versions.first):
            for one in _with_inner(root):
                self._first.setdefault(one, version)

    def __iter__(self) -> Iterator[Layout]:
        """Iterate over the layouts, inner structs first, then by first version."""
        order = {name: index for index, name in enumerate(self.message.structs)}
        return iter(sorted(self._first, key=lambda one: (order[one.struct.name], self.first(one))))

    def first(self, one: Layout) -> int:
        """Return the first version with this layout."""
        return self._first[one]


def _with_inner(one: Layout) -> Iterator[Layout]:
    for place in (*one.placed, *one.tagged):
        if place.item:
            yield from _with_inner(place.item)
    yield one
