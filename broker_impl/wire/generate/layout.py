"""Which versions of a struct are written alike: the layouts between which a version chooses."""

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
"""The types of fixed size: their letter in a `struct` format, their bytes."""


@dataclass(frozen=True)
class Placed:
    """A field as one layout writes it."""

    field: Field
    nullable: bool
    item: "Layout | None"
    """The layout of the struct that it is, or of which it is an array."""

    @property
    def is_fixed(self) -> bool:
        """Whether it always takes the same number of bytes."""
        return not self.field.is_array and self.field.type in FIXED


@dataclass(frozen=True)
class Layout:
    """How a struct is written in some versions."""

    struct: Struct
    flexible: bool
    placed: tuple[Placed, ...]
    """In order, without the tagged ones."""
    tagged: tuple[Placed, ...]
    """In the order of their numbers."""
    absent: tuple[Field, ...]

    @property
    def bytes_min(self) -> int:
        """The least that one such struct occupies."""
        return sum(_bytes_min(place, self.flexible) for place in self.placed) + self.flexible


def item_bytes_min(place: Placed, flexible: bool) -> int:
    """The least that one item of an array occupies."""
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
    """How a version of the message writes the struct."""
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
    """All layouts of a message, each known by its struct and the first version that has it."""

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
        """Each after those that it holds, struct by struct, oldest first."""
        order = {name: index for index, name in enumerate(self.message.structs)}
        return iter(sorted(self._first, key=lambda one: (order[one.struct.name], self.first(one))))

    def first(self, one: Layout) -> int:
        """The first version with this layout."""
        return self._first[one]


def _with_inner(one: Layout) -> Iterator[Layout]:
    for place in (*one.placed, *one.tagged):
        if place.item:
            yield from _with_inner(place.item)
    yield one
