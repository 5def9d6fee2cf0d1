"""Answers about a log are compared with its batches, each wrong one next to a right one."""

from typing import Any

import pytest

from checkers.invariants import stored
from checkers.invariants.stored import (
    EARLIEST,
    LARGEST,
    LATEST,
    EpochEnd,
    Listed,
    ProducerBatch,
    Read,
    Replica,
    StoredBatch,
    StoredRecord,
)

BATCHES = (
    StoredBatch(0, 5, 1, 100, 11),
    StoredBatch(5, 8, 1, 300, 12),
    StoredBatch(8, 10, 3, 200, 13),
)
"""Offsets 0 to 9 in the epochs 1 and 3; the second batch has the largest time."""
LEADER = Replica(
    is_leader=True, epoch=3, epoch_start=8, start=2, stable=8, high=8, end=10, batches=BATCHES
)
FOLLOWER = LEADER._replace(is_leader=False)


def listed(timestamp: int, offset: int, found_ms: int = -1, **more: Any) -> str | None:
    """Judge an answer of ListOffsets by the leader."""
    replica = LEADER._replace(**more.pop("replica", {}))
    answer = Listed(timestamp, more.get("isolation", 0), -1, offset, found_ms, more.get("epoch", 1))
    return stored.listed(replica, answer)


