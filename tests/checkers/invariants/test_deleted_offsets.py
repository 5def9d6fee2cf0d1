"""Which offsets count as deleted, and which coordinators must know of the deletion."""

import pytest

from checkers.invariants.deleted_offsets import CommittedOffsets, Deletion, LastRecord, returned

KEY = ("g", "x-0")
DELETION = Deletion("group", 100, LastRecord(41, 5))


def committed(*offsets: int) -> CommittedOffsets:
    """Return the state after these acknowledged commits."""
    known = CommittedOffsets()
    for offset in offsets:
        known.sent(KEY, offset)
        known.accepted(KEY, offset)
    return known


def test_all_acknowledged_offsets_are_deleted() -> None:
    """Those of the group, or of the partition; those of others stay."""
    for_group, for_partition = committed(7, 8), committed(7)
    for_group.delete(for_group.of_groups(["g"]), DELETION)
    for_partition.delete(for_partition.of_partitions(["x-0"]), DELETION)
    assert [for_group.deletion(KEY, offset) for offset in (7, 8, 9)] == [DELETION, DELETION, None]
    assert for_partition.deletion(KEY, 7) == DELETION
    others = committed(7)
    others.delete(others.of_groups(["h"]), DELETION)
    others.delete(others.of_partitions(["x-1"]), DELETION)
    assert others.deletion(KEY, 7) is None


def test_a_commit_without_an_answer_may_come_later() -> None:
    """Another commit of the same offset was acknowledged, and that makes no difference."""
    known = committed(7)
    known.sent(KEY, 7)
    known.delete(known.of_groups(["g"]), DELETION)
    assert known.deletion(KEY, 7) is None
    known.sent(KEY, 7)
    known.accepted(KEY, 7)
    known.delete(known.of_groups(["g"]), DELETION)
    assert known.deletion(KEY, 7) is None, "one of the three is open still"


def test_an_offset_may_be_committed_again() -> None:
    """After the deletion, or between its request and its answer."""
    known = committed(7)
    known.delete(known.of_groups(["g"]), DELETION)
    known.sent(KEY, 7)
    assert known.deletion(KEY, 7) is None
    known.accepted(KEY, 7)
    standing = known.of_groups(["g"])
    known.sent(KEY, 7)
    known.accepted(KEY, 7)
    known.delete(standing, DELETION)
    assert known.deletion(KEY, 7) is None


def test_a_coordinator_that_knows_of_the_deletion_does_not_return_the_offset() -> None:
    """Its log has the last record of the deleting coordinator's log."""
    assert returned(DELETION, 7, 101, 5) is not None


@pytest.mark.parametrize(
    ("deletion", "asked_ns", "epoch"),
    [
        (None, 101, 5),
        (DELETION, 100, 5),
        (DELETION, 101, 6),
        (DELETION, 101, None),
    ],
)
def test_others_may_return_it(deletion: Deletion | None, asked_ns: int, epoch: int | None) -> None:
    """It is not deleted, was asked for before, or the coordinator's log lacks the record."""
    assert returned(deletion, 7, asked_ns, epoch) is None
