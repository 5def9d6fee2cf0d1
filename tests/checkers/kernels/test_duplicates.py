from typing import Any

import pytest

from checkers.kernels.duplicates import duplicates


@pytest.mark.parametrize(
    ("text", "doubled"),
    [
        ("s:x=a@0 p:x=a@0 p2:x=a@0", []),  # read twice at one place
        ("s:x=a@0 p:x=a@0,x=a@1", ["1 at (0, 1)"]),
        ("s:x=a@1 p:x=a@3", ["1 at (1, 3)"]),  # acknowledged at one place, read at another
        ("s:x=a p:x=a@3", []),  # acknowledged without a place
        ("s?:x=a@1 p:x=a@3", ["1 at (1, 3)"]),  # a read proves the operation and so its place
        ("s?:x=a@1 p:x=b@3", []),
        ("s!:x=a@1 p:x=a@3", []),  # a failed send shows no place
        ("s:x=a@0 p!:x=a@0,x=a@1", ["1 at (0, 1)"]),  # polls of any outcome deliver
        ("s:x=a@0 s:y=a@1 p:x=a@0,y=a@1", []),  # values are unique per partition
    ],
)
def test_duplicates(histories: Any, text: str, doubled: list[str]) -> None:
    """A value is a duplicate if it is known at two offsets."""
    found = duplicates(histories.log(text))
    assert [f"{f.value} at {f.also}" for f in found] == doubled


@pytest.mark.parametrize(
    ("text", "variants"),
    [
        ("s:x=a@0 d:x@1/1 p:x=a@3", ["deleted"]),
        ("s:x=a@0 d8?:x@1 p:x=a@3", ["deleted"]),
        ("s:x=a@0 d!:x@1 p:x=a@3", [""]),
        ("s:x=a@1 d:x@1/1 p:x=a@3", [""]),
        ("s:x=a@0 p:x=a@3 d:x@1/1", [""]),  # both were there at one time
        ("s:x=a@0 p:x=a@3 d:x@1/1 p2:x=a@5", [""]),
    ],
)
def test_a_double_of_what_was_deleted(histories: Any, text: str, variants: list[str]) -> None:
    """A duplicate of a deleted record is a variant: brokers need not remember a deleted record's
    producer."""
    assert [f.variant for f in duplicates(histories.log(text))] == variants


def test_all_of_many_doubles_are_told(histories: Any) -> None:
    """Ten values at the same two offsets are ten duplicates, each with both offsets."""
    values = [chr(97 + n) for n in range(10)]
    sends = " ".join(f"s:x={v}" for v in values)
    reads = " ".join(f"p{n + 10}:x={v}@1,x={v}@2" for n, v in enumerate(values))
    found = duplicates(histories.log(f"{sends} {reads}"))
    assert [(f.value, f.also) for f in found] == [(n, (1, 2)) for n in range(1, 11)]


def test_a_double_names_its_witnesses(histories: Any) -> None:
    """A duplicate names the send, and a poll for each offset."""
    (found,) = duplicates(histories.log("s4:x=a@0 p:x=a@0 p3:x=a@7"))
    assert found.ops == (1, 3, 5)
    assert found.why == (
        "value 1 was sent once, but is in the log 2 times: offset 0 (read by process 9 at"
        " 3.000 s), offset 7 (read by process 3 at 5.000 s)"
    )
