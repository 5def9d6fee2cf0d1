"""A queue of bytes: taken up to a limit, or in whole parts."""

import pytest

from harness.simulation.byte_queue import ByteQueue


def queue_of(*parts: bytes) -> ByteQueue:
    queue = ByteQueue()
    for part in parts:
        queue.append(part)
    return queue


@pytest.mark.parametrize(
    ("limit", "taken"),
    [(0, b""), (1, b"a"), (2, b"ab"), (3, b"abc"), (5, b"abcde"), (9, b"abcdef")],
)
def test_take_cuts_the_last_part(limit: int, taken: bytes) -> None:
    """``take`` returns exactly as many bytes as allowed, and leaves the others in order."""
    queue = queue_of(b"ab", b"cd", b"ef")
    assert queue.take(limit) == taken
    assert queue.count == 6 - len(taken)
    assert queue.take(9) == b"abcdef"[len(taken) :]


@pytest.mark.parametrize(
    ("limit", "taken"),
    [(1, b"a"), (2, b"ab"), (3, b"ab"), (4, b"abcd"), (5, b"abcd"), (6, b"abcdef")],
)
def test_take_parts_cuts_only_the_first_part(limit: int, taken: bytes) -> None:
    """``take_parts`` joins whole parts, and cuts only a first part that is too long."""
    queue = queue_of(b"ab", b"cd", b"ef")
    assert queue.first_bytes == 2
    assert queue.take_parts(limit) == taken
    assert queue.count == 6 - len(taken)
    assert queue.take(9) == b"abcdef"[len(taken) :]


def test_clear() -> None:
    """A cleared queue has no bytes."""
    queue = queue_of(b"ab")
    queue.clear()
    assert (queue.count, queue.take(9)) == (0, b"")
