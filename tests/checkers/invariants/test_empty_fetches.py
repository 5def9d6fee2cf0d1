import pytest

from checkers.invariants.empty_fetches import Batch, Reader, unread

READABLE, BATCH = range(2, 9), Batch(7, 60)


def why(
    offset: int,
    *,
    then: range = READABLE,
    now: range = READABLE,
    batch: Batch | None = BATCH,
    room: int | None = None,
) -> str | None:
    """Return why a fetch should have returned the batch."""
    return unread(Reader(offset, then, now), batch, room)


def test_readable_records_are_returned() -> None:
    """If they were readable all the time, and whole."""
    assert "from offset 6" in (why(6) or "")
    assert why(6, then=range(2, 6)) is None
    assert why(6, now=range(2, 6)) is None
    assert why(6, batch=Batch(10, 60)) is None
    assert why(6, now=range(2, 7)) is not None


@pytest.mark.parametrize("offset", [1, 9, 20])
def test_a_reader_at_the_end_finds_nothing(offset: int) -> None:
    """Nor does one before the start of the log, or where compaction has left no batch."""
    assert why(offset) is None
    assert why(6, batch=None) is None


def test_limits_may_leave_no_room() -> None:
    """But a fetch that returns nothing at all must return a batch, however large it is."""
    assert why(6, room=59) is None
    assert why(6, room=60) is not None
