"""Compacted logs against a naive model: a reader gets the last committed record of each key."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import StorageError
from broker_impl.log import cleaner
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import ProducerEntry
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from tests.broker_impl.log.compacted_log import (
    MANY,
    Row,
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

KEYS = st.sampled_from([b"a", b"b", b"c", b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"])
PAIRS = st.lists(
    st.tuples(KEYS, st.none() | st.binary(min_size=1, max_size=40)), min_size=1, max_size=4
)
STEPS = st.one_of(
    st.tuples(st.just("put"), PAIRS, st.sampled_from([-1, 1, 2]), st.sampled_from([0, 1, 4])),
    st.tuples(st.just("send"), PAIRS, st.sampled_from([3, 4])),
    st.tuples(st.just("end"), st.sampled_from([3, 4]), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean"), st.sampled_from([1, 2, MANY]), st.integers(0, 200)),
    st.tuples(st.just("restart"), st.booleans()),
)


class Model:
    """Every record that was appended, and the open and aborted transactions."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.open: dict[int, list[Row]] = {}
        self.aborted: list[Row] = []

    def put(self, offset: int, pairs: list[tuple[bytes, bytes | None]], producer: int) -> list[Row]:
        added = [Row(offset + n, key, value, producer) for n, (key, value) in enumerate(pairs)]
        self.rows += added
        return added

    def committed(self, below: int) -> dict[bytes, bytes]:
        unwanted = set(self.aborted)
        return latest([row for row in self.rows if row not in unwanted and row.offset < below])


def step_through(steps: list[tuple[object, ...]], log: PartitionLog, disk: MemoryDisk) -> None:
    model, now_ms = Model(), 0
    for step in steps:
        match step:
            case ("put", list(pairs), int(producer), int(codec)):
                model.put(put(log, *pairs, producer=producer, compression=codec), pairs, producer)
            case ("send", list(pairs), int(producer)):
                offset = put(log, *pairs, producer=producer, transactional=True)
                rows = model.put(offset, pairs, producer)
                model.open.setdefault(producer, []).extend(rows)
            case ("end", int(producer), bool(commit)):
                end(log, producer, commit=commit)
                rows = model.open.pop(producer, [])
                model.aborted += [] if commit else rows
            case ("roll",):
                roll(log)
            case ("clean", int(keys_max), int(later_ms)):
                now_ms += later_ms
                clean(log, keys_max=keys_max, now_ms=now_ms)
            case ("restart", bool(in_order)):
                before = known_by(log)
                if in_order:
                    log.close()
                log = opened(disk, clean=in_order, first_dirty=log.first_dirty)
                assert known_by(log) == before
            case _:
                raise AssertionError(step)
        log.check()
        agrees(log, model)


def known_by(log: PartitionLog) -> dict[int, tuple[int, int, int | None]]:
    """The state of each producer: its epoch, its last sequence number, its open transaction."""

    def of(entry: ProducerEntry) -> tuple[int, int, int | None]:
        return entry.epoch, entry.last_sequence, entry.transaction_start

    return {number: of(entry) for number, entry in log.producers.entries.items()}


def agrees(log: PartitionLog, model: Model) -> None:
    left = all_rows(log)
    assert left == sorted(left), "in the order in which they came"
    assert set(left) <= set(model.rows), "each is one that was appended, at its offset"
    if not model.open:
        assert latest(committed_rows(log)) == model.committed(log.end_offset)
    stable = stable_end(log)
    uncommitted = [row for rows in model.open.values() for row in rows]
    readable = [row for row in committed_rows(log) if row.offset < stable]
    assert latest(readable) == model.committed(stable)
    assert set(uncommitted) <= set(left), "what may still be aborted stays"
    compacted = [row.key for row in left if row.offset < log.first_dirty]
    assert len(compacted) == len(set(compacted)), "compaction leaves one record of a key"


@given(st.lists(STEPS, max_size=40))
@settings(max_examples=120)
def test_a_reader_of_a_compacted_log_gets_the_last_value_of_each_key(
    steps: list[tuple[object, ...]],
) -> None:
    """This holds for any sequence of appends, transactions, cleaner passes and restarts."""
    disk = new_disk()
    step_through(steps, opened(disk), disk)


