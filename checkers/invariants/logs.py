"""What must hold for a single replica: its offsets, its epochs, its producers, its compaction."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final, NamedTuple

from checkers.invariants.step import Changed, Rules, Step
from model.snapshot import Batch, Compaction, EpochStart, Producer, RememberedBatch, ReplicaState
from model.violation import Violation

_REMEMBERED: Final = 5
_SEQUENCES: Final = 1 << 31


class Offsets:
    """``offsets-in-order``: log start ≤ high watermark ≤ log end (L1).

    Whatever moves one of them keeps it within the others: a follower takes the leader's watermark
    only as far as its own log goes, retention ends at the watermark (KAFKA-5634), and a truncation
    moves the watermark back with the log end. A replica for which its broker has no order yet has
    no watermark.
    """

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            replica = change.now
            marks = [replica.log_start, replica.log_end]
            if replica.role != "untold":
                marks.insert(1, replica.high_watermark)
            if marks != sorted(marks):
                yield step.violation(
                    "offsets-in-order",
                    f"on broker {change.broker} log start, high watermark and log end are {marks}",
                    key=change.key,
                    offset=replica.high_watermark,
                    brokers=(change.broker,),
                    epochs=(replica.leader_epoch,),
                )


class Starts:
    """``log-start-monotone``: deleted records do not become readable again (KIP-107).

    DeleteRecords and retention only advance the start of a log. It goes back only with a truncation
    or in a new log, as of a replica that was removed and returns. A log that moves to another data
    directory stays the same (KIP-113).
    """

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            before, now = change.before, change.now
            if before is None or before.role == "offline" or before.log_start <= now.log_start:
                continue
            if (before.log_number, before.cuts) == (now.log_number, now.cuts):
                yield _of(
                    step,
                    change,
                    "log-start-monotone",
                    now.log_start,
                    f"the log starts at {now.log_start}, but has started at {before.log_start}",
                    (now.leader_epoch,),
                )


class Epochs:
    """``log-in-order``, ``epoch-cache``: a log and its leader epoch cache agree.

    - Along a log offsets rise, and leader epochs never fall: a leader appends at its end in its own
      epoch, a follower only what continues its log (KAFKA-3047). The last batch ends the log,
      unless compaction has removed that.
    - In the cache, epochs and start offsets rise strictly, and none starts after the log's end
      (E4): a leader enters its epoch at its log's end before it serves (KAFKA-7415); a truncation
      removes what starts at or after it even if it removes no record (KAFKA-10706), and a start
      removes that, too.
    - The cache's epoch at a batch's first readable offset is the batch's epoch: both are written by
      the same append, and rebuilt together in recovery (KAFKA-10432).
    """

    def __init__(self) -> None:
        self._checked: dict[tuple[int, str], tuple[Sequence[Batch], tuple[EpochStart, ...], int]]
        self._checked = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            yield from self._cache(step, change)
            yield from self._log(step, change)

    def _cache(self, step: Step, change: Changed) -> Iterator[Violation]:
        epochs = change.now.epochs
        for older, newer in pairwise(epochs):
            if older.epoch >= newer.epoch or older.start >= newer.start:
                yield _of(
                    step,
                    change,
                    "epoch-cache",
                    newer.start,
                    f"epoch {newer.epoch} from {newer.start} follows epoch {older.epoch} from"
                    f" {older.start}",
                    (older.epoch, newer.epoch),
                )
        yield from self._cache_end(step, change)

    def _cache_end(self, step: Step, change: Changed) -> Iterator[Violation]:
        epochs = change.now.epochs
        if epochs and epochs[-1].start > change.now.log_end:
            yield _of(
                step,
                change,
                "epoch-cache",
                epochs[-1].start,
                f"epoch {epochs[-1].epoch} starts at {epochs[-1].start}, but the log ends at "
                f"{change.now.log_end}",
                (epochs[-1].epoch,),
            )

    def _unchecked_from(self, change: Changed) -> int:
        """Return the number of the first batch that was not checked yet, and note the last one."""
        batches, place = change.now.batches, (change.broker, change.key)
        known = self._checked.get(place)
        self._checked[place] = batches.all, change.now.epochs, batches.count
        if known is not None and known[0] is batches.all and known[1] == change.now.epochs:
            return known[2]
        return 0

    def _log(self, step: Step, change: Changed) -> Iterator[Violation]:
        replica = change.now
        batches, count = replica.batches.all, replica.batches.count
        fault = _first_disorder(replica, self._unchecked_from(change))
        if fault is not None:
            name, offset, why, epochs = fault
            yield _of(step, change, name, offset, why, epochs)
        elif (
            count
            and batches[count - 1].next != replica.log_end
            and not _is_emptied(replica)
            and not step.is_compacted(change.key)
        ):
            yield _of(
                step,
                change,
                "log-in-order",
                replica.log_end,
                f"the log ends at {replica.log_end}, but its last batch at "
                f"{batches[count - 1].next}",
                (batches[count - 1].epoch,),
            )


def _is_emptied(replica: ReplicaState) -> bool:
    """Return whether all records are deleted: perhaps before a snapshot has shown their batches."""
    return (
        replica.batches.all[replica.batches.count - 1].next < replica.log_end <= replica.log_start
    )


def _first_disorder(
    replica: ReplicaState, begin: int
) -> tuple[str, int, str, tuple[int, ...]] | None:
    """Return the first batch, from number ``begin`` on, that does not fit: the invariant that it
    breaks, the offset, the reason and the epochs."""
    batches, epochs, start = replica.batches.all, replica.epochs, replica.log_start
    entry = -1
    for number in range(begin, replica.batches.count):
        batch = batches[number]
        if batch.next <= batch.base:
            return "log-in-order", batch.base, f"a batch ends at {batch.next}", (batch.epoch,)
        if number:
            last = batches[number - 1]
            if batch.base < last.next or batch.epoch < last.epoch:
                why = (
                    f"a batch of epoch {batch.epoch} from {batch.base} follows one of epoch"
                    f" {last.epoch} up to {last.next}"
                )
                return "log-in-order", batch.base, why, (last.epoch, batch.epoch)
        if batch.next <= start:
            continue  # deleted, and its epochs with it
        first = max(batch.base, start)
        while entry + 1 < len(epochs) and epochs[entry + 1].start <= first:
            entry += 1
        if entry < 0 or epochs[entry].epoch != batch.epoch:
            said = "none" if entry < 0 else str(epochs[entry].epoch)
            why = f"offset {first} has epoch {batch.epoch}, but the epoch cache has {said}"
            return "epoch-cache", first, why, (batch.epoch,)
    return None


class Producers:
    """``producer-state``: what a broker remembers of producers equals a replay of the log (P3).

    The state at the log's end is a fold over its batches: on the leader that appended them, on
    followers, which never reject them (KAFKA-6003), and after a start, which replays from a
    snapshot. Per producer it is the epoch, and the last five batches in that epoch; a transaction
    marker changes the epoch, and is none of the batches. Also remembered is where the producer's
    open transaction begins, which its marker needs (KIP-98). Where retention has deleted the
    beginning, a broker may remember more than the log still shows (KIP-360). So only what the log
    does show is compared, and that no producer is forgotten, not even by a start and not even one
    whose records are all deleted, unless the log was truncated or created again. A producer that
    was silent for ``producer.id.expiration.ms`` may be forgotten, unless its transaction is open;
    if it has come back since, only its last batches are remembered. The log of a compacted
    partition does not show what was remembered.
    """

    def __init__(self, rules: Rules) -> None:
        self._expiration_ns = rules.producer_expiration_s * 1e9
        self._replays: dict[tuple[int, str], _Replay] = {}
        self._last: dict[tuple[int, str], _Last] = {}
        """By replica: what was remembered when a snapshot last had it, as long as the log is the
        same."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        may_forget = step.now.time_ns >= self._expiration_ns
        for change in step.changed:
            if step.is_compacted(change.key):
                continue
            place = change.broker, change.key
            last = self._last.pop(place, None)
            before = last.producers if last is not None and last.is_of(change) else None
            remembered = change.now.producers
            newest = before if remembered is None else remembered
            if newest is not None:
                self._last[place] = _Last(
                    change.life, change.now.log_number, change.now.cuts, newest
                )
            if remembered is None:
                continue
            if before is not None and not may_forget:
                yield from _forgotten(step, change, before, remembered)
            replay = self._replays.get(place)
            if replay is None or replay.batches is not change.now.batches.all:
                replay = self._replays[place] = _Replay(change.now.batches.all)
            replay.go_on(change.now.batches.count)
            if not replay.is_gapless or replay.end not in (None, change.now.log_end):
                continue  # batches were deleted before a snapshot has shown them
            is_whole = (
                replay.batches[0].base == 0 if change.now.batches.count else not change.now.log_end
            )
            for producer in sorted(replay.producers.keys() | remembered.keys()):
                replayed = replay.replayed(producer)
                found = remembered.get(producer)
                is_repeated = replay.markers.get(producer, 0) > 1
                if not _agree(
                    replayed,
                    found,
                    is_repeated=is_repeated,
                    is_whole=is_whole,
                    may_forget=may_forget,
                ):
                    yield _of(
                        step,
                        change,
                        "producer-state",
                        replayed.batches[-1].last_offset
                        if replayed is not None and replayed.batches
                        else None,
                        f"the state of producer {producer} is {_said(found)}, but the log has "
                        f"{_said(replayed)}",
                        (change.now.leader_epoch,),
                    )
                    break


