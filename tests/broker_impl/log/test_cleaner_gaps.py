"""Logs work with the gaps between offsets that compaction leaves, also between two segments."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import StorageError
from broker_impl.log import cleaner
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from tests.broker_impl.log.compacted_log import (
    CONFIG,
    MANY,
    all_rows,
    clean,
    committed_rows,
    end,
    filled,
    latest,
    new_disk,
    opened,
    put,
    roll,
    stable_end,
)

TINY = LogConfig(
    segment_bytes=200, index_interval_bytes=100, cleanup_policy=("compact",), delete_retention_ms=0
)
"""With this configuration two or three batches fill a segment."""


def headers(log: PartitionLog) -> Iterator[BatchHeader]:
    """The header of every batch in the log's files, in order."""
    for segment in log.closed_segments:
        yield from (header for _, header in segment.headers())
    offset = log.segment_offsets[-1]
    for data in log.read(offset, bytes_max=1 << 20, limit=log.end_offset):
        yield from (header for _, header in batch.batches(data))


def empty_batches(log: PartitionLog) -> list[int]:
    """The base offsets of the batches without a record."""
    return [header.base_offset for header in headers(log) if not header.count]


def files_of_copies(disk: MemoryDisk) -> list[str]:
    """The temporary files of a pass of the cleaner, which do not belong to the log."""
    return [name for name in disk.list("t-0") if ".cleaned" in name or ".swap" in name]


def counted(log: PartitionLog, batches: int, *, keys: int = 3) -> None:
    """Append batches of one record each, cycling through a few keys."""
    for number in range(batches):
        put(log, (b"k%d" % (number % keys), b"%d" % number))


@pytest.mark.parametrize(
    "config", [TINY, LogConfig(segment_bytes=2_000, cleanup_policy=("compact",))]
)
def test_a_compacted_log_has_no_batch_without_records(config: LogConfig) -> None:
    """A batch is removed with its last record, also at a segment's end, if no producer needs it."""
    log = opened(new_disk(), config)
    counted(log, 150)
    active = log.segment_offsets[-1]
    for _ in range(3):
        log.compacted_to(0)
        clean(log)
    assert empty_batches(log) == []
    assert [row.offset for row in all_rows(log)] == [*range(active - 3, 150)]


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_small_segments_cost_a_reader_few_reads(passes: int) -> None:
    """A reader needs at most one read per batch, and finds the next record from any offset."""
    log = opened(new_disk(), TINY)
    counted(log, 150)
    for _ in range(passes):
        log.compacted_to(0)
        clean(log)
    left = [row.offset for row in all_rows(log)]
    for offset in range(log.end_offset):
        (data,) = log.read(offset, bytes_max=10, limit=log.end_offset)
        expected = next(each for each in left if each >= offset)
        assert batch.parse_header(data).base_offset == expected


@pytest.mark.parametrize("limit", [140, 146, 147, 148, 149, 150])
def test_a_reader_never_passes_its_limit(limit: int) -> None:
    """The search for the next batch ends at the limit, in a gap as well."""
    log = opened(new_disk(), TINY)
    counted(log, 150)
    clean(log)
    expected = [offset for offset in (row.offset for row in all_rows(log)) if offset < limit]
    data = log.read(0, bytes_max=10, limit=limit)
    assert [batch.parse_header(each).base_offset for each in data] == expected[:1]


def test_a_batch_stays_without_records_while_its_producer_is_known() -> None:
    """KAFKA-5490: a producer's last batch keeps its sequence number until the producer expires."""
    log = opened(new_disk())
    put(log, (b"k", b"by 7"), producer=7)
    put(log, (b"k", b"by 8"), producer=8)
    put(log, (b"k", b"by none"))
    roll(log)
    put(log, (b"z", b"active"))
    clean(log)
    assert empty_batches(log) == [0, 1]
    log.producers.entries.pop(7)
    log.compacted_to(0)
    clean(log)
    assert empty_batches(log) == [1]


