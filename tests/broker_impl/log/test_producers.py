"""The state that a log keeps of each producer: rules P1 to P5."""

import struct

import pytest
from fastcrc.crc32 import iscsi as crc32c
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import producers
from broker_impl.log.producers import (
    BatchMetadata,
    MalformedSnapshot,
    ProducerEntry,
    ProducerStates,
)
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record

LAST = 2**31 - 1


def header(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    offset: int = 0,
    producer_id: int = 7,
    transactional: bool = False,
    control: bool = False,
) -> BatchHeader:
    return batch.parse_header(
        batch.encode_batch(
            [Record(timestamp_ms=1000)] * count,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
            control=control,
        )
    )


def states(*headers: BatchHeader) -> ProducerStates:
    folded = ProducerStates()
    for each in headers:
        folded.fold(each, now_ms=0)
    return folded


def check(folded: ProducerStates, sent: BatchHeader) -> BatchMetadata | None:
    return producers.check_sequence(folded.entries.get(sent.producer_id), sent)


@pytest.mark.parametrize(
    ("known", "sent"),
    [
        ([], header(0)),
        ([], header(17)),  # an unknown producer may start anywhere (the hole of KAFKA-14904)
        ([header(0, 3)], header(3)),
        ([header(LAST - 1, 2)], header(0)),  # after 2^31 - 1 comes 0 (KAFKA-7692)
        ([header(LAST, 2)], header(1)),  # wrapped within a batch
        ([header(5, epoch=1)], header(0, epoch=2)),  # a new epoch begins at 0
        ([header(-1, epoch=3, control=True)], header(0, epoch=3)),  # after a marker
    ],
)
def test_a_batch_in_order_is_accepted(known: list[BatchHeader], sent: BatchHeader) -> None:
    """P1: a batch continues the sequence of the known epoch, or starts a new epoch at 0."""
    assert check(states(*known), sent) is None