class _Last(NamedTuple):
    """What was remembered of a log, and which log that was."""

    life: int
    log_number: int
    cuts: tuple[int, ...]
    producers: Mapping[int, Producer]

    def is_of(self, change: Changed) -> bool:
        """Return whether this is the same log, perhaps after a restart, and has lost nothing
        since."""
        if change.life == self.life:
            same = (self.log_number, self.cuts) == (change.now.log_number, change.now.cuts)
            return change.before is not None and same
        return not change.now.cuts


def _forgotten(
    step: Step, change: Changed, known: Mapping[int, Producer], remembered: Mapping[int, Producer]
) -> Iterator[Violation]:
    """Report a producer whose records were deleted and that is not remembered any more."""
    for producer in sorted(known.keys() - remembered.keys()):
        batches = known[producer].batches
        if batches and batches[-1].last_offset < change.now.log_start:
            yield _of(
                step,
                change,
                "producer-state",
                batches[-1].last_offset,
                f"the state of producer {producer}, whose records are deleted, was "
                f"{_said(known[producer])}, and is lost",
                (change.now.leader_epoch,),
            )
            return


class Compactions:
    """``compaction-as-configured``: segments are replaced only where ``cleanup.policy`` says so.

    Without ``compact``, all remaining records must stay, whether or not they are the last of their
    key. A broker stops a pass of the cleaner as soon as it has heard of the change (KAFKA-12840).
    With ``min.compaction.lag.ms``, a pass reads no record that is newer (KIP-58). The first pass
    that finds a tombstone to be the last of its key sets when it may be removed, and later passes
    do not postpone that (KAFKA-8522).
    """

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for number, broker in step.now.brokers.items():
            before = None if step.before is None else step.before.brokers.get(number)
            if before is None or before.life != broker.life:
                continue
            for key, now in broker.compactions.items():
                was = before.compactions.get(key, Compaction())
                if now.passes <= was.passes:
                    continue
                held, found = before.replicas.get(key), broker.replicas.get(key)
                why = _not_wanted(was, now) or _postponed(held, found)
                if why is not None:
                    yield step.violation(
                        "compaction-as-configured",
                        f"broker {number} replaced segments of a log {why}",
                        key=key,
                        brokers=(number,),
                    )