def test_one_segment_is_left_of_several() -> None:
    """Small closed segments are merged into one; the active segment is not touched."""
    log = filled(new_disk())
    before = log.end_offset
    assert clean(log)
    assert log.segment_offsets == [0, 12]
    assert [row.offset for row in all_rows(log)] == [8, 9, 12]
    assert (log.first_dirty, log.end_offset) == (12, before)


def test_nothing_is_done_twice() -> None:
    """A second pass has a dirty ratio of 0 and rewrites nothing."""
    log = filled(new_disk())
    assert cleaner.dirtiness(log, 12, 0) == 1.0
    clean(log)
    assert cleaner.dirtiness(log, 12, 0) == 0.0
    rewrites = log.rewrites
    assert not clean(log)
    assert log.rewrites == rewrites


@pytest.mark.parametrize(("now_ms", "is_due"), [(150, False), (151, True), (260, True)])
def test_a_record_waits_for_max_compaction_lag_at_most(now_ms: int, is_due: bool) -> None:
    """It counts from the first record of the oldest new segment, not from the last (KIP-354)."""
    for lag_ms, wanted in ((50, is_due), (1000, False)):
        config = LogConfig(
            cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=lag_ms
        )
        log = opened(new_disk(), config)
        for at_ms in (100, 140):
            put(log, (b"k", b"v"), at_ms=at_ms)
        roll(log)
        put(log, (b"k", b"v"), at_ms=200)
        assert (cleaner.dirtiness(log, 2, now_ms) > 0) is wanted


def test_records_without_a_time_do_not_wait() -> None:
    """Nothing is known of their age."""
    config = LogConfig(
        cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=50
    )
    log = opened(new_disk(), config)
    put(log, (b"k", b"v"), at_ms=-1)
    roll(log)
    assert cleaner.dirtiness(log, 1, 10_000) == 0.0


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (12, [8, 9, 12]),
        (11, [4, 5, 8, 9, 10, 12]),  # the third segment ends at 12
        (3, [0, 1, 2, 4, 5, 6, 8, 9, 10, 12]),
    ],
)
def test_nothing_is_touched_that_may_be_taken_back(limit: int, kept: list[int]) -> None:
    """The cleaner reads and copies only whole segments below the limit.

    The limit is the high watermark or the last stable offset.
    """
    log = filled(new_disk())
    clean(log, limit=limit)
    assert [row.offset for row in all_rows(log)] == kept


def test_a_tombstone_stays_for_delete_retention_ms() -> None:
    """KIP-534: a tombstone stays for delete.retention.ms from the first pass that met it."""
    log = opened(new_disk())
    put(log, (b"k", b"v"))
    put(log, (b"k", None))
    roll(log)
    clean(log, now_ms=1_000)
    assert [row.offset for row in all_rows(log)] == [1]
    for now_ms, left in ((1_050, [1, 2]), (1_100, [1, 2, 3]), (1_101, [2, 3, 4])):
        put(log, (b"other%d" % now_ms, b"v"))
        roll(log)
        clean(log, now_ms=now_ms)
        assert [row.offset for row in all_rows(log)] == left


def test_a_users_key_may_look_like_a_markers() -> None:
    """KAFKA-14055: markers have keys of their own, and no record of a user replaces them."""
    log = opened(new_disk())
    put(log, (b"a", b"1"), producer=3, transactional=True)
    end(log, 3, commit=True)
    put(log, (b"\x00\x00\x00\x01", b"v"), (b"\x00\x00\x00\x00", b"v"))
    roll(log)
    clean(log)
    assert log.producers.first_unstable(log.end_offset) is None
    log = opened(log.disk, clean=False)  # type: ignore[arg-type]
    assert log.producers.entries[3].transaction_start is None


