"""The headers of batches in an answer are read; a batch that is cut off is left out."""

from workloads.client.asking.records import batches
from workloads.client.asking.txn_requests import batch


def test_batches_are_read_one_after_the_other() -> None:
    """Offsets come from the header; the last batch may be torn."""
    first = batch(7, 1, 0, 3, transactional=False)
    second = batch(7, 1, 3, 2, transactional=True)
    found = list(batches(first + second))
    assert [(each.base_offset, each.next_offset) for each in found] == [(0, 3), (0, 2)]
    assert [each.max_timestamp >= 0 for each in found] == [True, True]
    assert len(list(batches(first + second[:-1]))) == 1
    assert list(batches(b"")) == []
