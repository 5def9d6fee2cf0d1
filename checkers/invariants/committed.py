"""What was committed stays: compares logs with a record of all high watermarks of leaders.

The record belongs to the checker and never goes back, unlike any broker's own watermark (as in
Vanlightly's TLA+ model of Kafka's replication). It counts watermarks of deposed leaders, too: such
a leader still waits for all of its maximal ISR (KIP-497), among them the next leader, whose fetches
confirmed no more than its log held when it was elected. So whatever an earlier leader ever commits,
then or later, is below the end that the next leader's log had at its election.

None of this holds with unclean elections (R15). Power losses are within the contract as long as a
member of the ISR is left whose disk has lost nothing since it was last whole (L4). When the last
such member loses power, committed records may be lost without a bug, and the partition is not
checked any more.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter

from checkers.invariants.step import Changed, Step
from model.snapshot import Batch, Batches, ReplicaState
from model.violation import Violation

_base = attrgetter("base")


PRUNE_MIN = 4096
"""Number of committed batches of a partition from which on deleted ones are forgotten."""
EPOCHS_MAX = 1024
"""Number of leader epochs of a partition whose watermarks are remembered."""


class _Line:
    """The committed batches of one partition.

    What is below the logs of all running brokers is forgotten from time to time, since a run may
    last for days. A broker that returns with older batches is not compared with those.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        """Where the record begins: earlier batches are unknown."""
        self.end = 0
        """The highest watermark of any leader."""
        self.at: dict[int, Batch] = {}
        """The batches by base offset."""
        self.marks: dict[int, int] = {}
        """The highest watermark of each leader epoch's leader."""
        self.read: dict[int, tuple[Sequence[Batch], int]] = {}
        """By broker, how many of which batches are known to agree."""
        self._prune_above = PRUNE_MIN
        self.doubted: dict[int, None] = {}
        """Brokers that may lack something since they lost power."""
        self.is_lost = False
        self.is_compacted = False
        """True if segments were replaced: ends of logs are compared then, and not batches."""

    def bound(self, epoch: int) -> int:
        """Return the offset below which a leader of this epoch must hold everything."""
        return max((end for other, end in self.marks.items() if other <= epoch), default=0)

    def extend(self, replica: ReplicaState) -> None:
        """Add what this leader has committed beyond the record."""
        mark = replica.high_watermark
        self.marks[replica.leader_epoch] = max(mark, self.marks.get(replica.leader_epoch, 0))
        if mark <= self.end:
            return
        if self.is_compacted:
            self.end = mark
            return
        batches, count = replica.batches.all, replica.batches.count
        if self.first is None:
            self.first = max(replica.log_start, batches[0].base if count else 0)
        begin = bisect_left(batches, self.end, hi=count, key=_base)
        if begin < count and batches[begin].base > self.end:
            self.first = batches[begin].base  # earlier ones were deleted before a snapshot
        seen = self.end
        for number in range(begin, count):
            batch = batches[number]
            if batch.next > mark:
                break
            if seen < batch.base <= replica.log_start:
                self.first = batch.base
            self.at[batch.base] = batch
            seen = batch.next
        if seen < mark <= replica.log_start:
            self.first = mark
        self.end = mark

    def prune(self, low: int) -> None:
        """Forget batches that end at or below the offset ``low``, and watermarks of old epochs."""
        if len(self.marks) > EPOCHS_MAX:
            *old, oldest = sorted(self.marks)[: -EPOCHS_MAX // 2]
            end = self.bound(oldest)
            for epoch in old:
                del self.marks[epoch]
            self.marks[oldest] = end
        if len(self.at) > self._prune_above:
            self.at = {base: batch for base, batch in self.at.items() if batch.next > low}
            self.first = max(low, self.first or 0)
            self._prune_above = max(PRUNE_MIN, 2 * len(self.at))

    def conflict(self, broker: int, replica: ReplicaState, limit: int) -> Batch | None:
        """Return the first batch below ``limit`` that is not the committed one, or the first
        committed batch that is missing between two batches; None if the log is compacted."""
        if self.is_compacted:
            return None
        limit = min(limit, self.end)
        batches, count = replica.batches.all, replica.batches.count
        known = self.read.get(broker)
        number = known[1] if known is not None and known[0] is batches else 0
        found = None
        while number < count and batches[number].next <= limit:
            batch = batches[number]
            committed = self.at.get(batch.base)
            skipped = self.at.get(batches[number - 1].next) if number else None
            if skipped is not None and replica.log_start < skipped.next <= batch.base:
                found = skipped
                break
            if (
                (committed is None or committed.identity != batch.identity)
                and batch.next > replica.log_start
                and self.first is not None
                and batch.base >= self.first
            ):
                found = batch
                break
            number += 1
        self.read[broker] = batches, number
        return found


class Committed:
    """Checks that no replica lacks, or has changed, what it must hold of the committed log.

    The invariants are ``log-matching``, ``leader-completeness``, ``candidate-completeness`` and
    ``truncation-below-hw``:

    - Below its own watermark, every replica's log is the committed one (R4): a watermark comes from
      a leader, to a log that is a prefix of the leader's up to there, and no truncation changes a
      log below it.
    - A leader holds, unchanged, all that leaders of its own and earlier epochs have committed (R1).
      A deposed leader need not know of what came later.
    - So does each running member of the ISR in ZooKeeper (R2): any of them may be the next leader.
      A broker in the ISR that has no log at all holds nothing, unless a directory has failed.
    - No replica truncates its log below its own watermark: everything below is committed and every
      later leader has it (R1), so the logs diverge above it; and a follower whose leader does not
      know where truncates to its watermark (E6).
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def end(self, key: str) -> int | None:
        """Return the offset below which all that was ever committed must be readable; None if
        unknown."""
        line = self._lines.get(key)
        return None if line is None or line.is_lost else line.end

    def is_lost(self, key: str) -> bool:
        """Return whether committed records may be lost, because all disks have lost some."""
        line = self._lines.get(key)
        return line is not None and line.is_lost

    def step(self, step: Step) -> Iterator[Violation]:
        """Take the next snapshot in."""
        for number in step.damaged():
            self._doubt(step, number)
        for change in step.changed:
            yield from self._cut(step, change)
        for key in step.touched:
            line = self._line(key)
            line.is_compacted = step.is_compacted(key)
            if not line.is_lost:
                yield from self._partition(step, key, line)

    def _line(self, key: str) -> _Line:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        return line

    def _doubt(self, step: Step, broker: int) -> None:
        """Mark a broker that has lost power, and perhaps writes that were not synced."""
        zookeeper = step.now.zookeeper
        for key, state in ({} if zookeeper is None else zookeeper.partitions).items():
            line = self._line(key)
            line.doubted[broker] = None
            if all(member in line.doubted for member in state.isr):
                line.is_lost = True

    def _cut(self, step: Step, change: Changed) -> Iterator[Violation]:
        """Check whether too much was truncated since the last snapshot, even if it was fetched
        again."""
        before, line = change.before, self._line(change.key)
        if before is None or before.log_number != change.now.log_number or line.is_lost:
            return
        cuts = change.now.cuts[len(before.cuts) :]
        if not cuts:
            return
        cut = min(cuts)
        if cut < before.high_watermark and before.role not in ("untold", "offline"):
            yield step.violation(
                "truncation-below-hw",
                f"broker {change.broker} had high watermark {before.high_watermark}, and then "
                f"truncated its log to {cut}",
                key=change.key,
                offset=cut,
                brokers=(change.broker,),
                epochs=(before.leader_epoch, change.now.leader_epoch),
            )
        earlier = step.partition_before(change.key)
        state = step.partition(change.key)
        if (
            earlier is not None
            and state is not None
            and change.broker in earlier.isr
            and change.broker in state.isr
            and state.version - earlier.version <= 1  # so it was in the ISR all the time
            and change.broker not in line.doubted
            and cut < line.bound(earlier.leader_epoch)
        ):
            yield step.violation(
                "candidate-completeness",
                f"broker {change.broker} was in the ISR when it truncated its log to {cut}; "
                f"all records below {line.bound(earlier.leader_epoch)} were committed up to epoch "
                f"{earlier.leader_epoch}",
                key=change.key,
                offset=cut,
                brokers=(change.broker,),
                epochs=(earlier.leader_epoch, change.now.leader_epoch),
            )

    def _partition(self, step: Step, key: str, line: _Line) -> Iterator[Violation]:
        replicas = sorted(step.replicas(key), key=lambda found: found[1].leader_epoch)
        for number, replica in replicas:
            mark = replica.high_watermark if replica.role != "untold" else 0
            batch = line.conflict(number, replica, mark)
            if batch is not None:
                yield _conflict(step, "log-matching", key, number, replica, line, batch)
            elif replica.role == "leader":
                line.extend(replica)
        state = step.partition(key)
        for number, replica in replicas:
            if replica.role == "leader":
                yield from _holds(
                    step, "leader-completeness", key, number, replica, line, replica.leader_epoch
                )
        if state is None:
            return
        line.prune(min((replica.log_start for _, replica in replicas), default=0))
        known = dict(replicas)
        for number in state.isr:
            if number not in step.now.brokers:
                continue
            member = known.get(number)
            if member is None:
                broker = step.now.brokers[number]
                if key in broker.replicas or broker.lacks_directory:
                    continue  # its disk has failed
                member = _NOTHING
            found = list(
                _holds(
                    step, "candidate-completeness", key, number, member, line, state.leader_epoch
                )
            )
            if not found:
                line.doubted.pop(number, None)
            elif number not in line.doubted and not _leads(member, state.leader_epoch):
                yield from found


_NOTHING = ReplicaState(role="untold", log_end=0, batches=Batches.of())


def _leads(replica: ReplicaState, epoch: int) -> bool:
    """Return whether the replica leads in this epoch; then it was judged as the leader."""
    return replica.role == "leader" and replica.leader_epoch == epoch


def _holds(
    step: Step,
    invariant: str,
    key: str,
    number: int,
    replica: ReplicaState,
    line: _Line,
    epoch: int,
) -> Iterator[Violation]:
    """Check that a replica holds all that was committed up to this epoch."""
    bound = line.bound(epoch)
    if replica.log_end < bound:
        yield step.violation(
            invariant,
            f"the log of broker {number} ({replica.role} in epoch {replica.leader_epoch}) ends "
            f"at {replica.log_end}; all records below {bound} were committed up to epoch "
            f"{epoch}",
            key=key,
            offset=replica.log_end,
            brokers=(number,),
            epochs=(replica.leader_epoch, epoch),
        )
        return
    batch = line.conflict(number, replica, bound)
    if batch is not None:
        yield _conflict(step, invariant, key, number, replica, line, batch)


def _conflict(
    step: Step,
    invariant: str,
    key: str,
    number: int,
    replica: ReplicaState,
    line: _Line,
    batch: Batch,
) -> Violation:
    committed = line.at.get(batch.base)
    found = "nothing" if committed is batch else _said(batch)
    other = "no batch that begins at this offset" if committed is None else _said(committed)
    return step.violation(
        invariant,
        f"broker {number} ({replica.role} in epoch {replica.leader_epoch}, high watermark "
        f"{replica.high_watermark}) has at {batch.base} {found}; committed was {other}",
        key=key,
        offset=batch.base,
        brokers=(number,),
        epochs=(replica.leader_epoch, batch.epoch),
    )


def _said(batch: Batch) -> str:
    return f"a batch of epoch {batch.epoch} with CRC {batch.crc:08x}"
