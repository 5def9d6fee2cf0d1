from typing import Any

import pytest

from checkers.invariants.reloaded import (
    LOOKS,
    Removals,
    StoredGroup,
    StoredMember,
    StoredOffset,
    StoredTransaction,
    ended,
    of_group,
    of_transaction,
    waits,
)
from checkers.invariants.stored_members import Details

NONE = Removals({})
OFFSET = StoredOffset(5, 2, "m", 100, -1, 7)
DETAILS = Details(6000, 9000, b"s", b"a")
DYNAMIC = StoredMember(None, DETAILS)
STATIC = StoredMember("i", DETAILS)
GROUP = StoredGroup("Stable", 3, ("consumer", "range"), "d", {"d": DYNAMIC}, {"t-0": OFFSET})
TRANSACTION = StoredTransaction(1, 4, 900, "ONGOING", frozenset({"t-0"}), 10, 20)


def group(**fields: Any) -> StoredGroup:
    """Return the group with other fields."""
    return GROUP._replace(**fields)


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        (GROUP, None),
        (None, "the offset of t-0"),
        (group(offsets={}), "stored is None"),
        (group(offsets={"t-0": OFFSET._replace(leader_epoch=-1)}), "the offset of t-0"),
        (group(offsets={"t-0": OFFSET._replace(offset=4, at=6)}), "the offset of t-0"),
        (group(offsets={"t-0": OFFSET._replace(offset=9, at=8)}), None),
        (group(generation=2), "the generation is 3, and stored is 2"),
        (group(generation=4, members={}), None),
        (group(protocol=("consumer", "other")), "the protocol is"),
        (group(leader="e"), "the leader is d, and stored is e"),
        (
            group(members={"d": StoredMember(None, DETAILS._replace(session_ms=9000))}),
            "member d is",
        ),
        (group(members={"e": DYNAMIC}), "member d is"),
        (group(members={"d": DYNAMIC, "e": DYNAMIC}), "member e is None"),
        (group(members={"s": STATIC}), None),
    ],
)
def test_a_stable_group_is_as_stored(loaded: StoredGroup | None, why: str | None) -> None:
    """What was written later, and has failed, is not compared, nor replaced static members."""
    found = of_group(GROUP, loaded, NONE)
    assert (found is None) == (why is None)
    assert why is None or (found is not None and why in found)


def test_at_the_end_no_transaction_is_open_that_has_ended() -> None:
    """Before, its marker may be on its way."""
    held = group(pending=frozenset({7, 8}))
    assert ended(held, group(pending=frozenset({8, 9}))) == {7}
    assert ended(held, None) == {7, 8}
    assert ended(held, held) == frozenset()
    seven = frozenset({7})
    assert "producers [7]" in (waits([seven | {8}, *[seven] * LOOKS]) or "")
    assert waits([seven] * (LOOKS - 1)) is None
    assert waits([seven, *[frozenset({n}) for n in range(LOOKS)]]) is None


@pytest.mark.parametrize("state", ["Empty", "PreparingRebalance", "CompletingRebalance"])
def test_the_members_of_other_groups_are_not_compared(state: str) -> None:
    """Their offsets are."""
    held = group(state=state, generation=9, members={})
    assert of_group(held, GROUP, NONE) is None
    assert of_group(held, group(offsets={}), NONE) is not None
    assert of_group(held._replace(offsets={}), None, NONE) is None


@pytest.mark.parametrize(
    ("removals", "is_same"),
    [
        (Removals({"t-0": 8}), True),
        (Removals({"t-0": 6}), False),
        (Removals({"t-1": 8}), False),
        (Removals({}, clean_to=8), True),
        (Removals({}, clean_to=7), False),
    ],
)
def test_an_offset_is_stored_unless_its_removal_is(removals: Removals, is_same: bool) -> None:
    """A deletion that has failed may be stored; compaction removes its tombstone in the end."""
    held = group(state="Empty")
    assert (of_group(held, group(offsets={}), removals) is None) == is_same
    assert (of_group(held, None, removals) is None) == is_same


@pytest.mark.parametrize(
    ("loaded", "is_same"),
    [
        (TRANSACTION, True),
        (None, False),
        (TRANSACTION._replace(producer_epoch=3), True),
        (TRANSACTION._replace(producer_epoch=2), False),
        (TRANSACTION._replace(producer_epoch=5), False),
        (TRANSACTION._replace(timeout_ms=901), False),
        (TRANSACTION._replace(partitions=frozenset()), False),
        (TRANSACTION._replace(state="EMPTY", updated_ms=21), True),
        (TRANSACTION._replace(state="EMPTY", updated_ms=19), False),
    ],
)
def test_a_transaction_is_as_stored(loaded: StoredTransaction | None, is_same: bool) -> None:
    """Only the epoch of a producer that is being fenced is ahead of the stored one."""
    assert (of_transaction(TRANSACTION, loaded) is None) == is_same
