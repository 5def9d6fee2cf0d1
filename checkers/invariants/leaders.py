"""Leaders: one in each epoch, as elected, with a high watermark that never goes back."""

from collections.abc import Iterator, Sequence

from checkers.invariants.step import Changed, Rules, Step
from model.snapshot import Batch
from model.violation import Violation

PRUNE_MIN = 4096
"""Number of batches from which on deleted ones are forgotten."""
_ORDERED = ("leader", "follower")
"""The roles that a replica has by an order of a controller."""


class Leaders:
    """Checks that brokers lead as ZooKeeper says, one in each epoch.

    The invariants are ``one-leader-per-epoch``, ``leader-as-elected`` and
    ``leader-epoch-monotone``.

    A broker leads only by an order of a controller, which is sent after the leader and its epoch
    are in ZooKeeper, and each change of leader begins a new epoch (E1, E2). So a broker never leads
    in a later epoch than ZooKeeper's, and in ZooKeeper's only if it is the leader there. A broker
    that leads in an earlier epoch merely has not heard of the change. The same broker may lead in
    one epoch twice, with a restart in between that no controller noticed. A broker rejects an order
    with an earlier epoch than that of the last order that it obeyed (KIP-101): between two starts
    of the broker, no replica goes back.
    """

    def __init__(self) -> None:
        self._leader: dict[tuple[str, int], int] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            replica = change.now
            epoch = replica.leader_epoch
            if replica.role in _ORDERED and change.before is not None:
                yield from _went_back(step, change, change.before.leader_epoch)
            if replica.role != "leader":
                continue
            leader = self._leader.setdefault((change.key, epoch), change.broker)
            if leader != change.broker:
                yield step.violation(
                    "one-leader-per-epoch",
                    f"brokers {leader} and {change.broker} both led in epoch {epoch}",
                    key=change.key,
                    brokers=(leader, change.broker),
                    epochs=(epoch,),
                )
            state = step.partition(change.key)
            if state is None:
                continue
            if epoch > state.leader_epoch or (
                epoch == state.leader_epoch and state.leader != change.broker
            ):
                yield step.violation(
                    "leader-as-elected",
                    f"broker {change.broker} leads in epoch {epoch}; in ZooKeeper the leader is"
                    f" {state.leader} in epoch {state.leader_epoch}",
                    key=change.key,
                    brokers=(change.broker, state.leader),
                    epochs=(epoch, state.leader_epoch),
                )


def _went_back(step: Step, change: Changed, before: int) -> Iterator[Violation]:
    if change.now.leader_epoch < before:
        yield step.violation(
            "leader-epoch-monotone",
            f"broker {change.broker} accepted a controller's request with leader epoch "
            f"{before}, and then one with {change.now.leader_epoch}",
            key=change.key,
            brokers=(change.broker,),
            epochs=(before, change.now.leader_epoch),
        )


