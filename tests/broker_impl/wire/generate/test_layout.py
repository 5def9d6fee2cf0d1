"""Which versions of a message share a layout."""

from typing import Any

from broker_impl.wire.generate.layout import Layouts, item_bytes_min
from broker_impl.wire.generate.schema import parse


def layouts(*fields: dict[str, Any]) -> Layouts:
    return Layouts(
        parse(
            {
                "apiKey": 7,
                "name": "TestRequest",
                "validVersions": "0-3",
                "flexibleVersions": "2+",
                "fields": list(fields),
            }
        )
    )


INNER = {
    "name": "Items",
    "type": "[]Item",
    "versions": "0+",
    "fields": [
        {"name": "Id", "type": "int32", "versions": "0+"},
        {"name": "Note", "type": "string", "versions": "3+"},
    ],
}


def test_versions_that_differ_have_layouts_of_their_own() -> None:
    """A new field, a changed nullability or flexible encoding makes a new layout, nothing else."""
    found = layouts(
        {"name": "A", "type": "int32", "versions": "0+"},
        {"name": "B", "type": "string", "versions": "1+", "nullableVersions": "3+"},
    )
    assert [found.first(one) for one in found.by_version] == [0, 1, 2, 3]
    found = layouts({"name": "A", "type": "int32", "versions": "0+"})
    assert [found.first(one) for one in found.by_version] == [0, 0, 2, 2]


def test_inner_layouts_are_shared() -> None:
    """Versions that differ only outside a struct share its function; inner structs come first."""
    found = layouts(INNER, {"name": "B", "type": "int8", "versions": "1+"})
    names = [f"{one.struct.name}_v{found.first(one)}" for one in found]
    assert names == [
        "Item_v0",
        "Item_v2",
        "Item_v3",
        "TestRequest_v0",
        "TestRequest_v1",
        "TestRequest_v2",
        "TestRequest_v3",
    ]


def test_fields_by_place() -> None:
    """Tagged fields are listed separately, in the order of their tags; absent fields are known."""
    found = layouts(
        {"name": "Late", "type": "int8", "versions": "2+", "taggedVersions": "2+", "tag": 1},
        {"name": "Early", "type": "int8", "versions": "1+", "taggedVersions": "2+", "tag": 0},
    )
    v0, v1, v2 = found.by_version[:3]
    assert [field.name for field in v0.absent] == ["late", "early"]
    assert [place.field.name for place in v1.placed] == ["early"]
    assert [place.field.name for place in v2.tagged] == ["early", "late"]
    assert v2.placed == ()


def test_the_least_that_an_item_occupies() -> None:
    """An item's minimum size counts fixed sizes, length prefixes, and an empty tag section."""
    found = layouts(
        INNER,
        {"name": "Texts", "type": "[]string", "versions": "0+"},
        {"name": "Ids", "type": "[]uuid", "versions": "0+"},
        {"name": "Blobs", "type": "[]bytes", "versions": "0+"},
        {"name": "Longs", "type": "[]int64", "versions": "0+"},
    )
    least = [
        [item_bytes_min(place, one.flexible) for place in one.placed] for one in found.by_version
    ]
    assert least == [
        [4, 2, 16, 4, 8],
        [4, 2, 16, 4, 8],
        [4 + 1, 1, 16, 1, 8],
        [4 + 1 + 1, 1, 16, 1, 8],
    ]
