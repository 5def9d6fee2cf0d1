"""Reads the headers of the batches in requests and answers."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from broker_impl.errors import WireError
from broker_impl.wire.batch import BatchHeader, batches
from broker_impl.wire.types import Buffer
from broker_impl.wire.writing import Records


def headers(records: Records | None) -> Iterator[BatchHeader]:
    """Yield the headers of the batches; raises WireError if the bytes are not whole batches."""
    for buffer in _buffers(records):
        yield from (header for _, header in batches(buffer))


def whole_headers(records: Records | None) -> Iterator[BatchHeader]:
    """Yield the headers of the batches before the first invalid byte of each buffer."""
    for buffer in _buffers(records):
        with suppress(WireError):
            yield from (header for _, header in batches(buffer, torn_tail=True))


def _buffers(records: Records | None) -> Sequence[Buffer]:
    if isinstance(records, bytes | bytearray | memoryview):
        return [records]
    return records or ()