class Watermarks:
    """Checks the high watermarks of leaders, and the ends that they return to clients.

    The invariants are ``leader-hw-monotone``, ``hw-below-min-isr``, ``isr-superset`` and
    ``exposed-end-monotone``:

    - In one epoch, and between two starts of a broker, its watermark as a leader never goes back
      (R7). Across epochs it may: a new leader knows less than its predecessor did.
    - While the ISR is smaller than min.insync.replicas (or than the number of replicas, if that is
      less), the watermark does not move (KIP-966, KAFKA-15583). This is judged between two
      snapshots with the same version of the state, so that the ISR was the same all the time, and
      only where the brokers promise it (``Rules.isr_min``).
    - A leader in ZooKeeper's epoch counts at least the ISR in ZooKeeper for its watermark
      (KIP-497): it adds a joining replica before it writes, and drops a leaving one after the write
      is confirmed; every change by the controller is a new epoch.
    - The end that ListOffsets returns never goes back from one epoch to a later one (KIP-207): a
      leader returns none before its watermark has reached the end that its log had when it was
      elected, and that is not below any end that an earlier leader could return, then or later.
      This is not checked with unclean elections.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._exposed_ends: dict[str, dict[int, tuple[int, int]]] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            if change.now.role == "leader":
                yield from self._mark(step, change)
                if change.now.exposed and not self._rules.unclean_elections:
                    yield from self._exposed(step, change)
        for key in step.touched:
            yield from _superset(step, key)

    def _mark(self, step: Step, change: Changed) -> Iterator[Violation]:
        before, now, isr_min = change.before, change.now, self._rules.isr_min
        if isr_min is not None:
            isr_min = self._rules.isr_min_of.get(change.key.rpartition("-")[0], isr_min)
        if (
            before is None
            or before.role != "leader"
            or before.leader_epoch != now.leader_epoch
            or before.high_watermark == now.high_watermark
        ):
            return
        why = None
        if now.high_watermark < before.high_watermark:
            name, why = "leader-hw-monotone", "went back"
        elif isr_min is not None and now.state_version == before.state_version:
            state = step.partition(change.key)
            wanted = isr_min if state is None else min(isr_min, len(state.replicas))
            if len(now.isr) < wanted and now.isr == before.isr:
                name = "hw-below-min-isr"
                why = (
                    f"advanced while the ISR was {list(now.isr)} and {wanted} replicas were "
                    "required"
                )
        if why is not None:
            yield step.violation(
                name,
                f"the high watermark of leader {change.broker} {why}: {before.high_watermark}, "
                f"then {now.high_watermark}",
                key=change.key,
                offset=now.high_watermark,
                brokers=(change.broker,),
                epochs=(now.leader_epoch,),
            )

    def _exposed(self, step: Step, change: Changed) -> Iterator[Violation]:
        ends = self._exposed_ends.setdefault(change.key, {})
        epoch, end = change.now.leader_epoch, change.now.exposed
        ends[epoch] = end, change.broker
        for other, (other_end, broker) in ends.items():
            if (other < epoch and other_end > end) or (other > epoch and other_end < end):
                (first, above), (then, below) = sorted([(epoch, end), (other, other_end)])
                yield step.violation(
                    "exposed-end-monotone",
                    f"the log's end for clients was {above} in epoch {first} and {below} in "
                    f"epoch {then}",
                    key=change.key,
                    offset=below,
                    brokers=(change.broker, broker),
                    epochs=(first, then),
                )


def _superset(step: Step, key: str) -> Iterator[Violation]:
    state = step.partition(key)
    if state is None:
        return
    for number, replica in step.replicas(key):
        if replica.role == "leader" and replica.leader_epoch == state.leader_epoch:
            uncounted = set(state.isr) - set(replica.maximal_isr)
            if uncounted:
                yield step.violation(
                    "isr-superset",
                    f"the ISR in ZooKeeper is {list(state.isr)} (version {state.version}), but "
                    f"the maximal ISR of leader {number} is only {list(replica.maximal_isr)}",
                    key=key,
                    brokers=(number, *sorted(uncounted)),
                    epochs=(state.leader_epoch,),
                )


class OneLogPerEpoch:
    """``one-log-per-epoch``: an offset in a leader epoch is one batch, on all brokers and for ever.

    Only the leader of an epoch makes its batches, at the end of its log, which it never truncates
    while it leads; all other replicas copy them. A restart of that leader in the same epoch changes
    nothing, because the end of a process alone loses nothing. If its disk has lost something, it
    may lead in the epoch again and write other batches: then that epoch is not checked any more.
    Nor is a compacted partition: compaction writes batches again without some of their records.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, int, int], tuple[Batch, int]] = {}
        self._read: dict[tuple[int, str], tuple[Sequence[Batch], int]] = {}
        self._led: dict[int, dict[str, int]] = {}
        self._spoilt: set[tuple[str, int]] = set()
        self._prune_above = PRUNE_MIN

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for number in step.damaged():
            self._spoilt.update(self._led.get(number, {}).items())
        for change in step.changed:
            if change.now.role == "leader":
                self._led.setdefault(change.broker, {})[change.key] = change.now.leader_epoch
            if not step.is_compacted(change.key):
                yield from self._see(step, change)
        if len(self._made) > self._prune_above:
            self._prune(step)
            self._prune_above = max(PRUNE_MIN, 2 * len(self._made))

    def _prune(self, step: Step) -> None:
        """Forget the batches that no running broker has any more, since a run may last for days."""
        low = {
            key: min((replica.log_start for _, replica in step.replicas(key)), default=0)
            for key in {key for key, _, _ in self._made}
        }
        self._made = {
            place: made for place, made in self._made.items() if made[0].next > low[place[0]]
        }

    def _unread(self, change: Changed) -> list[Batch]:
        """Return the batches of a replica that were not read yet."""
        batches, count = change.now.batches.all, change.now.batches.count
        place = change.broker, change.key
        known = self._read.get(place)
        begin = known[1] if known is not None and known[0] is batches else 0
        self._read[place] = batches, count
        return [batches[number] for number in range(begin, count)]

    def _see(self, step: Step, change: Changed) -> Iterator[Violation]:
        for batch in self._unread(change):
            made, maker = self._made.setdefault(
                (change.key, batch.epoch, batch.base), (batch, change.broker)
            )
            if made.identity != batch.identity and (change.key, batch.epoch) not in self._spoilt:
                yield step.violation(
                    "one-log-per-epoch",
                    f"in epoch {batch.epoch}, offset {batch.base} has a batch up to {made.next} "
                    f"with CRC {made.crc:08x} on broker {maker}, and one up to {batch.next} "
                    f"with CRC {batch.crc:08x} on broker {change.broker}",
                    key=change.key,
                    offset=batch.base,
                    brokers=(maker, change.broker),
                    epochs=(batch.epoch,),
                )
                return
