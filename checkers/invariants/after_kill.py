"""What a broker would have of its logs if it were killed, or lost power, at this moment.

What a broker knows of a log apart from its batches (the ends, leader epochs, producers, aborted
transactions, the largest timestamps) is kept in memory and in files that are written at other
times than the batches. So it can be right in memory and wrong after a start, or outdated in memory
after a truncation and right only after a start.

- ``same-after-kill``: a kill loses nothing that was written, so the log that is loaded from the
  files of a running broker is the log in its memory.
- ``durable-to-recovery-point``: a loss of power loses what was not synced, but nothing below the
  recovery point: what recovery trusts was synced, with its indexes and its name (KAFKA-3968).

A log is judged in the first snapshot after a truncation, retention or a compaction of it, and all
logs are judged at the end. Batches are compared by their sizes. With unclean elections a log can be
truncated to before its start, which is checkpointed later, so no log is judged.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from checkers.invariants.step import Changed, Rules, Step
from model.snapshot import EpochStart, RememberedBatch
from model.violation import Violation


class StoredSegment(NamedTuple):
    """A segment of a log."""

    base: int
    bytes: int
    newest_ms: int
    """The largest timestamp of its records; -1 if it has none."""
    newest_offset: int
    """The last offset of the first batch with that timestamp; -1 if it has none."""


class AbortedTransaction(NamedTuple):
    """An entry of the index of aborted transactions."""

    producer: int
    first: int
    """The offset of its first record."""
    marker: int
    """The offset of its marker."""
    stable: int
    """The last stable offset behind the marker."""


class KnownProducer(NamedTuple):
    """What a log knows of an idempotent producer."""

    epoch: int
    batches: tuple[RememberedBatch, ...]
    open_since: int | None
    """The first offset of its open transaction."""
    coordinator_epoch: int
    """That of its last marker; -1 without any."""


class KnownLog(NamedTuple):
    """What a broker knows of a log; end offsets are exclusive."""

    start: int
    end: int
    recovery_point: int
    """All below is synced."""
    clean_to: int
    """The offset up to which the log was compacted."""
    topic_id: str
    """Empty if it has none."""
    epochs: tuple[EpochStart, ...]
    segments: tuple[StoredSegment, ...]
    aborted: tuple[AbortedTransaction, ...]
    producers: Mapping[int, KnownProducer]
    places: Mapping[int, int]
    """Positions in the files of segments, by offset: those that the broker remembers."""


class Known(NamedTuple):
    """A log as a broker has it in memory, and as it would load it, or why it would not."""

    held: KnownLog
    killed: KnownLog | str
    """After a kill."""
    unpowered: KnownLog | str
    """After a loss of power that takes all that was not synced."""


Reload = Callable[[int, str], Known | None]
"""Loads a log of a broker (its id) from a copy of the broker's files, by the log's partition.

