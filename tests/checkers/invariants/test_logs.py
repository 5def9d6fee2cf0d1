from typing import Any

import msgspec
import pytest

from model.snapshot import Batch, ClusterState, Compaction, EpochStart, ReplicaState
from tests.checkers.invariants.streams import (
    KEY,
    broker,
    cluster,
    log,
    remembered,
    replica,
    state,
    violated,
)


def alone(*held: ReplicaState, **other: Any) -> list[str]:
    """Violations in snapshots of broker 2, which is in no ISR."""
    return violated(*(cluster(state(isr=(1,)), {2: one}, **other) for one in held))


@pytest.mark.parametrize(
    ("marks", "role", "names"),
    [
        ((0, 0, 0), "follower", []),
        ((1, 2, 3), "leader", []),
        ((2, 1, 3), "follower", ["offsets-in-order"]),
        ((0, 4, 3), "stopped", ["offsets-in-order"]),
        ((2, 0, 3), "untold", []),
        ((4, 0, 3), "untold", ["offsets-in-order"]),
    ],
)
def test_start_watermark_and_end_are_in_order(
    marks: tuple[int, int, int], role: str, names: list[str]
) -> None:
    """Log start, high watermark and log end are in order (L1); a replica without an order has no
    watermark."""
    start, mark, end = marks
    batches = [Batch(0, end, 0, 1)] if end else []
    held = replica(batches, mark, log_start=start, role=role, epochs=_from(start, end))
    found = violated(cluster(state(2, isr=(2,)), {2: held}))
    assert [name for name in found if name == "offsets-in-order"] == names


def _from(start: int, end: int) -> tuple[EpochStart, ...]:
    return (EpochStart(0, start),) if start < end else ()


@pytest.mark.parametrize(
    ("later", "names"),
    [
        ({"log_start": 2}, []),
        ({"log_start": 3}, []),
        ({"log_start": 1}, ["log-start-monotone"]),
        ({"log_start": 1, "cuts": (1,)}, []),
        ({"log_start": 1, "log_number": 1}, []),
        ({"log_start": 1, "role": "offline"}, []),
    ],
)
def test_the_start_of_a_log_does_not_go_back(later: dict[str, Any], names: list[str]) -> None:
    """Only truncations and new logs may begin earlier."""
    batches = log(0, 0, 0, 0)
    first = replica(batches, 4, log_start=2, epochs=_from(2, 4))
    second = replica(batches, 4, epochs=_from(later["log_start"], 4), **later)
    found = alone(first, second)
    assert [name for name in found if name == "log-start-monotone"] == names


def test_a_broker_that_has_restarted_is_not_compared_with_before() -> None:
    """A log may be another one, whose replica was removed while the broker was down."""
    batches = log(0, 0, 0, 0)
    held = [replica(batches, 4, log_start=at, epochs=_from(at, 4)) for at in (2, 1)]
    lives = [
        cluster(state(isr=(1,)), {2: broker(one, life=life)}) for life, one in enumerate(held, 1)
    ]
    assert violated(*lives) == []


@pytest.mark.parametrize(
    ("batches", "end", "names"),
    [
        (log(0, 0, 1), 3, []),
        (log(2, 1), 2, ["log-in-order"]),
        ([Batch(0, 2, 0, 1), Batch(1, 3, 0, 2)], 3, ["log-in-order"]),
        ([Batch(0, 2, 0, 1), Batch(4, 5, 0, 2)], 5, []),  # compaction leaves holes
        (log(0, 0), 3, ["log-in-order"]),
    ],
)
def test_offsets_and_epochs_rise_along_a_log(
    batches: list[Batch], end: int, names: list[str]
) -> None:
    """Offsets and leader epochs rise along a log, up to the log's end."""
    found = alone(replica(batches, log_end=end))
    assert [name for name in found if name == "log-in-order"] == names


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ([(0, 0), (1, 2)], []),
        ([(0, 0), (1, 2), (3, 3)], []),  # a leader that has written nothing
        ([(0, 0)], ["epoch-cache"]),
        ([(0, 0), (1, 1)], ["epoch-cache"]),
        ([(1, 2)], ["epoch-cache"]),
        ([(0, 0), (1, 2), (1, 3)], ["epoch-cache"]),
        ([(0, 0), (1, 2), (3, 4)], ["epoch-cache"]),
        ([], ["epoch-cache"]),
    ],
)
def test_the_epoch_cache_agrees_with_the_log(
    entries: list[tuple[int, int]], names: list[str]
) -> None:
    """The epoch cache agrees with a log of epochs 0, 0, 1 (E4); deleted records need no entry."""
    epochs = tuple(EpochStart(*entry) for entry in entries)
    assert alone(replica(log(0, 0, 1), epochs=epochs)) == names