def test_a_consumer_is_not_given_batches_without_records_alone() -> None:
    """A consumer does not get a response of empty batches only, as long as records follow.

    A client that counts records would not advance at such a response, or would take it for a
    batch that is too large. A follower gets every batch.
    """
    log = opened(new_disk(), TINY)
    for number in range(4):
        put(log, (b"k", b"x"), producer=number)
        roll(log)
    put(log, (b"k", b"last"))
    roll(log)
    put(log, (b"z", b"active"))
    clean(log)
    assert empty_batches(log) == [0, 1, 2, 3]

    def first_of(*, skip_empty: bool) -> int:
        reading = log.read_from(0, bytes_max=10, limit=log.end_offset, skip_empty=skip_empty)
        return batch.parse_header(reading.records[0]).base_offset

    assert first_of(skip_empty=True) == 4
    assert first_of(skip_empty=False) == 0


def test_a_consumer_is_given_batches_without_records_if_there_is_nothing_else() -> None:
    """A consumer gets empty batches if no records follow, so that its position reaches the end."""
    log = opened(new_disk())
    put(log, (b"k", b"x"), producer=7)
    put(log, (b"k", b"y"))
    put(log, (b"k", b"z"))
    roll(log)
    put(log, (b"z", b"active"))
    clean(log)
    assert empty_batches(log) == [0]
    reading = log.read_from(0, bytes_max=1_000, limit=1, skip_empty=True)
    assert [batch.parse_header(each).base_offset for each in reading.records] == [0]


@pytest.mark.parametrize("kind", ["tombstone", "marker"])
def test_the_last_batch_that_is_settled_stays_whole(kind: str) -> None:
    """KAFKA-17076: the last batch of the compacted part stays, and is not emptied.

    Only this batch shows followers, and a restart after a crash, where the log ends, and clients
    could not pass an empty batch. The batch is removed once others follow it.
    """
    log = opened(new_disk(), TINY)
    put(log, (b"a", b"v"))
    if kind == "tombstone":
        put(log, (b"k", None))
    else:
        put(log, (b"k", b"aborted"), producer=3, transactional=True)
        end(log, 3, commit=False)
        put(log, (b"k", b"v"), producer=3)
        log.producers.entries.pop(3)
        put(log, (b"k", b"aborted"), producer=4, transactional=True)
        end(log, 4, commit=False)
        log.producers.entries.pop(4)
    roll(log)
    last = log.end_offset - 1
    for now_ms in (1, 2, 3):
        log.compacted_to(0)
        clean(log, now_ms=now_ms)
    assert [header.last_offset for header in headers(log)][-1] == last
    assert empty_batches(log) == []
    put(log, (b"z", b"active"))
    for now_ms in (4, 5, 6):
        log.compacted_to(0)
        clean(log, now_ms=now_ms)
    assert last not in [header.last_offset for header in headers(log)]
    assert empty_batches(log) == []


def test_a_pass_that_changes_nothing_leaves_no_files() -> None:
    """A pass that changes nothing removes its copy of the segment."""
    disk = new_disk()
    log = opened(disk, TINY)
    for number in range(20):
        put(log, (b"k%d" % number, b"v" * 80))
    assert clean(log)
    assert log.rewrites == 0
    assert files_of_copies(disk) == []


def test_a_pass_that_is_given_up_leaves_no_files() -> None:
    """A pass removes its files when it is given up, because the log changed or the broker stops."""
    disk = new_disk()
    log = filled(disk)
    running = cleaner.clean(log, 12, 0, MANY)
    while not files_of_copies(disk):
        next(running)
    running.close()
    assert files_of_copies(disk) == []


@pytest.mark.parametrize("clean_end", [True, False])
def test_what_a_killed_broker_left_of_a_pass_is_removed(clean_end: bool) -> None:
    """A restart removes the files of an interrupted pass, even if their segments are gone."""
    disk = new_disk()
    log = filled(disk)
    log.close()
    for base in (0, 4, 7):
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            disk.open(f"t-0/{base:020d}{suffix}.cleaned", create=True)
    opened(disk, clean=clean_end)
    assert files_of_copies(disk) == []


