"""What must survive in compacted logs, whichever batches they have."""

from typing import Any

import msgspec
import pytest

from checkers.invariants.survivors import missing, replaced
from model.snapshot import ClusterState, KeyedRecord, ReplicaState
from tests.checkers.invariants.streams import (
    KEY,
    cluster,
    leader,
    log,
    replica,
    state,
    violated,
)

NAME = "compacted-to-latest"
LOG = log(0, 0, 0, 0, 0, 0)
A, B = KeyedRecord(0, b"a", 1), KeyedRecord(1, b"b", 2)
LATER_A = KeyedRecord(2, b"a", 3)
ALL = [A, B, LATER_A]
S = 1_000_000_000


def held(records: list[KeyedRecord] | None, *, hw: int = 6, leads: bool = True) -> ReplicaState:
    """A replica of six batches with these records."""
    found = leader(LOG, hw=hw) if leads else replica(LOG, hw)
    return msgspec.structs.replace(found, records=records)


def at(
    second: float, first: ReplicaState, second_replica: ReplicaState, **more: Any
) -> ClusterState:
    """Broker 1 leads, and broker 2 follows."""
    held_by = {1: first, 2: second_replica}
    fields: dict[str, Any] = {"time_ns": int(second * S), "compacted": {KEY: None}, **more}
    return cluster(state(), held_by, **fields)


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        ([B, LATER_A], []),
        (ALL, []),
        ([A, B], [NAME]),  # the last record of a is gone
        ([LATER_A], [NAME]),
        ([B, LATER_A._replace(value_crc=4)], [NAME]),
        ([B, LATER_A._replace(timestamp_ms=4)], [NAME]),
        ([B, LATER_A._replace(headers=(("h", b""),))], [NAME]),
        ([B, KeyedRecord(5, b"a", 9)], []),  # a later one that is not committed yet
        ([B, LATER_A._replace(key=b"", commits=True)], [NAME]),
    ],
)
def test_a_follower_keeps_the_last_record_of_each_key(
    kept: list[KeyedRecord], names: list[str]
) -> None:
    """As its leader has committed them."""
    before = at(1, held(ALL), held(None, leads=False))
    assert violated(before, at(1.1, held(ALL), held(kept, leads=False))) == names


def test_a_leader_keeps_them_too() -> None:
    """A compaction begins another list; so does another leader."""
    before = at(1, held(list(ALL)), held(None, leads=False))
    assert violated(before, at(1.1, held([B, LATER_A]), held(None, leads=False))) == []
    assert violated(before, at(1.1, held([B]), held(None, leads=False))) == [NAME]


def test_only_what_is_committed_has_to_stay() -> None:
    """Records above the watermark of the replica do not, nor does anything if more is unknown."""
    records = [A, B]
    before = at(1, held(ALL, hw=2), held(None, hw=2, leads=False))
    lacks = held([A], hw=1, leads=False)
    assert violated(before, at(1.1, held(ALL, hw=2), lacks)) == []
    assert violated(before, at(1.1, held(ALL, hw=2), held([A], hw=2, leads=False))) == [NAME]
    ahead = held([A], hw=3, leads=False)
    assert violated(before, at(1.1, held(records, hw=2), ahead)) == []


def test_tombstones_may_be_removed() -> None:
    """With the records that they delete; those that stay are as they were."""
    tombstone = LATER_A._replace(value_crc=None)
    gone = [A, B, tombstone]
    before = at(1, held(gone), held(None, leads=False))
    assert violated(before, at(1.1, held(gone), held([B], leads=False))) == []
    other = [B, tombstone._replace(timestamp_ms=9)]
    assert violated(before, at(1.1, held(gone), held(other, leads=False))) == [NAME]


def test_records_of_transactions_count_when_they_are_committed() -> None:
    """An aborted or open one may be removed, and does not replace another record."""
    written = KeyedRecord(2, b"a", 3, producer=7)
    for end, kept, names in (
        (KeyedRecord(3, b"", None, 7, commits=True), [A, B], [NAME]),
        (KeyedRecord(3, b"", None, 7, commits=True), [B, written], []),
        (KeyedRecord(3, b"", None, 7, commits=False), [A, B], []),
        (KeyedRecord(3, b"", None, 7, commits=False), [B], [NAME]),
        (KeyedRecord(3, b"", None, 8, commits=True), [A, B], []),
    ):
        leads = held([A, B, written, end])
        before = at(1, leads, held(None, leads=False))
        assert violated(before, at(1.1, leads, held(kept, leads=False))) == names


