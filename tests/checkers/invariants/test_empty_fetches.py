import pytest

from checkers.invariants.empty_fetches import unread

READABLE = {"a": range(2, 5), "b": range(9)}


@pytest.mark.parametrize("offsets", [{}, {"a": 5}, {"a": 1}, {"a": 7, "b": 9}, {"c": 0}])
def test_a_reader_at_the_end_finds_nothing(offsets: dict[str, int]) -> None:
    """Nor does one before the start of the log, or of a partition that is not led here."""
    assert unread(offsets, READABLE, READABLE) is None


def test_readable_records_are_returned() -> None:
    """If they were readable all the time."""
    found = unread({"a": 5, "b": 8}, READABLE, READABLE)
    assert found is not None
    assert found[0] == "b"
    assert "from offset 8" in found[1]
    for then, now in ((READABLE, {"b": range(8)}), ({"b": range(8)}, READABLE), ({}, READABLE)):
        assert unread({"b": 8}, then, now) is None
