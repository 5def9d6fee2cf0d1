"""Compacted logs with transactions: what counts as aborted, and what stays of it."""

import pytest

from broker_impl.log.config import LogConfig
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from tests.broker_impl.log.compacted_log import (
    MANY,
    all_rows,
    clean,
    committed_rows,
    end,
    new_disk,
    opened,
    put,
    roll,
)


def test_the_marker_of_an_aborted_transaction_goes_after_its_records() -> None:
    """The marker of an aborted transaction outlives its records by ``delete.retention.ms``."""

    def markers(log: PartitionLog) -> list[int]:
        data = b"".join(log.read(0, bytes_max=1 << 20, limit=log.end_offset))
        return [header.base_offset for _, header in batch.batches(data) if header.is_control]

    log = opened(new_disk(), LogConfig(cleanup_policy=("compact",), delete_retention_ms=100))
    put(log, (b"k", b"aborted"), producer=3, transactional=True)
    end(log, 3, commit=False)
    put(log, (b"k", b"v"), producer=3, transactional=True)
    end(log, 3, commit=True)
    put(log, (b"z", b"v"))
    left = []
    for now_ms in (0, 10, 110, 111):
        put(log, (b"other%d" % now_ms, b"v"))
        roll(log)
        clean(log, now_ms=now_ms)
        left.append(markers(log))
    assert left == [[1, 3], [1, 3], [1, 3], [3]]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_transaction_that_an_earlier_pass_has_read_does_not_matter(deletes: bool) -> None:
    """What a producer commits after a pass replaces records, though it aborted one before.

    Otherwise a deleted key would have its value again, once its tombstone is removed (finding 39).
    """
    log = opened(new_disk())
    put(log, (b"k", b"old"))
    put(log, (b"x", b"aborted"), producer=3, transactional=True)
    end(log, 3, commit=False)
    roll(log)
    assert clean(log)
    value = None if deletes else b"new"
    put(log, (b"k", value), producer=3, transactional=True)
    end(log, 3, commit=True)
    left = []
    for now_ms in (0, 200):
        put(log, (b"y%d" % now_ms, b"v"))
        roll(log)
        assert clean(log, now_ms=now_ms)
        left.append([row.value for row in committed_rows(log) if row.key == b"k"])
    assert left == [[value], [] if deletes else [value]]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_transaction_that_a_pass_reads_in_part_matters(deletes: bool) -> None:
    """If the map of keys is full in the middle of an aborted transaction, the rest is aborted."""
    log = opened(new_disk())
    put(log, (b"k", b"old"))
    put(log, (b"x", b"aborted"), producer=3, transactional=True)
    put(log, (b"k", None if deletes else b"aborted"), producer=3, transactional=True)
    end(log, 3, commit=False)
    for keys_max in (1, 1, MANY):
        put(log, (b"z", b"v"))
        roll(log)
        clean(log, keys_max=keys_max, now_ms=200)
    assert [row.value for row in all_rows(log) if row.key == b"k"] == [b"old"]


def test_a_transaction_may_lie_in_several_copies() -> None:
    """KAFKA-8351: the state of a transaction is carried from one copied segment to the next."""
    log = opened(new_disk(), LogConfig(segment_bytes=400, cleanup_policy=("compact",)))
    for key in (b"a", b"b", b"c"):
        put(log, (key, b"aborted" * 40), producer=3, transactional=True)
        roll(log)
    end(log, 3, commit=False)
    put(log, (b"z", b"v"))
    roll(log)
    clean(log)
    assert [row.key for row in all_rows(log)] == [b"z"]
    put(log, (b"y", b"v"))
    roll(log)
    clean(log)
    assert [row.key for row in committed_rows(log)] == [b"z", b"y"]


def test_what_was_aborted_is_known_behind_the_last_key_that_was_read() -> None:
    """KAFKA-13727: aborted transactions are known beyond the last key in a full offset map.

    With room for few keys, a pass copies a segment further than it has read keys.
    """
    log = opened(new_disk(), LogConfig(cleanup_policy=("compact",)))
    put(log, (b"a", b"v"))
    put(log, (b"b", b"v"))
    put(log, (b"c", b"aborted"), producer=3, transactional=True)
    end(log, 3, commit=False)
    roll(log)
    assert clean(log, keys_max=1)
    assert log.first_dirty == 1
    assert [row.key for row in committed_rows(log)] == [b"a", b"b"]
