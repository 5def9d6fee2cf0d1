"""What may enter a log: batches are checked by their headers and CRC, mostly without decompression.

Records are decoded only for a compacted log, whose records need keys, and for a log that limits
their timestamps; a batch is decompressed if the log stores another codec.
"""

from collections.abc import Iterable
from typing import Final, NoReturn

from broker_impl.errors import ApiError, ErrorCode, RecordsRefused, WireError
from broker_impl.log.config import LogConfig
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Buffer, Offset

_MAGIC_AT = 16
_NO_TIMESTAMP = -1
_INT64_MAX = 2**63 - 1
RECORDS_MAX: Final = 200_000
"""The number of records that a batch may have: to decode more would stop the event loop for long.

A compressed batch of some kilobytes can have millions of records. ``max.message.bytes`` of 1 MiB
limits batches without compression to about 130,000.
"""
_BAD_RECORDS: Final = "One or more records have been rejected"
_BAD_TIMES: Final = "One or more records have been rejected due to invalid timestamp"


def producer_batch(
    records: Buffer, config: LogConfig, now_ms: int, *, by_coordinator: bool = False
) -> BatchHeader:
    """Check the one batch that a producer sent for a partition, and return its header.

    by_coordinator: a coordinator made it in a producer's name, and without a sequence number.

    ApiError: UNSUPPORTED_FOR_MESSAGE_FORMAT for magic 0 and 1 (clients give up at that, where
    CORRUPT_MESSAGE would make them try again); CORRUPT_MESSAGE; MESSAGE_TOO_LARGE, also for more
    than RECORDS_MAX records, so that clients split the batch; RECORD_LIST_TOO_LARGE if no segment
    could hold it; UNSUPPORTED_COMPRESSION_TYPE; INVALID_RECORD for everything else.
    """
    if not records:
        raise ApiError(ErrorCode.INVALID_RECORD, "no batch of records")
    if len(records) > _MAGIC_AT and records[_MAGIC_AT] < batch.MAGIC:
        raise ApiError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"the message format is {records[_MAGIC_AT]}, but only {batch.MAGIC} is stored",
        )
    try:
        header = batch.parse_header(records)
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if header.size > len(records) or header.magic != batch.MAGIC:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "a batch that is torn or of an unknown format")
    if header.size < len(records):
        raise ApiError(
            ErrorCode.INVALID_RECORD, "a partition has more than one batch in the request"
        )
    _check_size(header, config)
    if not is_intact(records, header):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "a batch whose CRC does not match")
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"the batch has {header.count} records, but its last offset delta is "
            f"{header.last_offset_delta}",
        )
    if header.is_control:
        raise ApiError(ErrorCode.INVALID_RECORD, "a client must not send control batches")
    numbered = header.base_sequence >= 0 or by_coordinator
    if header.producer_id >= 0 and (not numbered or header.producer_epoch < 0):
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"a batch with a producer id has epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}",
        )
    if header.is_transactional and header.producer_id < 0:
        raise ApiError(ErrorCode.INVALID_RECORD, "a transactional batch has no producer id")
    if header.compression > batch.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"compression codec {header.compression} is unknown",
        )
    return header


def _check_size(header: BatchHeader, config: LogConfig) -> None:
    if header.count > RECORDS_MAX:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {header.count} records, only {RECORDS_MAX} are allowed",
        )
    if header.size > config.message_bytes_max:
        raise ApiError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {header.size} bytes, only {config.message_bytes_max} are allowed",
        )
    if header.size > config.segment_bytes:
        raise ApiError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {header.size} bytes, but a segment has only {config.segment_bytes}",
        )


def is_intact(records: Buffer, header: BatchHeader) -> bool:
    """Does the CRC of a producer's batch, which begins with this header, match its bytes?"""
    return batch.check_crc(records, 0, header)


def has_keys(records: Iterable[Record]) -> bool:
    """Does each record of a batch have a key, as a compacted log requires?"""
    return all(record.key is not None for record in records)


