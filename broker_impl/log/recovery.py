"""Recover a segment after a crash: keep the batches with a valid CRC, up to the first without."""

import logging
from collections.abc import Iterator

from broker_impl.errors import WireError
from broker_impl.log.disk import DiskFile
from broker_impl.log.epochs import UNDEFINED_EPOCH, EpochStart
from broker_impl.log.segment import RELATIVE_OFFSET_MAX, Segment
from broker_impl.wire.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc, parse_header
from broker_impl.wire.types import Buffer, Epoch, Offset

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20


def recover(segment: Segment) -> list[EpochStart]:
    """Truncate the segment at its first bad batch, and rebuild its indexes.

    The index of aborted transactions stays empty: transactions that were open before this segment
    are not known here (`loading.replay`).

    Returns where each leader epoch first appears, the segment's own first epoch included.
    """
    found = segment.size
    segment.forget()
    epochs: list[EpochStart] = []
    for position, header in sound_batches(segment.file, segment.base_offset):
        segment.note(position, header)
        segment.aborted.is_stale |= may_abort(header)
        epoch = header.partition_leader_epoch
        if begins_epoch(epoch, epochs[-1].epoch if epochs else UNDEFINED_EPOCH):
            epochs.append(EpochStart(epoch, header.base_offset))
    if segment.size < found:
        logger.warning(
            "segment %d was truncated from %d to %d bytes, at offset %d",
            *(segment.base_offset, found, segment.size, segment.next_offset),
        )
        segment.file.truncate(segment.size)
        segment.file.fsync()
    return epochs


def may_abort(header: BatchHeader) -> bool:
    """Must the index of aborted transactions be rebuilt because of this batch?"""
    return header.is_control


def begins_epoch(epoch: Epoch, latest: Epoch) -> bool:
    """Is a batch of `epoch`, found in a log, the first of a leader epoch after `latest`?

    `latest` is -1 before the first; 0 is an epoch like any other (KAFKA-10432).
    """
    return epoch > latest


def sound_batches(file: DiskFile, base_offset: Offset) -> Iterator[tuple[int, BatchHeader]]:
    """The batches from the start of a file to the first that is torn, damaged or out of order."""
    position, expected = 0, base_offset
    chunk: Buffer = b""
    chunk_at = 0
    while position + HEADER_BYTES <= file.size:
        if position + HEADER_BYTES > chunk_at + len(chunk):
            chunk, chunk_at = file.pread(position, _CHUNK_BYTES), position
        try:
            header = parse_header(chunk, position - chunk_at)
        except WireError:
            return
        if not _is_plausible(header, base_offset, expected, file.size - position):
            return
        if position + header.size > chunk_at + len(chunk):
            chunk, chunk_at = file.pread(position, max(header.size, _CHUNK_BYTES)), position
        if not check_crc(chunk, position - chunk_at, header):
            return
        yield position, header
        position += header.size
        expected = header.next_offset


def _is_plausible(header: BatchHeader, base_offset: Offset, expected: Offset, left: int) -> bool:
    return (
        header.magic == MAGIC
        and header.size <= left
        and header.base_offset >= expected
        and header.last_offset_delta >= 0
        and header.last_offset - base_offset <= RELATIVE_OFFSET_MAX
    )