def with_gaps(disk: MemoryDisk, config: LogConfig = TINY) -> PartitionLog:
    """A log of small segments, most of which a pass leaves empty."""
    log = opened(disk, config)
    put(log, (b"gone", b"v"), producer=3, transactional=True)
    put(log, (b"gone", None))
    counted(log, 8)
    put(log, (b"aborted", b"v"), producer=4, transactional=True)
    counted(log, 8)
    end(log, 4, commit=False)
    end(log, 3, commit=True)
    counted(log, 8)
    log.flush()
    return log


@given(st.integers(0, 400), st.sampled_from(["kill", "crash", "torn"]), st.integers(1, 2))
@settings(max_examples=80)
def test_an_interrupted_pass_with_gaps_loses_nothing(number: int, kind: str, passes: int) -> None:
    """One or two passes with gaps that end at any operation of the disk lose nothing.

    All records that count are read, those of aborted transactions are not, and the log end
    stays.
    """
    disk = new_disk()
    log = with_gaps(disk)
    expected, log_end = latest(committed_rows(log)), log.end_offset
    done = 0

    def fails(operation: str, path: str) -> bool:
        nonlocal done
        done += operation != "pread"
        return done > number

    disk.fails = fails
    try:
        for turn in range(passes):
            log.compacted_to(0)
            clean(log, now_ms=turn)
    except StorageError:
        assert done > number
    disk.fails = lambda operation, path: False
    if kind != "kill":
        disk.crash(random.Random(number) if kind == "torn" else None)
    log = opened(disk, clean=False)
    assert latest(committed_rows(log)) == expected
    assert log.end_offset == log_end
    assert files_of_copies(disk) == []
    clean(log)
    assert latest(committed_rows(log)) == expected


def test_plans_find_the_file_of_a_copy_that_takes_its_place() -> None:
    """A plan can lose power just before the rename of a file whose name ends in ``.log.swap``."""
    disk = new_disk()
    log = with_gaps(disk)
    renamed: list[str] = []

    def seen(operation: str, path: str) -> bool:
        if operation == "rename":
            renamed.append(path)
        return False

    disk.fails = seen
    clean(log)
    assert any(path.endswith(".log.swap") for path in renamed)


