"""``retained-as-configured``: retention deletes what the topic's settings do not keep, and no more.

A segment is deleted for one of three reasons: its newest record is older than ``retention.ms``
by the broker's clock (KIP-33), the segments after it have ``retention.bytes`` (KAFKA-70), or the
log starts after it, because clients have deleted its records or the leader's log starts there. When
retention has run, no such reason applies to the first segment, if all of it is committed and, but
for the time, if it is closed.

How old the newest record was is read from the batches themselves, not from the indexes by which the
broker knows it. So a segment is judged only if all of its batches were seen.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from checkers.invariants.step import Changed, Step
from model.snapshot import Batches, DeletedSegment, KeptSegment, ReplicaState
from model.violation import Violation

_NONE: Final = -1


class Retention:
    """Judges each segment once, at the first snapshot after it was deleted."""

    def __init__(self) -> None:
        self._judged: dict[tuple[int, str], tuple[int, int, int]] = {}
        """By replica: its life, its log, and the number of the last segment that was judged."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            if step.is_compacted(change.key):
                continue
            if change.now.deleted:
                yield from self._of_log(step, change)
            if change.now.kept is not None:
                yield from _of_kept(step, change, change.now.kept)

    def _of_log(self, step: Step, change: Changed) -> Iterator[Violation]:
        place, log = (change.broker, change.key), (change.life, change.now.log_number)
        *known, judged = self._judged.get(place, (*log, 0))
        last = judged if tuple(known) == log else 0
        self._judged[place] = (*log, change.now.deleted[-1].number)
        for segment in change.now.deleted:
            newest_ms = _newest_ms(change.now.batches, segment)
            if segment.number <= last or newest_ms is None or _may_go(segment, newest_ms):
                continue
            yield step.violation(
                "retained-as-configured",
                f"broker {change.broker} has deleted a segment that ends at {segment.next}: its"
                f" newest record was {segment.at_ms - newest_ms} ms old (retention.ms ="
                f" {segment.retention_ms}), {segment.bytes_left} bytes were left"
                f" (retention.bytes = {segment.retention_bytes}), and the log started at"
                f" {segment.start}",
                key=change.key,
                offset=segment.base,
                brokers=(change.broker,),
            )


def _of_kept(step: Step, change: Changed, segment: KeptSegment) -> Iterator[Violation]:
    why = _overdue(change.now, segment)
    if why is not None:
        yield step.violation(
            "retained-as-configured",
            f"broker {change.broker} has kept the segment from {segment.base} to {segment.next}, "
            f"although {why}",
            key=change.key,
            offset=segment.base,
            brokers=(change.broker,),
        )


def _overdue(now: ReplicaState, segment: KeptSegment) -> str | None:
    """Return why retention had to delete the first segment, or ``None``."""
    is_empty = segment.base == segment.next
    if is_empty or segment.next > segment.high_watermark or len(now.cuts) != segment.cuts:
        return None
    newest_ms = _newest_ms(now.batches, segment)
    if newest_ms is not None and 0 <= segment.retention_ms < segment.at_ms - newest_ms:
        age_ms = segment.at_ms - newest_ms
        return f"its newest record was {age_ms} ms old (retention.ms = {segment.retention_ms})"
    if segment.is_active:
        return None
    left = segment.log_bytes - segment.bytes
    if 0 <= segment.retention_bytes <= left:
        return f"{left} bytes remain without it (retention.bytes = {segment.retention_bytes})"
    return f"the log starts at {segment.start}" if segment.next <= segment.start else None


def _newest_ms(batches: Batches, segment: DeletedSegment | KeptSegment) -> int | None:
    """Return the largest timestamp of a segment; None: not known, because of a batch or a
    timestamp that is missing."""
    number = bisect_left(batches.all, segment.base, hi=batches.count, key=_base)
    end, newest_ms = segment.base, _NONE
    while number < batches.count and batches.all[number].base == end < segment.next:
        end = batches.all[number].next
        newest_ms = max(newest_ms, batches.all[number].newest_ms)
        number += 1
    return newest_ms if end == segment.next and newest_ms >= 0 else None


def _base(batch: tuple[int, ...]) -> int:
    return batch[0]


def _may_go(segment: DeletedSegment, newest_ms: int) -> bool:
    """Return whether one of the reasons applies."""
    is_surplus = 0 <= segment.retention_bytes <= segment.bytes_left
    is_old = 0 <= segment.retention_ms < segment.at_ms - newest_ms
    return is_surplus or is_old or segment.next <= segment.start
