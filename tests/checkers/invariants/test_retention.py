from typing import Any

import pytest

from model.snapshot import Batch, DeletedSegment, EpochStart, KeptSegment, ReplicaState
from tests.checkers.invariants.streams import KEY, broker, cluster, log, replica, state, violated

NAME = "retained-as-configured"
LOG = [batch._replace(newest_ms=1000 + 10 * batch.base) for batch in log(0, 0, 0, 0)]
"""Four batches of one record each; the newest of the first two has the time 1010."""
SEGMENT = DeletedSegment(1, 0, 2, 0, 500, 2000)


def held(*deleted: DeletedSegment, batches: list[Batch] = LOG, **other: Any) -> ReplicaState:
    """A replica whose log begins after its first two records."""
    start: dict[str, Any] = {"hw": 4, "log_start": 2, "epochs": (EpochStart(0, 2),)}
    return replica(batches, **start | other, deleted=deleted)


def judged(*deleted: DeletedSegment, **other: Any) -> list[str]:
    """What is found in one snapshot."""
    return violated(cluster(state(isr=(1,)), {2: held(*deleted, **other)}))


@pytest.mark.parametrize(
    ("segment", "names"),
    [
        (SEGMENT, [NAME]),  # neither size nor time is limited
        (SEGMENT._replace(start=2), []),  # the log starts after it
        (SEGMENT._replace(start=1), [NAME]),
        (SEGMENT._replace(retention_bytes=500), []),
        (SEGMENT._replace(retention_bytes=501), [NAME]),
        (SEGMENT._replace(retention_ms=989), []),
        (SEGMENT._replace(retention_ms=990), [NAME]),  # exactly as old as that
        (SEGMENT._replace(retention_ms=990, retention_bytes=0), []),
    ],
)
def test_a_segment_is_deleted_for_a_reason(segment: DeletedSegment, names: list[str]) -> None:
    """A segment is deleted if it is old, or surplus, or before the start of the log."""
    assert judged(segment) == names


@pytest.mark.parametrize(
    "batches",
    [
        LOG[2:],  # deleted before a snapshot has shown them
        LOG[1:],
        [LOG[0], *LOG[2:]],
        [Batch(0, 3, 0, 9, newest_ms=1000), LOG[3]],  # its end is not that of a batch
        [batch._replace(newest_ms=-1) for batch in LOG],
    ],
)
def test_what_is_not_known_is_not_judged(batches: list[Batch]) -> None:
    """Without all batches of a segment, or without timestamps, its age is not known."""
    assert judged(SEGMENT, batches=batches) == []


def test_segments_of_compacted_logs_are_not_judged() -> None:
    """The batches that were read of them need not be those that were deleted."""
    now = cluster(state(isr=(1,)), {2: held(SEGMENT)}, compacted={KEY: None})
    assert violated(now) == []


def test_each_segment_is_judged_once() -> None:
    """At the first snapshot that shows it; later ones of the log, and other logs, are judged,
    too."""
    right = SEGMENT._replace(retention_ms=0)
    wrong = DeletedSegment(2, 2, 3, 2, 500, 2000)
    isr = state(isr=(1,))
    later = held(right, wrong, log_start=3, epochs=(EpochStart(0, 3),))
    first = cluster(isr, {2: held(right)})
    assert violated(first, cluster(isr, {2: later})) == [NAME]
    same = held(SEGMENT, cuts=(4,))  # another value under a number that was judged
    assert violated(first, cluster(isr, {2: same})) == []
    assert violated(first, cluster(isr, {2: broker(held(SEGMENT), life=2)})) == [NAME]
    assert violated(first, cluster(isr, {2: held(SEGMENT, log_number=1)})) == [NAME]


KEPT = KeptSegment(0, 2, 100, False, 0, 500, 2, 2000)
"""A closed segment with a newest time of 1010; all of it is committed."""


def left(segment: KeptSegment, **other: Any) -> list[str]:
    """What is found of a segment that retention has left."""
    start: dict[str, Any] = {"log_start": 0, "epochs": (EpochStart(0, 0),)}
    return judged(kept=segment, **start | other)


@pytest.mark.parametrize(
    ("segment", "names"),
    [
        (KEPT, []),
        (KEPT._replace(retention_ms=990), []),
        (KEPT._replace(retention_ms=989), [NAME]),
        (KEPT._replace(retention_ms=989, is_active=True), [NAME]),
        (KEPT._replace(retention_ms=989, high_watermark=1), []),
        (KEPT._replace(retention_ms=989, next=0), []),
        (KEPT._replace(retention_ms=989, cuts=1), []),  # it had other records then
        (KEPT._replace(retention_bytes=400), [NAME]),
        (KEPT._replace(retention_bytes=401), []),
        (KEPT._replace(retention_bytes=400, is_active=True), []),
        (KEPT._replace(start=2), [NAME]),
        (KEPT._replace(start=1), []),
        (KEPT._replace(start=2, is_active=True), []),
    ],
)
def test_a_segment_is_kept_without_a_reason_to_delete_it(
    segment: KeptSegment, names: list[str]
) -> None:
    """It is not old, not surplus, and not before the start of the log, or not committed yet."""
    assert left(segment) == names


def test_a_kept_segment_of_a_compacted_log_is_not_judged() -> None:
    """Its records may be older ones than those that were read."""
    now = held(log_start=0, epochs=(EpochStart(0, 0),), kept=KEPT._replace(retention_ms=0))
    assert violated(cluster(state(isr=(1,)), {2: now})) == [NAME]
    assert violated(cluster(state(isr=(1,)), {2: now}, compacted={KEY: None})) == []
