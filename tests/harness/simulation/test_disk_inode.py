"""Which bytes of a file may be left after a power loss, and which must be."""

import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulation.disk_inode import PAGE_BYTES, Inode

RNG = random.Random(1)


def outcomes(prepare: Callable[[Inode], object], tries: int = 300) -> set[bytes]:
    """Return the contents that are left after many power losses."""
    found = set()
    for _ in range(tries):
        inode = Inode()
        prepare(inode)
        inode.lose_power(RNG)
        found.add(bytes(inode.data))
    return found


def synced(inode: Inode, data: bytes) -> Inode:
    inode.append(data)
    inode.sync()
    return inode


def test_synced_bytes_stay() -> None:
    """Bytes that the last sync covered stay, whatever is written afterwards."""
    found = outcomes(lambda inode: synced(inode, b"abc").append(b"defgh"))
    assert all(data.startswith(b"abc") for data in found)
    assert {b"abc", b"abcdefgh"} <= found


def test_what_is_sure_to_stay_is_what_was_synced() -> None:
    """Appended bytes may stay, and truncated ones are gone."""
    inode = synced(Inode(), b"abcd")
    inode.append(b"ef")
    assert (inode.durable, bytes(inode.data)) == (b"abcd", b"abcdef")
    inode.truncate(3)
    assert inode.durable == b"abc"


def test_an_append_is_torn_at_any_byte() -> None:
    """After a power loss any number of an append's bytes may be left."""
    found = outcomes(lambda inode: synced(inode, b"ab").append(b"cdef"))
    assert {len(data) for data in found} == {2, 3, 4, 5, 6}


def test_pages_reach_the_disk_in_any_order() -> None:
    """A later page may be written where an earlier one reads as zeros."""
    found = outcomes(lambda inode: inode.append(b"a" * PAGE_BYTES + b"b" * PAGE_BYTES))
    assert bytes(PAGE_BYTES) + b"b" * PAGE_BYTES in found


def test_a_page_that_was_not_written_again_keeps_its_synced_bytes() -> None:
    """A page that did not reach the disk again keeps its synced bytes, with zeros after them."""
    found = outcomes(lambda inode: synced(inode, b"ab").append(b"c" * (2 * PAGE_BYTES)))
    assert all(data.startswith(b"ab") for data in found)
    assert any(data[2:100] == bytes(98) and data.endswith(b"c") for data in found)


def test_a_cut_that_was_not_synced_may_be_undone() -> None:
    """The bytes that a truncation removed may come back after a power loss if it was not synced.

    If a later append to their page survives, the page holds the appended bytes and zeros after
    them, never the removed bytes.
    """

    def cut_and_append(inode: Inode) -> None:
        synced(inode, b"abcdef").truncate(2)
        inode.append(b"xy")

    found = outcomes(cut_and_append)
    assert {b"abcdef", b"ab", b"abxy", b"abxy\0\0"} <= found
    assert all(data.startswith(b"ab") and data != b"abxycf" for data in found)


def test_a_synced_cut_is_for_good() -> None:
    """Bytes that a synced truncation removed never come back."""

    def cut(inode: Inode) -> None:
        synced(inode, b"abcdef").truncate(2)
        inode.sync()

    assert outcomes(cut) == {b"ab"}


def test_a_failed_sync_gives_pages_up() -> None:
    """After a failed sync, a later one that succeeds does not save the dropped pages.

    They are saved only if they are written again.
    """

    def fail(inode: Inode) -> None:
        synced(inode, b"ab").append(b"cd")
        inode.fail_sync(RNG)
        inode.sync()

    assert outcomes(fail) == {b"abcd", b"ab\0\0"}

    def fail_and_write_again(inode: Inode) -> None:
        inode.append(b"cd")
        inode.fail_sync(RNG)
        inode.append(b"e")
        inode.sync()

    assert outcomes(fail_and_write_again) == {b"cde"}


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3 * PAGE_BYTES)),
        st.tuples(st.just("truncate"), st.integers(0, 3 * PAGE_BYTES)),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=8,
)


@settings(max_examples=150)
@given(OPERATIONS, st.integers(0, 2**32))
def test_what_is_left_can_be_explained(operations: list[tuple[str, int]], seed: int) -> None:
    """The bytes that are left after a power loss all come from a state since the last sync.

    Below the least length since then nothing changes. Above it, each byte is zero or what it was in
    some state. The length is one that the file had, or that of a torn write.
    """
    inode = Inode()
    states = [b""]  # since the last sync
    for number, (operation, size) in enumerate(operations, 1):
        if operation == "append":
            inode.append(bytes([number]) * size)
        elif operation == "truncate":
            inode.truncate(min(size, len(inode.data)))
        else:
            inode.sync()
            states.clear()
        states.append(bytes(inode.data))
    least = min(map(len, states))
    inode.lose_power(random.Random(seed))
    left = bytes(inode.data)
    assert left[:least] == states[-1][:least]
    assert least <= len(left) <= max(map(len, states))
    for at in range(least, len(left)):
        assert left[at] in {0, *(state[at] for state in states if at < len(state))}
    inode.lose_power(random.Random(seed + 1))
    assert bytes(inode.data) == left, "what survived once is synced"


def test_reserved_zeros_survive_or_do_not() -> None:
    """After a loss of power, synced data is there, with the reserved zeros behind it or without."""
    found = set()
    for seed in range(20):
        inode = Inode()
        inode.append(b"ab")
        inode.reserve(3, lambda: True)
        inode.sync()
        inode.lose_power(random.Random(seed))
        found.add(bytes(inode.data))
        assert inode.reserved == 0
    assert found == {b"ab", b"ab\0\0\0"}