def _not_wanted(was: Compaction, now: Compaction) -> str | None:
    if not (now.is_wanted or was.is_wanted):
        return "whose topic is not compacted"
    lag_ms = min(was.lag_ms, now.lag_ms)
    if now.age_ms < lag_ms:
        return f"with a record that is {now.age_ms} ms old, before {lag_ms} ms have passed"
    return None


def _postponed(before: ReplicaState | None, now: ReplicaState | None) -> str | None:
    """Return of which batch a pass has postponed the removal, if it is in the same log."""
    if before is None or now is None:
        return None
    if (before.log_number, before.cuts) != (now.log_number, now.cuts):
        return None  # batches were copied again from a leader, which has another horizon
    horizons = {
        batch.base: batch.horizon_ms
        for batch in islice(before.batches.all, before.batches.count)
        if batch.horizon_ms >= 0
    }
    for batch in islice(now.batches.all, now.batches.count):
        known = horizons.get(batch.base)
        if known is not None and batch.horizon_ms > known:
            return (
                f"and postponed the removal of the batch at {batch.base} from {known} to "
                f"{batch.horizon_ms} ms"
            )
    return None


class _Replay:
    """The producers of a log, replayed up to the last batch that was seen."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.producers: dict[int, tuple[int, deque[RememberedBatch]]] = {}
        self._open: dict[int, int] = {}
        """The offsets at which the open transactions begin, by producer."""
        self.markers: dict[int, int] = {}
        """How many markers there are after the last other batch, by producer."""
        self.is_gapless = True
        self.end: int | None = None
        """Where the last batch ends; None: there is none."""
        self._count = 0

    def go_on(self, count: int) -> None:
        for number in range(self._count, count):
            batch = self.batches[number]
            self.is_gapless = self.is_gapless and self.end in (None, batch.base)
            self.end = batch.next
            if batch.producer < 0:
                continue
            known = self.producers.get(batch.producer)
            if known is None or known[0] != batch.producer_epoch:
                known = batch.producer_epoch, deque(maxlen=_REMEMBERED)
                self.producers[batch.producer] = known
            markers = self.markers.get(batch.producer, 0)
            self.markers[batch.producer] = markers + 1 if batch.is_control else 0
            if batch.is_control:
                self._open.pop(batch.producer, None)
            elif batch.is_transactional:
                self._open.setdefault(batch.producer, batch.base)
            if batch.sequence < 0:
                continue  # a transaction marker has its producer's epoch, but no sequence
            records = batch.next - batch.base
            last = (batch.sequence + records - 1) % _SEQUENCES
            known[1].append(RememberedBatch(last, batch.next - 1, records))
        self._count = max(self._count, count)

    def replayed(self, producer: int) -> Producer | None:
        known = self.producers.get(producer)
        if known is None:
            return None
        return Producer(known[0], tuple(known[1]), self._open.get(producer))


def _agree(
    replayed: Producer | None,
    found: Producer | None,
    *,
    is_repeated: bool,
    is_whole: bool,
    may_forget: bool,
) -> bool:
    """Return whether the state that was found may follow from the log.

    is_repeated: the log ends, for this producer, with several markers.
    """
    if replayed is None:
        return found is None or not is_whole
    if found is None:
        return may_forget and replayed.open_since is None
    if replayed.epoch != found.epoch or not _begin_alike(replayed, found, is_whole):
        return False
    batches = found.batches
    if may_forget and is_repeated and not batches:
        return True  # it was forgotten before the last of them
    if not is_whole:
        batches = batches[max(0, len(batches) - len(replayed.batches)) :]
    expected = replayed.batches[-len(batches) :] if may_forget and batches else replayed.batches
    return batches == expected


def _begin_alike(replayed: Producer, found: Producer, is_whole: bool) -> bool:
    """Return whether both have the same transaction open, whose beginning may be deleted."""
    if replayed.open_since is None or found.open_since is None or is_whole:
        return replayed.open_since == found.open_since
    return found.open_since <= replayed.open_since


def _said(producer: Producer | None) -> str:
    if producer is None:
        return "nothing"
    ends = ", ".join(f"{batch.last_sequence}@{batch.last_offset}" for batch in producer.batches)
    open_ = "" if producer.open_since is None else f", in a transaction from {producer.open_since}"
    return f"epoch {producer.epoch} with last sequences {ends or 'none'}{open_}"


def _of(
    step: Step, change: Changed, name: str, offset: int | None, why: str, epochs: tuple[int, ...]
) -> Violation:
    return step.violation(
        name,
        f"on broker {change.broker}: {why}",
        key=change.key,
        offset=offset,
        brokers=(change.broker,),
        epochs=epochs,
    )