def test_the_cache_begins_with_the_log() -> None:
    """The epoch cache may begin with the log; a batch across the log start counts from the log
    start."""
    batches = [Batch(0, 4, 0, 1), Batch(4, 8, 1, 2)]
    epochs = (EpochStart(0, 2), EpochStart(1, 4))
    assert alone(replica(batches, hw=2, log_start=2, epochs=epochs)) == []
    assert alone(replica(batches, hw=5, log_start=5, epochs=(EpochStart(1, 5),))) == []


def test_batches_that_were_checked_are_checked_again_with_another_cache() -> None:
    """Old batches are checked again when the epoch cache changes."""
    first = replica(log(0, 0, 1))
    later = msgspec.structs.replace(first, epochs=first.epochs[1:])
    assert alone(first, later) == ["epoch-cache"]


SENT = [Batch(at, at + 1, 0, at, producer=7, producer_epoch=0, sequence=at) for at in range(7)]
LAST = [(at, at) for at in range(2, 7)]


@pytest.mark.parametrize(
    ("producers", "names"),
    [
        (None, []),
        ({7: remembered(0, *LAST)}, []),
        ({}, ["producer-state"]),
        ({7: remembered(0, *LAST[:-1])}, ["producer-state"]),
        ({7: remembered(1, *LAST)}, ["producer-state"]),
        ({7: remembered(0, *LAST), 8: remembered(0, (0, 0))}, ["producer-state"]),
        ({7: remembered(0, (1, 1), *LAST)}, ["producer-state"]),
    ],
)
def test_producers_are_what_the_log_tells(producers: Any, names: list[str]) -> None:
    """The producer state is that of a replay (P3): of seven batches of producer 7, five are
    remembered."""
    assert alone(replica(SENT, producers=producers)) == names


