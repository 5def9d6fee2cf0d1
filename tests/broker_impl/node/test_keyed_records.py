"""The keys of a compacted log, as an observer reads them."""

from zlib import crc32

from broker_impl.errors import WireError
from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import Marker
from broker_impl.node.keyed_records import KeyedRecord, KeyedRecords
from broker_impl.wire import batch
from broker_impl.wire.batch import Record

PLAIN = batch.encode_batch(
    [Record(b"k", b"v", 5, (("h", b"x"),)), Record(None, b"v"), Record(b"k", None)]
)
OPEN = batch.encode_batch(
    [Record(b"k", b"w")],
    base_offset=3,
    producer_id=7,
    producer_epoch=0,
    base_sequence=0,
    transactional=True,
)


def marker(*, is_commit: bool) -> bytes:
    return aborted_index.encode_marker(Marker(7, 0, is_commit, 1), 0)


def read(*log: bytes, keyed: KeyedRecords | None = None) -> list[KeyedRecord]:
    headers = [batch.parse_header(each) for each in log]
    return (keyed or KeyedRecords()).read(headers, lambda number: batch.records(log[number]))


def test_records_have_their_content_and_transactions() -> None:
    """A record without a key is left out, and one without a value is a tombstone."""
    assert read(PLAIN, OPEN) == [
        KeyedRecord(0, b"k", crc32(b"v"), timestamp_ms=5, headers=(("h", b"x"),)),
        KeyedRecord(2, b"k", None, timestamp_ms=0),
        KeyedRecord(3, b"k", crc32(b"w"), 7, timestamp_ms=0),
    ]


def test_markers_end_transactions() -> None:
    """They commit or abort."""
    for is_commit in (True, False):
        [found] = read(marker(is_commit=is_commit))
        assert (found.key, found.producer_id, found.commits) == (b"", 7, is_commit)


def test_the_list_grows_with_the_log() -> None:
    """Another list of headers begins another one; a damaged batch ends it."""
    keyed, headers = KeyedRecords(), [batch.parse_header(PLAIN)]
    log = [PLAIN]
    first = keyed.read(headers, lambda number: batch.records(log[number]))
    headers.append(batch.parse_header(OPEN))
    log.append(OPEN)
    assert keyed.read(headers, lambda number: batch.records(log[number])) is first
    assert len(first) == 3
    again = keyed.read(list(headers), lambda number: batch.records(log[number]))
    assert again == first
    assert again is not first

    def damaged(number: int) -> list[Record]:
        if number:
            raise WireError("garbage")
        return batch.records(log[number])

    assert len(KeyedRecords().read(headers, damaged)) == 2