def test_what_a_producer_is_known_by_stays() -> None:
    """KAFKA-5490: a producer's last batch stays, without records: a retry is a duplicate."""
    disk = new_disk()
    log = opened(disk)
    put(log, (b"k", b"by 7"), producer=7)
    put(log, (b"k", b"later"))
    roll(log)
    clean(log)
    assert [row.offset for row in all_rows(log)] == [1]
    for name in [name for name in disk.list("t-0") if name.endswith(".snapshot")]:
        disk.remove(f"t-0/{name}")
    log = opened(disk, clean=False)
    retried = batch.encode_batch(
        [Record(b"k", b"by 7")], producer_id=7, producer_epoch=0, base_sequence=0
    )
    assert log.append_as_leader(retried, leader_epoch=0, now_ms=0).duplicate


def test_the_log_ends_where_it_ended() -> None:
    """KAFKA-17076: the last batch of the compacted part stays until another batch follows it.

    Otherwise offsets would be used again after the empty active segment is lost.
    """
    disk = new_disk()
    log = opened(disk)
    put(log, (b"k", b"aborted"), producer=3, transactional=True)
    end(log, 3, commit=False)
    put(log, (b"k", b"1"))
    put(log, (b"x", None))
    roll(log)
    for now_ms in (0, 101, 202):
        log.compacted_to(0)
        clean(log, now_ms=now_ms)
    assert [row.offset for row in all_rows(log)] == [2, 3]
    disk.remove(f"t-0/{4:020d}.log")
    assert opened(disk, clean=False).end_offset == 4


@given(st.integers(0, 60), st.sampled_from(["kill", "crash", "torn"]))
@settings(max_examples=120)
def test_an_interrupted_pass_loses_nothing(number: int, kind: str) -> None:
    """A pass that ends at any operation of the disk loses no record that counts."""
    disk = new_disk()
    log = filled(disk)
    expected = latest(committed_rows(log))
    done = 0

    def fails(operation: str, path: str) -> bool:
        nonlocal done
        done += operation != "pread"
        return done > number

    disk.fails = fails
    try:
        clean(log)
    except StorageError:
        assert done > number
    disk.fails = lambda operation, path: False
    if kind != "kill":
        disk.crash(random.Random(number) if kind == "torn" else None)
    log = opened(disk, clean=False)
    assert latest(committed_rows(log)) == expected
    assert log.end_offset == 13
    left = [name for name in disk.list("t-0") if name.endswith((".cleaned", ".swap"))]
    assert left == []
    clean(log)
    assert latest(committed_rows(log)) == expected


def truncate(log: PartitionLog) -> None:
    log.truncate_to(5)


def delete_first(log: PartitionLog) -> None:
    log.advance_start(5)
    log.retain(0, log.end_offset)


def change_policy(log: PartitionLog) -> None:
    log.config = LogConfig(segment_bytes=400)