def marker(at: int, epoch: int) -> Batch:
    return Batch(
        *(at, at + 1, 0, at),
        producer=7,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


@pytest.mark.parametrize(
    ("batches", "producers", "names"),
    [
        ([*SENT, marker(7, 0)], {7: remembered(0, *LAST)}, []),
        ([*SENT, marker(7, 0)], {7: remembered(0, *LAST[1:], (2**31 - 1, 7))}, ["producer-state"]),
        ([*SENT, marker(7, 1)], {7: remembered(1)}, []),
        ([*SENT, marker(7, 1)], {7: remembered(0, *LAST)}, ["producer-state"]),
        ([*SENT, marker(7, 1)], {7: remembered(1, *LAST)}, ["producer-state"]),
        ([marker(0, 2)], {7: remembered(2)}, []),
        ([marker(0, 2)], {}, ["producer-state"]),
    ],
)
def test_a_marker_has_an_epoch_and_no_sequence(
    batches: list[Batch], producers: Any, names: list[str]
) -> None:
    """A transaction marker is not remembered as a batch; in a new epoch it removes the former
    batches."""
    assert alone(replica(batches, producers=producers)) == names


def test_a_log_that_begins_with_a_marker_tells_its_epoch_alone() -> None:
    """A log that begins with a marker shows only its epoch; deleted batches of it may be
    remembered."""
    start: dict[str, Any] = {"hw": 7, "log_start": 7, "epochs": (EpochStart(0, 7),)}
    for known, names in (
        (remembered(0, *LAST), []),
        (remembered(0), []),
        (remembered(1), ["producer-state"]),
    ):
        assert alone(replica([marker(7, 0)], **start, producers={7: known})) == names


def test_of_a_log_without_its_beginning_more_may_be_remembered() -> None:
    """If the beginning of a log is deleted, more may be remembered than the rest shows
    (KIP-360)."""
    later = SENT[4:]
    start: dict[str, Any] = {"hw": 4, "log_start": 4, "epochs": (EpochStart(0, 4),)}
    known = {7: remembered(0, *LAST), 8: remembered(3, (9, 1))}
    assert alone(replica(later, **start, producers=known)) == []
    lacking = {7: remembered(0, *LAST[:-1])}
    assert alone(replica(later, **start, producers=lacking)) == ["producer-state"]


def test_a_producer_may_be_forgotten_once_it_was_silent_long_enough() -> None:
    """A producer that was silent for long enough may be forgotten, but not remembered wrongly."""
    week = {"time_ns": 7 * 86_400_000_000_000}
    assert alone(replica(SENT, producers={}), **week) == []
    assert alone(replica(SENT, producers={7: remembered(1)}), **week) == ["producer-state"]
    back = {7: remembered(0, *LAST[-2:])}
    assert alone(replica(SENT, producers=back), **week) == [], "it was forgotten, and has come back"
    assert alone(replica(SENT, producers=back)) == ["producer-state"], "too early"
    assert alone(replica(SENT, producers={7: remembered(0, *LAST[:2])}), **week) == [
        "producer-state"
    ]


IN_TRANSACTION = [batch._replace(is_transactional=True) for batch in SENT]
WEEK: dict[str, Any] = {"time_ns": 7 * 86_400_000_000_000}


@pytest.mark.parametrize(
    ("batches", "open_since", "names"),
    [
        (IN_TRANSACTION, 0, []),
        (IN_TRANSACTION, None, ["producer-state"]),
        (IN_TRANSACTION, 1, ["producer-state"]),
        (SENT, 0, ["producer-state"]),
        ([*SENT[:3], *IN_TRANSACTION[3:]], 3, []),
        ([*IN_TRANSACTION, marker(7, 0)], None, []),
        ([*IN_TRANSACTION, marker(7, 0)], 0, ["producer-state"]),
    ],
)
def test_where_an_open_transaction_begins_is_remembered(
    batches: list[Batch], open_since: int | None, names: list[str]
) -> None:
    """The start of an open transaction is remembered, and that of no other one (KIP-98)."""
    known = {7: remembered(0, *LAST)._replace(open_since=open_since)}
    assert alone(replica(batches, producers=known)) == names
    assert alone(replica(batches, producers=known), **WEEK) == names


def test_a_producer_is_not_forgotten_while_its_transaction_is_open() -> None:
    """However long a producer was silent, it is remembered until its transaction ends (KIP-98)."""
    assert alone(replica(IN_TRANSACTION, producers={}), **WEEK) == ["producer-state"]
    assert alone(replica([*IN_TRANSACTION, marker(7, 0)], producers={}), **WEEK) == []


@pytest.mark.parametrize(
    ("batches", "names"),
    [
        ([*SENT, marker(7, 0), marker(8, 0)], []),
        ([*SENT, marker(7, 0)], ["producer-state"]),
        (SENT, ["producer-state"]),
        ([*SENT, marker(7, 0), SENT[6]._replace(base=8, next=9, sequence=7)], ["producer-state"]),
    ],
)
def test_a_repeated_marker_may_be_all_that_is_remembered(
    batches: list[Batch], names: list[str]
) -> None:
    """A coordinator repeats a marker whose acknowledgement was lost; the producer may be forgotten
    by then."""
    assert alone(replica(batches, producers={7: remembered(0)}), **WEEK) == names
    assert alone(replica(batches, producers={7: remembered(0)})) == ["producer-state"]


@pytest.mark.parametrize(
    ("open_since", "names"),
    [(0, []), (4, []), (5, ["producer-state"]), (None, ["producer-state"])],
)
def test_a_transaction_may_begin_before_the_log(open_since: int | None, names: list[str]) -> None:
    """If the beginning of a log is deleted, its transaction may have begun there."""
    start: dict[str, Any] = {"hw": 4, "log_start": 4, "epochs": (EpochStart(0, 4),)}
    known = {7: remembered(0, *LAST)._replace(open_since=open_since)}
    assert alone(replica(IN_TRANSACTION[4:], **start, producers=known)) == names


@pytest.mark.parametrize(("batches", "start"), [(SENT[:3], 7), ([*SENT[:3], *SENT[5:]], 5)])
def test_producers_of_batches_that_no_snapshot_has_shown_are_not_judged(
    batches: list[Batch], start: int
) -> None:
    """Batches may be deleted before a snapshot shows them; what they left is remembered."""
    epochs = (EpochStart(0, start),) if start < 7 else ()
    held: dict[str, Any] = {"hw": 7, "log_start": start, "log_end": 7, "epochs": epochs}
    assert alone(replica(batches, **held, producers={7: remembered(0, *LAST)})) == []
    assert alone(replica(batches, **held, producers={7: remembered(1)})) == []


def test_a_new_epoch_of_a_producer_begins_anew() -> None:
    """A new producer epoch starts with no batches, and sequence numbers wrap at 2^31."""
    bumped = [*SENT, Batch(7, 9, 0, 9, producer=7, producer_epoch=1, sequence=2**31 - 1)]
    held = remembered(1)._replace(batches=(remembered(1, (0, 8)).batches[0]._replace(records=2),))
    assert alone(replica(bumped, producers={7: held})) == []


def test_another_life_is_folded_anew() -> None:
    """After a restart, a replica's log is replayed from its beginning."""
    first = cluster(state(isr=(1,)), {2: replica(SENT, producers={7: remembered(0, *LAST)})})
    short = replica(SENT[:1], producers={7: remembered(0, (0, 0))})
    assert violated(first, cluster(state(isr=(1,)), {2: broker(short, life=2)})) == []


GONE = {8: remembered(3, (9, 1))}
"""A producer whose records are all deleted."""
LATER: dict[str, Any] = {"hw": 4, "log_start": 4, "epochs": (EpochStart(0, 4),)}


@pytest.mark.parametrize(
    ("life", "then", "names"),
    [
        (1, {}, ["producer-state"]),
        (2, {}, ["producer-state"]),  # no other check would find it
        (2, {"producers": {7: remembered(0, *LAST), **GONE}}, []),
        (1, {"cuts": (4,)}, []),
        (2, {"cuts": (4,)}, []),  # its log begins again
        (2, {"log_start": 1, "epochs": (EpochStart(0, 1),)}, []),  # its records are not deleted
    ],
)
def test_whose_records_are_deleted_is_not_forgotten(
    life: int, then: dict[str, Any], names: list[str]
) -> None:
    """A producer whose records are deleted is not forgotten, even by a restart, unless the log was
    cut."""
    known = {7: remembered(0, *LAST), **GONE}
    first = replica(SENT[4:], **LATER, producers=known)
    next_ = replica(SENT[4:], **{**LATER, "producers": {7: remembered(0, *LAST)}, **then})
    isr = state(isr=(1,))
    stream = cluster(isr, {2: first}), cluster(isr, {2: broker(next_, life=life)})
    assert violated(*stream) == names


def test_a_cut_is_not_forgotten_when_the_broker_is_started_again() -> None:
    """A truncation before a restart excuses forgotten producers, even if no snapshot has had
    producers in between."""
    first = replica(SENT[4:], **LATER, producers={7: remembered(0, *LAST), **GONE})
    cut = replica(SENT[4:], **LATER, cuts=(4,))
    again = replica(SENT[4:], **LATER, producers={7: remembered(0, *LAST)})
    isr = state(isr=(1,))
    stream = [cluster(isr, {2: held}) for held in (first, cut, broker(again, life=2))]
    assert violated(*stream) == []


def test_a_replica_that_is_made_anew_knows_nobody() -> None:
    """A replica that is created again remembers no producers, even if its broker did not
    restart."""
    first = replica(SENT[4:], **LATER, producers={7: remembered(0, *LAST), **GONE})
    again = replica(SENT[4:], **LATER, producers={7: remembered(0, *LAST)})
    isr = state(isr=(1,))
    stream = [cluster(isr, {2: broker(held)}) for held in (first, None, again)]
    assert violated(*stream) == []


@pytest.mark.parametrize(
    ("before", "now", "life", "names"),
    [
        (Compaction(1, True), Compaction(2, True), 1, []),
        (Compaction(1, True), Compaction(1, False), 1, []),
        (Compaction(1, True), Compaction(2, False), 1, []),  # it had not heard of the change
        (Compaction(1, False), Compaction(2, False), 1, ["compaction-as-configured"]),
        (None, Compaction(1, False), 1, ["compaction-as-configured"]),
        (Compaction(2, False), Compaction(1, False), 1, []),  # another log of the same name
        (None, Compaction(1, False), 2, []),  # no snapshot shows when
        (Compaction(1, True, 50), Compaction(2, True, 50, 50), 1, []),
        (Compaction(1, True, 50), Compaction(2, True, 50, 49), 1, ["compaction-as-configured"]),
        (Compaction(1, True, 0), Compaction(2, True, 50, 49), 1, []),  # it has just been changed
        (Compaction(1, True, 50), Compaction(1, True, 50, 49), 1, []),
    ],
)
def test_what_is_not_compacted_is_not_rewritten(
    before: Compaction | None, now: Compaction, life: int, names: list[str]
) -> None:
    """Segments are not replaced if ``compact`` is off, or the lag too long, in both snapshots."""
    first = broker(None, compactions={KEY: before} if before else {})
    then = broker(None, life=life, compactions={KEY: now})
    assert violated(cluster(state(), {2: first}), cluster(state(), {2: then})) == names


def test_compaction_may_remove_the_end_of_a_log_and_not_its_order() -> None:
    """The records of a compacted log keep their offsets and epochs, and not all of them stay."""
    compacted = {"t-0": None}
    ended = replica(log(0, 0, 1)[:2], log_end=3, epochs=(EpochStart(0, 0), EpochStart(1, 2)))
    assert violated(cluster(state(), {2: ended})) == ["log-in-order"]
    assert violated(cluster(state(), {2: ended}, compacted=compacted)) == []
    swapped = replica(log(0, 1, 0), epochs=(EpochStart(0, 0), EpochStart(1, 1)))
    assert "log-in-order" in violated(cluster(state(), {2: swapped}, compacted=compacted))


def test_a_compacted_log_does_not_show_what_is_remembered_of_producers() -> None:
    """Its producers may have no record any more."""
    known = {7: remembered(0, (0, 0))}
    held = replica(log(0, 0), producers=known)
    assert violated(cluster(state(), {2: held})) == ["producer-state"]
    assert violated(cluster(state(), {2: held}, compacted={"t-0": None})) == []


@pytest.mark.parametrize(
    ("before", "now", "passes", "names"),
    [
        ([-1, -1], [50, 60], 1, []),  # the first pass sets it
        ([50, 60], [50, 60], 1, []),
        ([50, 60], [60], 1, []),  # the other batch is gone
        ([50, -1], [50, 70], 1, []),
        ([50, 60], [50, 61], 1, ["compaction-as-configured"]),
        ([50, 60], [50, 61], 0, []),  # the log was not compacted
    ],
)
def test_a_pass_does_not_postpone_the_removal_of_tombstones(
    before: list[int], now: list[int], passes: int, names: list[str]
) -> None:
    """The time is that of the first pass that found the tombstone to be the last of its key."""

    def at(horizons: list[int], done: int, **other: Any) -> ClusterState:
        first = 2 - len(horizons)
        batches = [
            Batch(offset, offset + 1, 0, offset, horizon_ms=horizon)
            for offset, horizon in enumerate(horizons, first)
        ]
        epochs = (EpochStart(0, first),)
        held = replica(batches, hw=2, log_start=first, epochs=epochs, **other)
        found = broker(held, compactions={KEY: Compaction(done, True)})
        return cluster(state(), {2: found}, compacted={KEY: None})

    assert violated(at(before, 3), at(now, 3 + passes)) == names
    assert violated(at(before, 3), at(now, 3 + passes, log_number=1)) == []