def test_only_a_committed_record_replaces_another() -> None:
    """A later record of the key in the same log may be aborted, open or above the watermark."""
    aborted = KeyedRecord(3, b"a", 4, producer=7)
    end = KeyedRecord(4, b"", None, 7, commits=False)
    leads = held([*ALL, aborted, end])
    before = at(1, leads, held(None, leads=False))
    for kept, hw, names in (
        ([B, LATER_A, aborted, end], 6, []),
        ([B, aborted, end], 6, [NAME]),
        ([B, aborted], 6, [NAME]),
        ([B, aborted, end._replace(commits=True)], 6, []),  # it knows more than the leader
        ([B, KeyedRecord(5, b"a", 9)], 5, [NAME]),
        ([B, KeyedRecord(5, b"a", 9)], 2, []),  # nor is the record that it lacks committed here
    ):
        now = at(1.1, leads, held(kept, hw=hw, leads=False))
        assert violated(before, now) == names, kept


def test_compaction_leaves_one_record_of_a_key() -> None:
    """Below the offset up to which the log is compacted, wherever the second record is from."""

    def compacted(records: list[KeyedRecord], end: int, start: int = 0) -> ReplicaState:
        found = held(records, leads=False)
        return msgspec.structs.replace(found, compacted_to=end, log_start=start)

    marker = KeyedRecord(3, b"", None, 7, commits=True)
    for records, end, start, stale in (
        (ALL, 0, 0, None),
        (ALL, 2, 0, None),  # the second record has not been read by a pass
        (ALL, 3, 0, A),
        ([A, B, LATER_A._replace(value_crc=None)], 3, 0, A),
        ([A, B, LATER_A._replace(producer=7), marker], 4, 0, A),
        ([A, B, LATER_A._replace(producer=7), marker], 3, 0, A),
        ([A, B, LATER_A._replace(producer=7), marker._replace(commits=False)], 4, 0, None),
        ([A, B, LATER_A._replace(producer=7)], 3, 0, None),
        ([A._replace(producer=7), B, LATER_A, marker], 4, 0, A._replace(producer=7)),
        (ALL, 3, 1, None),  # A is before the start of the log
        ([B, LATER_A], 3, 0, None),
        ([B, marker, marker._replace(offset=4)], 5, 0, None),
    ):
        assert replaced(records, compacted(records, end, start)) == stale
    before = at(1, held(ALL), held(None, leads=False))
    assert violated(before, at(1.1, held(ALL), compacted(ALL, 3))) == [NAME]
    assert violated(before, at(1.1, held(ALL), compacted(ALL, 3), damages={2: 1})) == []


def test_a_log_is_counted_again_when_more_of_it_is_compacted() -> None:
    """A pass replaces segments first, and then says how far it has come."""
    records = list(ALL)
    first, *later = (
        msgspec.structs.replace(held(records), compacted_to=end) for end in (2, 2, 3, 3)
    )
    states = [at(1 + n / 10, each, held(None, leads=False)) for n, each in enumerate(later)]
    assert violated(at(0.9, first, held(None, leads=False)), states[0]) == []
    assert violated(at(0.9, first, held(None, leads=False)), *states) == [NAME]


def test_nothing_is_compared_after_a_time_without_a_leader() -> None:
    """What it has committed meanwhile may have been compacted."""
    tombstone = LATER_A._replace(offset=4, value_crc=None)
    before = at(1, held(ALL, hw=3), held(None, hw=3, leads=False))
    for second, names in ((1.5, [NAME]), (2.5, [])):
        assert violated(before, at(second, held([B], hw=5), held(None, hw=3, leads=False))) == names
    known = at(1.1, held([*ALL, tombstone], hw=5), held(None, hw=3, leads=False))
    assert violated(before, known, at(1.2, held([B], hw=5), held(None, leads=False))) == []


def test_a_leader_with_a_lower_watermark_is_seen() -> None:
    """The watermark of a new leader goes up once its followers have fetched."""
    later = held([B, LATER_A], hw=5)
    behind = [at(1 + step, held(list(ALL), hw=2), held(None, leads=False)) for step in range(4)]
    lacks = held([B], hw=3, leads=False)
    before = at(0.9, held(ALL, hw=3), held(None, leads=False))
    found = violated(before, *behind, at(4.5, later, lacks))
    assert found == ["leader-hw-monotone", NAME]  # as it is the leader of the same epoch here


def test_a_log_is_compared_when_enough_is_known() -> None:
    """A follower shows its records once, perhaps before its leader is seen."""
    early = at(0.5, held(None, hw=6), held([A, B], leads=False))
    assert violated(early) == []
    assert violated(early, at(0.6, held(ALL), held(None, leads=False))) == [NAME]


def test_a_disk_that_has_lost_something_is_not_compared() -> None:
    """Compacted segments may be among that."""
    before = at(1, held(ALL), held(None, leads=False))
    after = at(1.1, held(ALL), held([B], leads=False), damages={2: 1})
    assert violated(before, after) == []


def test_records_before_the_start_of_a_log_may_be_missing() -> None:
    """Retention or a deletion has removed them."""
    start = replica(LOG, 6, log_start=3)
    assert missing({b"a": LATER_A}, [B], start) is None
    assert missing({b"a": LATER_A}, [B], msgspec.structs.replace(start, log_start=2)) is LATER_A
