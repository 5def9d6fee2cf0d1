"""The headers of batches are read from one buffer or several."""

from collections.abc import Callable
from typing import Any

import pytest

from broker_impl.errors import WireError
from broker_impl.wire.batch import Record, encode_batch
from harness.cluster.observe.batch_headers import headers, whole_headers

BATCH = encode_batch([Record(value=b"a"), Record(value=b"b")])


@pytest.mark.parametrize("read", [headers, whole_headers])
@pytest.mark.parametrize(
    ("records", "count"),
    [(None, 0), (b"", 0), (BATCH, 1), (memoryview(BATCH * 2), 2), ([BATCH * 2, BATCH], 3)],
)
def test_each_batch_of_each_buffer(read: Callable[..., Any], records: Any, count: int) -> None:
    """Nothing, one buffer, and several ones."""
    assert [header.count for header in read(records)] == [2] * count


@pytest.mark.parametrize("damaged", [BATCH + BATCH[:-1], BATCH + b"\7" * len(BATCH)])
def test_invalid_bytes(damaged: bytes) -> None:
    """Only the batches before them are read, of each buffer, where invalid bytes are expected."""
    assert len(list(whole_headers([damaged, BATCH]))) == 2
    with pytest.raises(WireError):
        list(headers([damaged, BATCH]))
