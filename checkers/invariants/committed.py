"""What was ever committed stays: the record of all watermarks that leaders have had.

The record belongs to the checker and never goes back, unlike any broker's own watermark (as in
Vanlightly's TLA+ model of Kafka's replication). It counts watermarks of deposed leaders, too: such
a leader still waits for all of its maximal ISR, among them the next leader (KIP-497), whose fetches
said no more than its log held when it was elected. So whatever an earlier leader ever commits, then
or later, lies below the end that the next leader's log had at its election.

Nothing of this holds with unclean elections (R15). Power losses are within the contract as long
as a member of the ISR is left whose disk has lost nothing since it was last whole (L4); when the
last such member loses power, what was committed may be gone by necessity, and the partition is not
looked at any more.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter

from checkers.invariants.step import Changed, Step
from model.snapshot import Batch, Batches, ReplicaState
from model.violation import Violation

_base = attrgetter("base")


class _Line:
    """The committed batches of one partition."""

    def __init__(self) -> None:
        self.first: int | None = None
        """Where the record begins: nothing is known of what lies before."""
        self.end = 0
        """The highest watermark of any leader."""
        self.at: dict[int, Batch] = {}
        """By base offset."""
        self.marks: dict[int, int] = {}
        """By leader epoch, the highest watermark that its leader had."""
        self.read: dict[int, tuple[Sequence[Batch], int]] = {}
        """By broker, how many of which batches are known to agree."""
        self.doubted: dict[int, None] = {}
        """Brokers that may lack something since they lost power."""
        self.is_lost = False

    def bound(self, epoch: int) -> int:
        """What a leader of this epoch must hold."""
        return max((end for other, end in self.marks.items() if other <= epoch), default=0)

    def extend(self, replica: ReplicaState) -> None:
        """Take in what this leader has committed beyond."""
        mark = replica.high_watermark
        self.marks[replica.leader_epoch] = max(mark, self.marks.get(replica.leader_epoch, 0))
        if mark <= self.end:
            return
        batches, count = replica.batches.all, replica.batches.count
        if self.first is None:
            self.first = max(replica.log_start, batches[0].base if count else 0)
        begin = bisect_left(batches, self.end, hi=count, key=_base)
        if begin < count and batches[begin].base > self.end:
            self.first = batches[begin].base  # what lies between was deleted before it was seen
        for number in range(begin, count):
            batch = batches[number]
            if batch.next > mark:
                break
            self.at[batch.base] = batch
        self.end = mark

    def conflict(self, broker: int, replica: ReplicaState, limit: int) -> Batch | None:
        """The first batch below ``limit`` that is not the committed one, or the first committed
        one that is left out between two batches."""
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
    """``log-matching``, ``leader-completeness``, ``candidate-completeness``,
    ``truncation-below-hw``.

    - Below its own watermark every replica's log is the committed one (R4): a watermark comes from
      a leader, to a log that is a prefix of the leader's up to there, and no cut takes a log apart
      below it.
    - A leader holds, unchanged, all that leaders of its own and earlier epochs have committed (R1).
      One that was deposed need not know of what came later.
    - So does each member of the ISR that stands in ZooKeeper, if it runs (R2): any of them may be
      the next leader. A broker in the ISR that has no log at all holds nothing.
    - Nobody cuts its log below its own watermark: what lies below is committed, every later leader
      has it (R1), so the point where the logs part lies above; and a follower whose leader cannot
      tell cuts at its watermark (E6).
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def end(self, key: str) -> int | None:
        """Up to where all that was ever committed must be readable; None: nobody can say."""
        line = self._lines.get(key)
        return None if line is None or line.is_lost else line.end

    def step(self, step: Step) -> Iterator[Violation]:
        """Take the next snapshot in."""
        for number in step.damaged():
            self._doubt(step, number)
        for seen in step.changed:
            yield from self._cut(step, seen)
        for key in step.touched:
            line = self._line(key)
            if not line.is_lost:
                yield from self._partition(step, key, line)

    def _line(self, key: str) -> _Line:
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        return line

    def _doubt(self, step: Step, broker: int) -> None:
        """It has lost power, and perhaps what was not synced."""
        zookeeper = step.now.zookeeper
        for key, state in ({} if zookeeper is None else zookeeper.partitions).items():
            line = self._line(key)
            line.doubted[broker] = None
            if all(member in line.doubted for member in state.isr):
                line.is_lost = True

    def _cut(self, step: Step, seen: Changed) -> Iterator[Violation]:
        """Was too much cut off since the last snapshot, even if it has been fetched again?"""
        before, line = seen.before, self._line(seen.key)
        if before is None or before.log_number != seen.now.log_number or line.is_lost:
            return
        cuts = seen.now.cuts[len(before.cuts) :]
        if not cuts:
            return
        cut = min(cuts)
        if cut < before.high_watermark and before.role not in ("untold", "offline"):
            yield step.violation(
                "truncation-below-hw",
                f"broker {seen.broker} had watermark {before.high_watermark}, and then cut its log"
                f" to {cut}",
                key=seen.key,
                offset=cut,
                brokers=(seen.broker,),
                epochs=(before.leader_epoch, seen.now.leader_epoch),
            )
        earlier = step.partition_before(seen.key)
        state = step.partition(seen.key)
        if (
            earlier is not None
            and state is not None
            and seen.broker in earlier.isr
            and seen.broker in state.isr
            and state.version - earlier.version <= 1  # so it was in the ISR all the time
            and seen.broker not in line.doubted
            and cut < line.bound(earlier.leader_epoch)
        ):
            yield step.violation(
                "candidate-completeness",
                f"broker {seen.broker} was in the ISR when it cut its log to {cut};"
                f" all below {line.bound(earlier.leader_epoch)} was committed up to epoch"
                f" {earlier.leader_epoch}",
                key=seen.key,
                offset=cut,
                brokers=(seen.broker,),
                epochs=(earlier.leader_epoch, seen.now.leader_epoch),
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
        known = dict(replicas)
        for number in state.isr:
            if number not in step.now.brokers:
                continue
            member = known.get(number)
            if member is None:
                if key in step.now.brokers[number].replicas:
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
    """Is it the leader of this epoch? Then it was judged as that."""
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
    """Does it hold all that was committed up to this epoch?"""
    bound = line.bound(epoch)
    if replica.log_end < bound:
        yield step.violation(
            invariant,
            f"the log of broker {number} ({replica.role} in epoch {replica.leader_epoch}) ends at"
            f" {replica.log_end}; all below {bound} was committed up to epoch {epoch}",
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
    other = "no batch that begins there" if committed is None else _said(committed)
    return step.violation(
        invariant,
        f"broker {number} ({replica.role} in epoch {replica.leader_epoch}, watermark"
        f" {replica.high_watermark}) has at {batch.base} {found}; committed was {other}",
        key=key,
        offset=batch.base,
        brokers=(number,),
        epochs=(replica.leader_epoch, batch.epoch),
    )


def _said(batch: Batch) -> str:
    return f"a batch of epoch {batch.epoch} with CRC {batch.crc:08x}"