@pytest.mark.parametrize(
    ("known", "sent", "code"),
    [
        ([header(0, 3)], header(4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, 3)], header(2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, 3)], header(0, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, 3)], header(1, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0)], header(1, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([header(0, epoch=2)], header(1, epoch=1), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([header(0, epoch=2)], header(0, epoch=1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (
            [header(-1, epoch=3, control=True)],
            header(5, epoch=3),
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ),
    ],
)
def test_a_batch_out_of_order_is_refused(
    known: list[BatchHeader], sent: BatchHeader, code: ErrorCode
) -> None:
    """P1: gaps, steps back and old epochs are refused with Kafka's error codes."""
    with pytest.raises(ApiError) as refused:
        check(states(*known), sent)
    assert refused.value.code == code


def test_the_last_five_batches_are_recognised() -> None:
    """A repeated batch is answered from memory; the sixth from the end is out of order."""
    sent = [header(2 * n, 2, offset=100 + 2 * n) for n in range(6)]
    folded = states(*sent)
    for again in sent[1:]:
        repeated = check(folded, again)
        assert repeated is not None
        assert (repeated.first_offset, repeated.last_offset) == (
            again.base_offset,
            again.last_offset,
        )
        assert repeated.timestamp_ms == 1000
    with pytest.raises(ApiError) as refused:
        check(folded, sent[0])
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_duplicate_across_the_wrap_is_recognised() -> None:
    """A duplicate that crosses sequence 2^31 is found by its first sequence."""
    sent = header(LAST, 3, offset=10)
    repeated = check(states(sent), sent)
    assert repeated is not None
    assert repeated.first_sequence == LAST
    assert repeated.first_offset == 10


def test_a_new_epoch_forgets_the_old_batches() -> None:
    """Batches of an older epoch are not duplicates in a newer one."""
    folded = states(header(0), header(0, epoch=1, offset=1))
    assert folded.entries[7].batches == (BatchMetadata(0, 1, 0, 1000),)


def test_producers_expire_when_silent() -> None:
    """P5: a producer expires by the broker's clock since its last batch or marker.

    The timestamps of its records do not count.
    """
    folded = states(header(0, producer_id=1), header(0, producer_id=2))
    folded.fold(header(1, producer_id=2), now_ms=50)
    folded.fold(header(-1, producer_id=3, control=True), now_ms=60)
    folded.expire(100, 100)
    assert sorted(folded.entries) == [2, 3]
    folded.expire(160, 100)
    assert sorted(folded.entries) == []


def test_a_producer_with_an_open_transaction_stays() -> None:
    """P5: a producer with an open transaction does not expire (KAFKA-9144) until its marker."""
    folded = states(header(0, transactional=True, offset=40), header(1, transactional=True))
    assert folded.entries[7].transaction_start == 40
    folded.expire(10**9, 1)
    assert sorted(folded.entries) == [7]
    folded.fold(header(-1, control=True), now_ms=0)
    assert folded.entries[7].transaction_start is None
    assert folded.entries[7].last_sequence == 1
    folded.expire(10**9, 1)
    assert folded.entries == {}


some_headers = st.builds(
    header,
    st.integers(0, LAST),
    st.integers(1, 4),
    epoch=st.integers(0, 2),
    offset=st.integers(0, 2**60),
    producer_id=st.integers(0, 3),
    transactional=st.booleans(),
)


@given(st.lists(some_headers, max_size=20))
def test_a_snapshot_holds_everything(headers: list[BatchHeader]) -> None:
    """P4: a decoded snapshot has the same producers as the encoded one, with all their batches."""
    folded = states(*headers)
    assert ProducerStates.decode(folded.encode(), now_ms=0).entries == folded.entries


def test_a_snapshot_keeps_a_producer_without_batches() -> None:
    """A snapshot keeps a producer of which only the epoch is known, after a marker."""
    folded = states(header(-1, epoch=4, control=True))
    assert ProducerStates.decode(folded.encode(), now_ms=0).entries == folded.entries


def test_the_snapshots_format_is_kafkas() -> None:
    """A snapshot has Kafka's format: version, CRC-32C of the rest, number of rows, and the rows.

    The last row of a producer is its last batch; the first one says when it was seen.
    """
    folded = states(header(3, 2, epoch=1, offset=20))
    folded.entries[7].seen_ms = 1234
    encoded = folded.encode()
    assert encoded[:2] == b"\x00\x01"
    assert encoded[6:10] == b"\x00\x00\x00\x02"
    assert list(struct.iter_unpack(">qhiqiqiq", encoded[10:])) == [
        (7, 1, -1, -1, 0, 1234, -1, -1),
        (7, 1, 4, 21, 1, 1000, -1, -1),
    ]


def test_a_snapshot_keeps_when_a_producer_was_seen() -> None:
    """P5: a restart does not make a silent producer look active, so that it expires in time.

    A time after the broker's own is not believed, because its clock was wrong then or is now.
    """
    folded = states(header(0))
    folded.entries[7].seen_ms = 100
    snapshot = folded.encode()
    restarted = ProducerStates.decode(snapshot, now_ms=150)
    restarted.expire(199, 100)
    assert restarted.entries[7].seen_ms == 100
    restarted.expire(200, 100)
    assert not restarted.entries
    assert ProducerStates.decode(snapshot, now_ms=50).entries[7].seen_ms == 50


def test_a_snapshot_without_that_time_is_read() -> None:
    """In a snapshot of an older version, a producer without batches has the time -1: it counts as
    seen when the snapshot is read."""
    row = struct.pack(">qhiqiqiq", 7, 4, -1, -1, 0, -1, 2, -1)
    body = struct.pack(">i", 1) + row
    snapshot = struct.pack(">hI", 1, crc32c(body)) + body
    found = ProducerStates.decode(snapshot, now_ms=9).entries
    assert found == {7: ProducerEntry(4, seen_ms=9, coordinator_epoch=2)}


@given(st.data())
def test_a_damaged_snapshot_is_refused(data: st.DataObject) -> None:
    """A snapshot with any cut or any changed byte is refused."""
    encoded = bytearray(states(header(0), header(1)).encode())
    if data.draw(st.booleans()):
        del encoded[data.draw(st.integers(0, len(encoded) - 1)) :]
    else:
        encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MalformedSnapshot):
        ProducerStates.decode(bytes(encoded), now_ms=0)


def test_replicated_batches_are_folded() -> None:
    """A follower updates producer states from replicated batches; a mutant replaces this rule."""
    assert producers.folds_replicated_batches()