@pytest.mark.parametrize(
    ("timestamp", "right", "wrong"),
    [
        (EARLIEST, (2, -1), (0, -1)),  # the start of the log, not of its first segment
        (LARGEST, (6, 300), (1, 100)),
        (150, (5, 300), (1, 100)),  # the record is older than asked
        (150, (7, 160), (8, 200)),  # a later batch than the first one that is late enough
        (301, (-1, -1), (7, 300)),
        (300, (7, 300), (-1, -1)),
        (90, (3, 95), (1, 95)),  # the second one is below the start
    ],
)
def test_offsets_are_those_of_the_log(
    timestamp: int, right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """The same question has a right and a wrong answer."""
    assert listed(timestamp, *right) is None
    assert listed(timestamp, *wrong) is not None


def test_the_end_is_that_of_the_reader() -> None:
    """It is the high watermark, or the last stable offset, and known only in the leader's epoch."""
    moved = {"high": 9, "stable": 7}
    assert listed(LATEST, 9, epoch=3, replica=moved) is None
    assert listed(LATEST, 7, epoch=3, replica=moved) is not None
    assert listed(LATEST, 7, epoch=3, isolation=1, replica=moved) is None
    assert listed(LATEST, 9, epoch=3, isolation=1, replica=moved) is not None
    assert listed(LATEST, 9, epoch=1, replica=moved) is not None, "another leader epoch"
    behind = {"high": 7, "epoch_start": 8}
    assert listed(LATEST, 7, epoch=3, replica=behind) is not None, "KIP-207"


def test_no_reader_is_given_what_it_may_not_read() -> None:
    """A record at the end for the reader is not found by its time."""
    low = {"high": 6, "stable": 6}
    assert listed(150, 5, 300, replica=low) is None
    assert listed(150, 6, 300, replica=low) is not None
    assert listed(LARGEST, 7, 300, replica=low) is not None


def test_what_may_be_deleted_is_not_compared() -> None:
    """The first batch begins below the start of the log, or batches could not be read."""
    assert listed(50, 5, 300) is None
    assert listed(50, 2, 70) is None
    assert listed(150, 8, 200, replica={"is_read": False}) is None


def test_what_compaction_has_left_is_compared() -> None:
    """A batch without records has no time; the others count as in every log."""
    emptied = [
        batch._replace(is_empty=batch.base == 5) for batch in (*BATCHES, StoredBatch(12, 14, 3, 90))
    ]
    compacted = {"batches": emptied, "is_whole": False, "high": 14, "end": 14}
    for timestamp, right, wrong in (
        (150, (8, 200), (5, 300)),
        (150, (9, 180), (-1, -1)),
        (201, (-1, -1), (7, 300)),
        (LARGEST, (8, 200), (7, 300)),
        (LARGEST, (8, 200), (-1, -1)),
    ):
        assert listed(timestamp, *right, epoch=-1, replica=compacted) is None
        assert listed(timestamp, *wrong, epoch=-1, replica=compacted) is not None


def test_the_first_record_of_a_batch_counts() -> None:
    """Of the records that are late enough, it is the first one."""
    records = [StoredRecord(5, 290), StoredRecord(6, 300), StoredRecord(7, 300)]
    for timestamp, right in ((LARGEST, 6), (295, 6), (280, 5)):
        time_ms = 290 if right == 5 else 300
        answer = Listed(timestamp, 0, -1, right, time_ms, 1)
        assert stored.first_in_batch(records, answer) is None
        late = answer._replace(offset=7, found_ms=300)
        assert stored.first_in_batch(records, late) is not None


def test_only_the_leader_of_the_named_epoch_answers() -> None:
    """A client that names no epoch is answered by any leader."""
    assert stored.as_leader(LEADER, -1) is None
    assert stored.as_leader(LEADER, 3) is None
    assert stored.as_leader(LEADER, 2) is not None
    assert stored.as_leader(FOLLOWER, -1) is not None


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        (1, (1, 8), (1, 10)),
        (2, (1, 8), (3, 10)),  # no record has epoch 2
        (2, (1, 8), (2, 8)),
        (3, (3, 10), (-1, -1)),
        (4, (-1, -1), (3, 10)),
    ],
)
def test_epochs_end_where_later_ones_begin(
    wanted: int, right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """The same question has a right and a wrong answer."""
    assert stored.epoch_end(LEADER, EpochEnd(wanted, -1, *right)) is None
    assert stored.epoch_end(LEADER, EpochEnd(wanted, -1, *wrong)) is not None


def test_a_leader_knows_its_epoch_before_its_first_record() -> None:
    """A new leader has entered its epoch at the end of its log (KAFKA-7415)."""
    new = LEADER._replace(epoch=4)
    assert stored.epoch_end(new, EpochEnd(4, -1, 4, 10)) is None
    assert stored.epoch_end(new, EpochEnd(4, -1, 3, 10)) is not None


def test_ends_of_deleted_epochs_are_not_compared() -> None:
    """The log begins in epoch 1: where epoch 0 ended is not to be seen in it."""
    assert stored.epoch_end(LEADER, EpochEnd(0, -1, 0, 2)) is None


def read(offset: int, *batches: tuple[int, int, int], **more: Any) -> str | None:
    """Judge the answer to a fetch."""
    replica = more.get("replica", LEADER)
    ends = more.get("high", 8), more.get("start", 2)
    answer = Read(offset, True, -1, more.get("out", False), *ends, batches, more.get("stable", -1))
    return stored.read(more.get("before", replica), replica, answer)


def test_reads_go_on_where_they_were() -> None:
    """The batch with the offset comes first, and the others follow it in the order of the log."""
    assert read(6, (5, 8, 12)) is None
    assert read(6, (5, 8, 12), (8, 10, 13)) is None
    assert read(6, (8, 10, 13)) is not None, "offset 6 is left out"
    assert read(3, (0, 5, 11), (8, 10, 13)) is not None, "the second batch is left out"
    assert read(6, (5, 8, 99)) is not None, "other bytes"


def test_offsets_of_the_log_are_not_out_of_range() -> None:
    """An offset that was not there when the fetch arrived may be out of range."""
    assert read(10, out=True) is not None
    assert read(11, out=True) is None
    assert read(1, out=True) is None
    assert read(10, out=True, before=LEADER._replace(end=9)) is None


def test_ends_in_a_fetch_are_those_of_the_replica() -> None:
    """A follower states the high watermark that it knows, and no replica a later start."""
    assert read(8, replica=FOLLOWER, high=8) is None
    assert read(8, replica=FOLLOWER, high=9) is not None
    assert read(8, start=3) is not None


def test_a_leader_states_no_stable_offset_in_an_open_transaction() -> None:
    """What a follower knows may be truncated meanwhile."""
    assert read(8, stable=8) is None
    assert read(8, stable=9) is not None
    assert read(8, stable=9, replica=FOLLOWER) is None


@pytest.mark.parametrize(
    ("chosen", "is_right"), [(2, True), (1, False), (3, False), (4, False), (5, True)]
)
def test_preferred_replicas_are_near_and_in_sync(chosen: int, is_right: bool) -> None:
    """Leader 1 is not preferred, nor 3 in another rack, nor 4 outside of the ISR."""
    racks = {1: "b", 2: "a", 3: "b", 4: "a"}
    assert (stored.preferred(1, [1, 2, 3, 5], racks, "a", chosen) is None) == is_right


@pytest.mark.parametrize(("offset", "is_right"), [(2, False), (3, True), (7, True), (8, False)])
def test_preferred_replicas_have_the_offset(offset: int, is_right: bool) -> None:
    """Offset 7 is that of the next record."""
    assert (stored.held(2, 3, 7, offset) is None) == is_right
    assert stored.held(2, -1, -1, offset) is not None


def test_acknowledged_batches_are_in_the_log() -> None:
    """The batch at the offset is the one that was sent, and follows the producer's last one."""
    sent = ProducerBatch(7, 2, 5, 3)
    before = ProducerBatch(7, 2, 3, 2)

    def why(found: ProducerBatch | None, last: ProducerBatch | None = before) -> str | None:
        return stored.acknowledged(sent, found, last, in_sequence=True)

    assert why(sent) is None
    assert why(None) is not None
    assert why(sent._replace(first=4)) is not None, "another batch"
    assert why(sent, None) is None, "the producer's first batch in the log"
    assert why(sent, before._replace(first=2)) is not None, "a gap"
    assert why(sent, before._replace(epoch=1)) is not None, "a new epoch begins with 0"
    assert why(sent, before._replace(epoch=3)) is not None, "an old epoch"
    gap = stored.acknowledged(sent, sent, before._replace(first=2), in_sequence=False)
    assert gap is None, "the producer may have been forgotten"


def test_the_time_in_an_answer_is_that_of_the_log() -> None:
    """A batch that was acknowledged with a LogAppendTime is stored with it."""
    assert stored.stamped(300, is_stamped=True, stored_ms=300) is None
    assert stored.stamped(-1, is_stamped=False, stored_ms=200) is None
    assert stored.stamped(300, is_stamped=False, stored_ms=300) is not None
    assert stored.stamped(300, is_stamped=True, stored_ms=200) is not None


@pytest.mark.parametrize(
    ("found", "sent", "configured", "is_right"),
    [
        ((0, False), (0, False), (stored.PRODUCERS_CODEC, False), True),
        ((3, False), (3, False), (stored.PRODUCERS_CODEC, False), True),
        ((0, False), (3, False), (stored.PRODUCERS_CODEC, False), False),
        ((1, False), (0, False), (1, False), True),
        ((0, False), (0, False), (1, False), False),
        ((3, False), (3, False), (0, False), False),
        ((0, True), (0, False), (0, True), True),
        ((0, False), (0, False), (0, True), False),
        ((0, True), (0, False), (0, False), False),
    ],
)
def test_batches_have_the_configured_format(
    found: tuple[int, bool], sent: tuple[int, bool], configured: tuple[int, bool], is_right: bool
) -> None:
    """The codec is that of the topic or of the producer, the type of times that of the topic."""
    formats = stored.Format(*found), stored.Format(*sent), stored.Format(*configured)
    assert (stored.formatted(*formats) is None) == is_right


def test_sequence_numbers_begin_again_at_0() -> None:
    """After the last sequence number comes 0 (KAFKA-7692)."""
    last = ProducerBatch(7, 2, stored.SEQUENCES - 2, 2)
    sent = ProducerBatch(7, 2, 0, 1)
    assert stored.acknowledged(sent, sent, last, in_sequence=True) is None
    one = sent._replace(first=1)
    assert stored.acknowledged(one, one, last, in_sequence=True) is not None