def lacks_max_timestamp(header: BatchHeader) -> bool:
    """Has a producer left out the largest time of its batch, as Sarama did before 1.45.1?

    Kafka takes it from the records of every batch. Here it is trusted if it may be right.
    """
    return header.max_timestamp < header.base_timestamp


def max_timestamp(records: Buffer) -> int:
    """The largest time of a batch's records; ApiError CORRUPT_MESSAGE: they cannot be decoded."""
    largest_ms = max(record.timestamp_ms for record in _decoded(records))
    if largest_ms > _INT64_MAX:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"a record has the time {largest_ms}")
    return largest_ms


def _decoded(records: Buffer) -> list[Record]:
    try:
        return batch.records(records)
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def each_record(records: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Check every record of a producer's batch, where the log's settings limit what records may be.

    RecordsRefused names all invalid records (KIP-467): INVALID_TIMESTAMP if any timestamp is not
    valid, else INVALID_RECORD for records without a key in a compacted log. ApiError
    CORRUPT_MESSAGE: the records cannot be decoded.
    """
    difference_max = _INT64_MAX
    if config.timestamp_type == batch.CREATE_TIME:
        if header.timestamp_type != batch.CREATE_TIME:
            _refuse_times(header.count, "a producer must not set the timestamp type LogAppendTime")
        difference_max = config.timestamp_difference_ms_max
    if difference_max == _INT64_MAX and not config.is_compacted:
        return
    decoded = _decoded(records)
    late = [
        (
            number,
            f"timestamp {record.timestamp_ms} differs by more than {difference_max} ms from "
            f"{now_ms}",
        )
        for number, record in enumerate(decoded)
        if record.timestamp_ms != _NO_TIMESTAMP
        and abs(record.timestamp_ms - now_ms) > difference_max
    ]
    keyless: list[tuple[int, str]] = []
    if config.is_compacted and not has_keys(decoded):
        keyless = [
            (number, "a record of a compacted topic has no key")
            for number, record in enumerate(decoded)
            if record.key is None
        ]
    if late:
        raise RecordsRefused(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, tuple(sorted(late + keyless)))
    if keyless:
        raise RecordsRefused(ErrorCode.INVALID_RECORD, _BAD_RECORDS, tuple(keyless))


def _refuse_times(count: int, why: str) -> NoReturn:
    errors = tuple((number, why) for number in range(count))
    raise RecordsRefused(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES, errors)


def codec(sent: BatchHeader, config: LogConfig) -> int:
    """The codec with which a producer's batch is stored."""
    return sent.compression if config.compression is None else config.compression


def recompressed(
    records: Buffer, header: BatchHeader, codec: int, config: LogConfig
) -> tuple[bytes, BatchHeader]:
    """Return a producer's batch in another codec, and its new header.

    ApiError: CORRUPT_MESSAGE if it cannot be decompressed, MESSAGE_TOO_LARGE or
    RECORD_LIST_TOO_LARGE for the new size.
    """
    try:
        changed = batch.recompressed(records, header, codec)
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    after = batch.parse_header(changed)
    _check_size(after, config)
    return changed, after


def replicated_batches(records: Buffer) -> list[tuple[int, BatchHeader]]:
    """Position and header of each whole batch in a leader's answer; CRCs are checked again."""
    try:
        placed = list(batch.batches(records, torn_tail=True))
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    for at, header in placed:
        if not batch.check_crc(records, at, header):
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"the CRC of the batch at {header.base_offset} is wrong"
            )
    return placed


def continuous(placed: list[tuple[int, BatchHeader]], expected: Offset) -> None:
    """Check that batches continue the log at `expected`; ApiError: INVALID_RECORD (KAFKA-3047).

    Gaps are permitted: the leader's log may be compacted.
    """
    for _, header in placed:
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"the batch begins at offset {header.base_offset}, but {expected} is expected",
            )
        expected = header.next_offset