@pytest.mark.parametrize("change", [truncate, delete_first, change_policy])
def test_a_pass_ends_when_the_log_changes(
    change: Callable[[PartitionLog], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass stops when the log is truncated, loses segments, or changes its policy."""
    monkeypatch.setattr(cleaner, "_PIECE_BYTES", 1)
    steps = len(list(cleaner.clean(filled(new_disk()), 12, 0, MANY)))
    assert steps > 5
    for rest in range(steps):
        log = filled(new_disk())
        running = cleaner.clean(log, 12, 0, MANY)
        for _ in range(rest + 1):
            next(running)
        rewrites = log.rewrites
        change(log)
        expected = latest(committed_rows(log))
        assert list(running) == []
        assert log.rewrites == rewrites
        assert latest(committed_rows(log)) == expected
        log.check()


def test_what_is_cut_off_is_not_compacted_any_more() -> None:
    """KAFKA-3330: records that replace a truncated end are dirty, wherever a pass had come to."""
    log = filled(new_disk())
    clean(log)
    log.truncate_to(9)
    assert log.first_dirty == log.end_offset == 8
    for number in range(3):
        put(log, (b"a", b"again %d" % number))
    roll(log)
    clean(log)
    assert [row.value for row in all_rows(log) if row.key == b"a"] == [b"again 2"]


def test_compressed_batches_stay_compressed() -> None:
    """A batch that loses some of its records keeps the codec that its producer chose."""
    log = opened(new_disk(), LogConfig(cleanup_policy=("compact",)))
    put(log, (b"k", b"v" * 100), (b"j", b"v" * 100), compression=batch.ZSTD)
    put(log, (b"k", b"w"))
    roll(log)
    clean(log)
    (data,) = log.read(0, bytes_max=1 << 20, limit=log.end_offset)
    headers = [header for _, header in batch.batches(data)]
    assert [(h.base_offset, h.last_offset, h.count, h.compression) for h in headers] == [
        (0, 1, 1, batch.ZSTD),
        (2, 2, 1, batch.NONE),
    ]
    assert all(batch.check_crc(data, at, header) for at, header in batch.batches(data))


def test_times_are_found_in_a_compacted_log() -> None:
    """L3: look-ups by timestamp skip batches without records, which have no timestamp any more."""
    log = opened(new_disk())
    put(log, (b"k", b"v"), producer=7, at_ms=500)
    put(log, (b"k", b"v"), at_ms=100)
    put(log, (b"j", b"v"), at_ms=200)
    roll(log)
    clean(log)
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp) == (2, 200)
    earlier = log.offset_for_timestamp(50)
    assert earlier is not None
    assert earlier.offset == 1


def test_the_largest_time_is_that_of_a_record() -> None:
    """A batch that compaction has emptied has no time, also if the log starts in its segment."""
    log = opened(new_disk())
    put(log, (b"a", b"1"), at_ms=5)
    put(log, (b"k", b"1"), producer=1, at_ms=90)
    put(log, (b"k", b"2"), at_ms=40)
    put(log, (b"z", b"v"), at_ms=6)
    roll(log)
    assert clean(log)
    assert [row.offset for row in all_rows(log)] == [0, 2, 3]
    for start in (0, 1):
        log.advance_start(start)
        found = log.offset_of_max_timestamp()
        assert found is not None
        assert (found.offset, found.timestamp) == (2, 40)


def test_names_of_headers_need_not_be_text() -> None:
    """They are copied as they are, like the values of headers."""
    log = opened(new_disk())
    named = batch.encode_batch([Record(b"k", b"v", headers=(("\udcff\udcfe", b"\xff"),))])
    log.append_as_leader(named, leader_epoch=0, now_ms=0)
    put(log, (b"z", b"1"), (b"z", b"2"))
    put(log, (b"z", b"3"))
    roll(log)
    assert clean(log)
    data = b"".join(log.read(0, bytes_max=1 << 20, limit=log.end_offset))
    assert batch.records(data)[0].headers == (("\udcff\udcfe", b"\xff"),)
    assert b"\x04\xff\xfe" in data


def test_a_follower_copies_a_compacted_log() -> None:
    """A follower that fetches a compacted log copies its gaps, and reaches the leader's log end."""
    log = filled(new_disk())
    clean(log)
    copy = opened(new_disk())
    while data := log.read(copy.end_offset, bytes_max=100, limit=log.end_offset):
        copy.append_as_follower(data[0], now_ms=0)
    assert copy.end_offset == log.end_offset
    assert committed_rows(copy) == committed_rows(log)


def test_each_epoch_stays_known_to_a_replica_that_copies_the_log() -> None:
    """The first batch of an epoch stays, without its records, but that of the first epoch.

    A leader without an epoch would name an earlier one to a follower that has it (KIP-279), which
    then truncates what is committed.
    """
    log = opened(new_disk())
    for epoch in range(4):
        for number in range(10):
            data = batch.encode_batch([Record(b"k", b"%d-%d" % (epoch, number), 0)])
            log.append_as_leader(data, leader_epoch=epoch, now_ms=0)
    starts = [entry.start for entry in log.epochs.entries]
    assert len(starts) == 4
    roll(log)
    clean(log)
    headers = [header for segment in log.segments for _, header in segment.headers()]
    kept = [header.base_offset for header in headers if not header.count]
    assert kept == [start for start in starts[1:] if start < headers[-1].base_offset]
    copy = opened(new_disk())
    for segment in log.segments:
        if segment.size:
            copy.append_as_follower(segment.file.pread(0, segment.size), now_ms=0)
    assert copy.epochs.entries == log.epochs.entries[1:]