None: the log is offline, or the broker has none by now.
"""

NO_END: Final = 1 << 63


class AfterKill:
    """Compares logs with what would be loaded from their files."""

    def __init__(self, rules: Rules, reload: Reload) -> None:
        self._reload = reload
        self._forgets = rules.forgets_producers or not rules.steady_clocks

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        if step.is_last:
            for number, broker in step.now.brokers.items():
                for key, replica in broker.replicas.items():
                    if replica.role != "offline" and not step.is_deleted(key):
                        yield from self._judge(step, number, key)
            return
        for change in step.changed:
            if _is_other(step, change):
                yield from self._judge(step, change.broker, change.key)

    def _judge(self, step: Step, broker: int, key: str) -> Iterator[Violation]:
        known = self._reload(broker, key)
        if known is None:
            return
        is_compacted = step.is_compacted(key)
        for name, why in (
            (
                "same-after-kill",
                difference(known, is_compacted=is_compacted, forgets=self._forgets),
            ),
            ("durable-to-recovery-point", loss(known, is_compacted=is_compacted)),
        ):
            if why is not None:
                yield step.violation(
                    name,
                    f"on broker {broker} {why}",
                    key=key,
                    offset=known.held.end,
                    brokers=(broker,),
                )


def _is_other(step: Step, change: Changed) -> bool:
    """Return whether batches were removed from the log since the last snapshot."""
    if change.before is None or change.before.log_number != change.now.log_number:
        return False
    if change.before.cuts != change.now.cuts or change.before.deleted != change.now.deleted:
        return True
    was = None if step.before is None else step.before.brokers.get(change.broker)
    now = step.now.brokers[change.broker].compactions.get(change.key)
    return was is not None and now is not None and was.compactions.get(change.key) != now


def difference(known: Known, *, is_compacted: bool, forgets: bool) -> str | None:
    """Return what of a log would be another after a kill; None: nothing that must stay.

    ``forgets``: producers may be removed because they were silent. The start of a log, its recovery
    point and the offset up to which it was compacted are checkpointed now and then, so an earlier
    one may be loaded; with an earlier start, older epochs are found. An epoch that has no records
    yet is not restored.
    """
    held, loaded = known.held, known.killed
    if isinstance(loaded, str):
        return f"the log would not be loaded after a kill: {loaded}"
    for name, now, later in (
        ("start", held.start, loaded.start),
        ("recovery point", held.recovery_point, loaded.recovery_point),
        ("offset up to which it is compacted", held.clean_to, loaded.clean_to),
    ):
        if later > now:
            return f"the log's {name} is {now}, and would be {later} after a kill"
    if (held.end, held.topic_id) != (loaded.end, loaded.topic_id):
        return (
            f"the log ends at {held.end} and has the topic id {held.topic_id or 'none'}, and would "
            f"end at {loaded.end} with {loaded.topic_id or 'none'} after a kill"
        )
    why = _other_rows(
        _rows(held, held.start, NO_END, is_compacted=is_compacted),
        _rows(loaded, held.start, NO_END, is_compacted=is_compacted),
    )
    if why is None:
        why = _other("the position of offset", held.places, loaded.places)
    if why is None and not is_compacted and not forgets:
        why = _other("the state of producer", held.producers, loaded.producers)
    return None if why is None else f"{why} after a kill"


def loss(known: Known, *, is_compacted: bool) -> str | None:
    """Return what of a log below its recovery point would be lost with the power; None: nothing.

    The log may end at the recovery point, in the middle of a segment. The epochs of a compacted log
    may be found later in it: if the file that has them is damaged, they are read from the batches
    that compaction has left.
    """
    held, loaded = known.held, known.unpowered
    if isinstance(loaded, str):
        return f"the log would not be loaded after a loss of power: {loaded}"
    if loaded.end < held.recovery_point:
        return (
            f"the log would end at {loaded.end} after a loss of power, before its recovery point "
            f"{held.recovery_point}"
        )
    end = held.recovery_point
    kept = _rows(held, held.start, end, is_compacted=is_compacted)
    found: _Rows = [
        (name, {key: row for key, row in rows.items() if key in wanted})
        for (name, rows), (_, wanted) in zip(
            _rows(loaded, held.start, end, is_compacted=is_compacted), kept, strict=True
        )
    ]
    of_epochs = int(is_compacted)
    why = _other_rows(kept[of_epochs:], found[of_epochs:])
    return None if why is None else f"{why} after a loss of power"


_Rows = list[tuple[str, Mapping[int, object]]]
"""Parts of a log, each with its rows by a key."""


def _rows(log: KnownLog, start: int, end: int, *, is_compacted: bool) -> _Rows:
    """Return what is known of the log between these offsets, apart from its producers."""
    epochs: dict[int, object] = {
        entry.epoch: max(entry.start, start)
        for number, entry in enumerate(log.epochs)
        if max(entry.start, start) < min(end, log.end)
        and (number + 1 == len(log.epochs) or log.epochs[number + 1].start > start)
    }
    closed = [
        (segment, log.segments[number + 1].base if number + 1 < len(log.segments) else log.end)
        for number, segment in enumerate(log.segments)
    ]
    sizes: dict[int, object] = {
        segment.base: segment.bytes for segment, next_ in closed if start < next_ <= end
    }
    rows: _Rows = [("the start of epoch", epochs), ("the size of the segment at", sizes)]
    if not is_compacted:
        times: dict[int, object] = {
            segment.base: (segment.newest_ms, segment.newest_offset)
            for segment, next_ in closed
            if start < next_ <= end
        }
        aborted: dict[int, tuple[AbortedTransaction, ...]] = {}
        for each in log.aborted:
            if start <= each.marker < end:
                aborted[each.marker] = (*aborted.get(each.marker, ()), each)
        rows += [
            ("the largest timestamp of the segment at", times),
            ("the aborted transactions with the marker at", aborted),
        ]
    return rows


def _other_rows(held: _Rows, loaded: _Rows) -> str | None:
    found = (
        _other(name, rows, others) for (name, rows), (_, others) in zip(held, loaded, strict=True)
    )
    return next((why for why in found if why is not None), None)


def _other(name: str, held: Mapping[int, object], loaded: Mapping[int, object]) -> str | None:
    """Return the first row that differs."""
    for key in sorted(held.keys() | loaded.keys()):
        one, other = held.get(key), loaded.get(key)
        if one != other:
            return f"{name} {key} is {_said(one)}, and would be {_said(other)}"
    return None


def _said(what: object) -> str:
    return "not known" if what is None else str(what)