@pytest.mark.parametrize("clean_end", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_gap_is_no_damage(clean_end: bool, suffix: str) -> None:
    """Recovery rebuilds the indexes of a compacted segment, and keeps the segments after a gap."""
    disk = new_disk()
    log = with_gaps(disk)
    clean(log)
    expected = all_rows(log)
    log.flush()
    if clean_end:
        log.close()
    for name in disk.list("t-0"):
        if name.endswith(suffix):
            disk.remove(f"t-0/{name}")
    assert all_rows(opened(disk, clean=clean_end)) == expected


@pytest.mark.parametrize("clean_end", [True, False])
def test_a_damaged_segment_still_ends_the_log(clean_end: bool) -> None:
    """A damaged batch ends the log even in a compacted segment: what it cuts off is not a gap."""
    disk = new_disk()
    log = with_gaps(disk)
    clean(log)
    base = next(
        segment.base_offset
        for segment in log.closed_segments
        if [header.next_offset for _, header in segment.headers()][-1:] < [segment.next_offset]
        and segment.size
    )
    log.close()
    disk.remove(f"t-0/{base:020d}.index")
    disk.open(f"t-0/{base:020d}.log").append([b"torn"])
    assert opened(disk, clean=clean_end).segment_offsets[-1] == base


def test_the_lost_end_of_a_segment_is_no_gap() -> None:
    """Above the recovery point, a segment that does not reach the next one has lost its end.

    This holds for compacted logs too.
    """
    disk = new_disk()
    log = opened(disk, TINY)
    counted(log, 9)
    log.flush()
    clean(log)
    counted(log, 9)
    base, behind = log.segment_offsets[-3:-1]
    assert log.recovery_point < behind
    path = f"t-0/{base:020d}.log"
    (_, last) = [at for at, _ in batch.batches(disk.read(path))][-2:]
    disk.open(path).truncate(last)
    log = opened(disk, clean=False)
    assert log.segment_offsets[-1] == base
    assert log.end_offset < behind


@pytest.mark.parametrize("offset", range(26))
def test_a_log_can_be_cut_within_a_gap(offset: int) -> None:
    """A log truncated within a gap ends with the last batch before the cut, and accepts appends."""
    log = with_gaps(new_disk())
    clean(log)
    before = list(headers(log))
    log.truncate_to(offset)
    assert log.end_offset <= offset
    assert list(headers(log)) == [each for each in before if each.last_offset < offset]
    put(log, (b"new", b"v"))
    assert all_rows(log)[-1].key == b"new"


def compact_only(config: LogConfig) -> LogConfig:
    return config


def by_size(config: LogConfig) -> LogConfig:
    return replace(config, cleanup_policy=("compact", "delete"), retention_bytes=400)


def by_age(config: LogConfig) -> LogConfig:
    return replace(config, cleanup_policy=("compact", "delete"), retention_ms=10)


@pytest.mark.parametrize(
    ("policy", "deletes"), [(compact_only, False), (by_size, True), (by_age, True)]
)
def test_retention_goes_past_a_segment_that_compaction_left_empty(
    policy: Callable[[LogConfig], LogConfig], deletes: bool
) -> None:
    """Retention deletes or keeps a segment that compaction left empty like any other segment."""
    log = opened(new_disk(), TINY)
    counted(log, 60)
    clean(log)
    assert not log.closed_segments[0].size
    counted(log, 30)
    before = log.segment_offsets
    log.config = policy(TINY)
    log.retain(1_000, log.end_offset)
    assert (log.segment_offsets != before) is deletes
    if not deletes:
        assert log.start_offset == 0
    else:
        assert log.size_bytes <= 600
    assert all_rows(log) == [row for row in all_rows(log) if row.offset >= log.start_offset]


def test_a_follower_copies_gaps_between_segments() -> None:
    """A follower copies a log with gaps between segments, and its copy survives a crash."""
    log = with_gaps(new_disk())
    clean(log)
    assert CONFIG.segment_bytes > TINY.segment_bytes
    for config in (TINY, CONFIG):
        disk = new_disk()
        copy = opened(disk, config)
        while data := log.read(copy.end_offset, bytes_max=100, limit=log.end_offset):
            copy.append_as_follower(data[0], now_ms=0)
        assert copy.end_offset == log.end_offset
        assert committed_rows(copy) == committed_rows(log)
        assert stable_end(copy) == stable_end(log)
        assert committed_rows(opened(disk, config, clean=False)) == committed_rows(log)


WIDE = 2**31 + 5


@pytest.mark.parametrize("first", [0, WIDE])
@pytest.mark.parametrize("clean_end", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_follower_copies_gaps_of_any_width(first: int, clean_end: bool, at_once: bool) -> None:
    """A segment cannot hold both sides of a gap of 2^31 offsets; a restart finds them both.

    An empty replica may begin with such a gap, too.
    """
    disk = new_disk()
    log = opened(disk)
    offsets = [first, first + 1, first + WIDE, first + WIDE + 1, first + 3 * WIDE]
    copies = [
        batch.encode_batch([Record(b"k%d" % at, b"v" * 60)], base_offset=at) for at in offsets
    ]
    for data in [b"".join(copies)] if at_once else copies:
        log.append_as_follower(data, now_ms=0)
    log.check()
    for _ in range(2):
        assert log.end_offset == offsets[-1] + 1
        assert [row.offset for row in all_rows(log)] == offsets
        log.flush()
        if clean_end:
            log.close()
        else:
            disk.crash()
        log = opened(disk, clean=clean_end)
    log.truncate_to(first + WIDE)
    log.append_as_follower(copies[2], now_ms=0)
    assert [row.offset for row in all_rows(log)] == offsets[:3]
    assert log.start_offset == 0
