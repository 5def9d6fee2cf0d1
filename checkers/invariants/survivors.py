"""``compacted-to-latest``: compaction leaves the last record of each key, and only that one.

The batches of a compacted log differ between replicas, since each is compacted at its own time, but
what must survive is the same on all of them: of each key, the last record that is committed, unless
it is a tombstone. Records of a transaction count once its marker commits it. The checker notes what
leaders commit, in the order of offsets, and looks for it in each log that was compacted since, and
in that of each new leader.

A log is compared only if the checker knows all that was committed below the log's own watermark: a
compaction may have used it. What a leader committed while no snapshot was taken may have been
compacted since, so everything is forgotten then.

Where a log says that it is compacted, each key has one record. If an older one stayed, it would be
the last one again once a tombstone is removed.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Final

from checkers.invariants.committed import Committed
from checkers.invariants.step import Changed, Step
from model.snapshot import KeyedRecord, ReplicaState
from model.violation import Violation

UNSEEN_NS: Final = 1_000_000_000
"""For how long a partition may be without a leader in the snapshots."""
_offset = attrgetter("offset")


class _Transactions:
    """Resolves the transactions of a log, from its records in the order of offsets."""

    def __init__(self) -> None:
        self._open: dict[int, list[KeyedRecord]] = {}
        """The records of open transactions, by producer."""

    def committed(self, record: KeyedRecord) -> Sequence[KeyedRecord]:
        """Return the records that the next record of the log commits.

        It is the record itself outside of transactions, and all of its transaction for a marker.
        """
        if record.commits is not None:
            of_transaction = self._open.pop(record.producer, [])
            return of_transaction if record.commits else ()
        if record.producer >= 0:
            self._open.setdefault(record.producer, []).append(record)
            return ()
        return (record,)


class _Line:
    """What must survive in one partition."""

    def __init__(self) -> None:
        self.end = 0
        """The highest watermark of any leader, up to which its records were read."""
        self.latest: dict[bytes, KeyedRecord] = {}
        """The last committed record of each key."""
        self.judged: dict[int, Sequence[KeyedRecord]] = {}
        """By broker, the log that was compared last."""
        self.counted: dict[int, tuple[Sequence[KeyedRecord], int]] = {}
        """By broker, the log whose compacted part was compared last, and the end of that part."""
        self.waiting: dict[int, Changed] = {}
        """By broker, a log that is compared once enough is known."""
        self._transactions = _Transactions()
        self._seen_ns = 0
        self._epoch = -1
        """The latest epoch of a leader."""
        self._read: tuple[Sequence[KeyedRecord], int] = ((), 0)

    def extend(self, leader: ReplicaState, records: Sequence[KeyedRecord], now_ns: int) -> None:
        """Note what this leader has committed beyond what is known."""
        is_unseen = now_ns - self._seen_ns > UNSEEN_NS
        if leader.leader_epoch >= self._epoch:
            self._epoch, self._seen_ns = leader.leader_epoch, now_ns
        if leader.high_watermark < self.end:
            return
        if records is not self._read[0]:
            if is_unseen and leader.high_watermark > self.end:
                self._forget(leader.high_watermark)
            self._read = records, bisect_left(records, self.end, key=_offset)
        number = self._read[1]
        while number < len(records) and records[number].offset < leader.high_watermark:
            for each in self._transactions.committed(records[number]):
                self._put(each)
            number += 1
        self._read = records, number
        self.end = leader.high_watermark

    def _forget(self, end: int) -> None:
        self.latest, self._transactions, self.end = {}, _Transactions(), end

    def _put(self, record: KeyedRecord) -> None:
        known = self.latest.get(record.key)
        if known is None or known.offset < record.offset:
            self.latest[record.key] = record


class Survivors:
    """Compares compacted logs with what their leaders have committed."""

    def __init__(self, committed: Committed) -> None:
        """``committed`` knows which partitions may have lost something with their disks."""
        self._committed = committed
        self._damaged: dict[int, None] = {}
        """Brokers whose disks have ever lost something."""
        self._lines: dict[str, _Line] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        self._damaged.update(dict.fromkeys(step.damaged()))
        keyed = [change for change in step.changed if change.now.records is not None]
        for change in sorted(keyed, key=lambda change: change.now.leader_epoch):
            if change.now.role == "leader" and change.now.records is not None:
                line = self._lines.setdefault(change.key, _Line())
                line.extend(change.now, change.now.records, step.now.time_ns)
        for change in keyed:
            line = self._lines.setdefault(change.key, _Line())
            line.waiting[change.broker] = change
            yield from self._count(step, line, change)
        for key in dict.fromkeys(change.key for change in keyed):
            line = self._lines[key]
            for change in list(line.waiting.values()):
                if line.end >= change.now.high_watermark:
                    del line.waiting[change.broker]
                    yield from self._judge(step, line, change)

    def _count(self, step: Step, line: _Line, change: Changed) -> Iterator[Violation]:
        records, end = change.now.records, change.now.compacted_to
        counted = line.counted.get(change.broker)
        if records is None or (counted and counted[0] is records and counted[1] == end):
            return
        line.counted[change.broker] = records, end
        if change.broker in self._damaged:
            return
        stale = replaced(records, change.now)
        if stale is not None:
            yield step.violation(
                "compacted-to-latest",
                f"the log of broker {change.broker} ({change.now.role}) is compacted up to {end}, "
                f"and has the record of the key {stale.key!r} at offset {stale.offset}, although a "
                "later one below that offset replaces it",
                key=change.key,
                offset=stale.offset,
                brokers=(change.broker,),
                epochs=(change.now.leader_epoch,),
            )

    def _judge(self, step: Step, line: _Line, change: Changed) -> Iterator[Violation]:
        records = change.now.records
        if records is None or line.judged.get(change.broker) is records:
            return
        if change.now.role not in ("leader", "follower"):
            return
        line.judged[change.broker] = records
        if change.broker in self._damaged or self._committed.is_lost(change.key):
            return
        lost = missing(line.latest, records, change.now)
        if lost is not None:
            yield step.violation(
                "compacted-to-latest",
                f"the log of broker {change.broker} ({change.now.role}, high watermark "
                f"{change.now.high_watermark}) has not the record of the key {lost.key!r} at "
                f"offset {lost.offset}, which is the last committed one, nor a later one",
                key=change.key,
                offset=lost.offset,
                brokers=(change.broker,),
                epochs=(change.now.leader_epoch,),
            )


def missing(
    latest: Mapping[bytes, KeyedRecord], records: Sequence[KeyedRecord], replica: ReplicaState
) -> KeyedRecord | None:
    """Return a record that must survive in a log and is not there, or ``None``.

    A tombstone may be removed, but like other records keeps its timestamp (KIP-534) and headers. A
    later record takes its place only if the log shows it as committed: compaction reads none above
    the watermark or of an open transaction, and removes those of aborted ones.
    """
    at = {each.offset: each for each in records if each.commits is None}
    own = _committed_offsets(records, replica.high_watermark)
    for key, wanted in latest.items():
        if not replica.log_start <= wanted.offset < replica.high_watermark:
            continue
        found = at.get(wanted.offset)
        if found is not None and found.key == key:
            if found != wanted:
                return wanted
        elif own.get(key, -1) < wanted.offset and wanted.value_crc is not None:
            return wanted
    return None


def _committed_offsets(records: Sequence[KeyedRecord], end: int) -> dict[bytes, int]:
    """Return the offset of the last record of each key that is committed below ``end``."""
    found: dict[bytes, int] = {}
    transactions = _Transactions()
    for record in takewhile(lambda record: record.offset < end, records):
        for each in transactions.committed(record):
            found[each.key] = max(each.offset, found.get(each.key, -1))
    return found


def replaced(records: Sequence[KeyedRecord], replica: ReplicaState) -> KeyedRecord | None:
    """Return a record that compaction should have removed, or ``None``.

    It is one in the compacted part of the log whose key has a later record there, outside of
    aborted transactions: a batch of one may stay for some time, if it is the last of that part.
    Records before the start of the log have no meaning any more.
    """
    known: dict[bytes, KeyedRecord] = {}
    transactions = _Transactions()
    for record in records:
        if record.commits is None and not replica.log_start <= record.offset < replica.compacted_to:
            continue
        for each in transactions.committed(record):
            other = known.setdefault(each.key, each)
            if other is not each:
                return min(each, other, key=_offset)
    return None
