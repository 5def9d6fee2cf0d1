"""What must hold in ZooKeeper: partition states and controllers."""

from collections.abc import Iterator
from typing import Final

from checkers.invariants.step import Step
from model.snapshot import NOBODY, PartitionState
from model.violation import Violation


class States:
    """Checks the states of partitions in ZooKeeper.

    The invariants are ``state-version``, ``leader-epoch-monotone`` and ``isr-within-replicas``:

    - The state znode changes only by conditional writes, and each makes the next version: other
      content under the same version, or a version that goes back, is a write that no broker made
      (R14).
    - Leader epochs never go back, and another leader begins a new one: the controller raises the
      epoch in the same write that names or removes a leader (E1). Two samples with the same leader
      may be before and after another leader's term, so only a difference is judged.
    - The ISR is never empty (KAFKA-5083), holds the leader, and holds only assigned replicas (R14).
    """

    def __init__(self) -> None:
        self._last: dict[str, PartitionState] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for key in step.touched:
            state = step.partition(key)
            before = self._last.get(key)
            if state is None or state is before:
                continue
            self._last[key] = state
            yield from _members(step, key, state)
            if before is not None:
                yield from _change(step, key, before, state)


def _members(step: Step, key: str, state: PartitionState) -> Iterator[Violation]:
    isr = set(state.isr)
    if not isr:
        why = "the ISR is empty"
    elif not isr <= set(state.replicas):
        why = (
            f"the ISR {list(state.isr)} has brokers that are not among the replicas "
            f"{list(state.replicas)}"
        )
    elif state.leader != NOBODY and state.leader not in isr:
        why = f"leader {state.leader} is not in the ISR {list(state.isr)}"
    else:
        return
    yield step.violation(
        "isr-within-replicas",
        f"{why} (version {state.version})",
        key=key,
        brokers=state.isr,
        epochs=(state.leader_epoch,),
    )


def _change(
    step: Step, key: str, before: PartitionState, now: PartitionState
) -> Iterator[Violation]:
    epochs = (before.leader_epoch, now.leader_epoch)
    leaders = (before.leader, now.leader)
    content = (now.leader, now.leader_epoch, now.isr, now.controller_epoch)
    was = (before.leader, before.leader_epoch, before.isr, before.controller_epoch)
    if now.version < before.version or (now.version == before.version and content != was):
        yield step.violation(
            "state-version",
            f"version {before.version} had leader, epoch, ISR, controller epoch {was}, then "
            f"version {now.version} {content}",
            key=key,
            epochs=epochs,
        )
    elif now.leader_epoch < before.leader_epoch:
        yield step.violation(
            "leader-epoch-monotone",
            f"leader epoch {before.leader_epoch} was followed by {now.leader_epoch}",
            key=key,
            brokers=leaders,
            epochs=epochs,
        )
    elif now.leader != before.leader and now.leader_epoch == before.leader_epoch:
        yield step.violation(
            "leader-epoch-monotone",
            f"leader {before.leader} was followed by {now.leader} in the same epoch"
            f" {now.leader_epoch}",
            key=key,
            brokers=leaders,
            epochs=epochs,
        )


class Moves:
    """Checks that replicas are only given up once the others have been in sync (KIP-455).

    The invariant is ``moved-when-in-sync``. When a reassignment completes, each replica that stays
    must have been in the ISR since the reassignment began: it is not enough that it is alive. Only
    what was seen counts, so a completion is not judged if the state may have changed more often
    between two snapshots than a member needs to enter the ISR and to leave it again.
    """

    def __init__(self) -> None:
        self._last: dict[str, PartitionState] = {}
        self._in_sync: dict[str, set[int]] = {}
        """The members of the ISR since the reassignment of a partition began."""

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for key in step.touched:
            now, before = step.partition(key), self._last.get(key)
            if now is None or now is before:
                continue
            self._last[key] = now
            if now.adding or now.removing:
                if before is None or _move(before) != _move(now):
                    self._in_sync[key] = set() if before is None else set(before.isr)
                self._in_sync[key] |= set(now.isr)
            elif before is not None and _has_moved(before, now):
                seen = self._in_sync.pop(key, None) or set(before.isr)
                yield from _completed(step, key, before, now, seen | set(now.isr))


WRITES_UNSEEN: Final = 3
"""The writes of a state by which a member enters the ISR and leaves it, and the move completes."""


def _move(state: PartitionState) -> tuple[object, ...]:
    return state.birth, state.adding, state.removing


def _has_moved(before: PartitionState, now: PartitionState) -> bool:
    """Whether a reassignment has completed, which may have begun since the snapshot before.

    One that was cancelled leaves the replicas that the partition had at first.
    """
    origin = [replica for replica in before.replicas if replica not in before.adding]
    return before.birth == now.birth and sorted(now.replicas) != sorted(origin)


def _completed(
    step: Step, key: str, before: PartitionState, now: PartitionState, seen: set[int]
) -> Iterator[Violation]:
    missing = [replica for replica in now.replicas if replica not in seen]
    if missing and now.version - before.version < WRITES_UNSEEN:
        yield step.violation(
            "moved-when-in-sync",
            f"the reassignment from {list(before.replicas)} to {list(now.replicas)} completed, "
            f"and {missing} were never in the ISR meanwhile",
            key=key,
            brokers=tuple(missing),
            epochs=(now.leader_epoch,),
        )


class Controllers:
    """Checks that each controller epoch belongs to one broker, and never goes back.

    The invariants are ``controller-epoch-monotone`` and ``one-controller-per-epoch``.

    /controller and /controller_epoch change in one conditional transaction (KAFKA-6082): the epoch
    never goes back, and only one broker ever holds an epoch. Two brokers may act as the controller
    at once, but in different epochs. No controller epoch appears that ZooKeeper has not assigned:
    neither on a broker that received an order of it, nor in a partition state.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._holder: dict[int, int] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        zookeeper = step.now.zookeeper
        if zookeeper is None:
            return
        before, now = step.before, step.now
        if before is None or before.zookeeper is not zookeeper:
            if zookeeper.controller_epoch < self._epoch:
                yield step.violation(
                    "controller-epoch-monotone",
                    f"controller epoch {self._epoch} was followed by {zookeeper.controller_epoch}",
                    epochs=(self._epoch, zookeeper.controller_epoch),
                )
            self._epoch = max(self._epoch, zookeeper.controller_epoch)
            if zookeeper.controller != NOBODY:
                yield from self._holds(step, zookeeper.controller, zookeeper.controller_epoch)
            for key in step.touched:
                state = step.partition(key)
                if state is not None and state.controller_epoch > self._epoch:
                    yield step.violation(
                        "controller-epoch-monotone",
                        f"the state was written in controller epoch {state.controller_epoch}, "
                        f"but ZooKeeper's is {self._epoch}",
                        key=key,
                        epochs=(state.controller_epoch, self._epoch),
                    )
        for number, broker in now.brokers.items():
            was = None if before is None else before.brokers.get(number)
            if was is broker:
                continue
            if broker.term is not None:
                yield from self._holds(step, number, broker.term)
            heard = max(broker.controller_epoch, -1 if broker.term is None else broker.term)
            if heard > self._epoch:
                yield step.violation(
                    "controller-epoch-monotone",
                    f"broker {number} knows controller epoch {heard}, but ZooKeeper's is "
                    f"{self._epoch}",
                    brokers=(number,),
                    epochs=(heard, self._epoch),
                )
            if (
                was is not None
                and was.life == broker.life
                and broker.controller_epoch < was.controller_epoch
            ):
                yield step.violation(
                    "controller-epoch-monotone",
                    f"broker {number} accepted a request of controller epoch "
                    f"{was.controller_epoch}, and then one of {broker.controller_epoch}",
                    brokers=(number,),
                    epochs=(was.controller_epoch, broker.controller_epoch),
                )

    def _holds(self, step: Step, broker: int, epoch: int) -> Iterator[Violation]:
        holder = self._holder.setdefault(epoch, broker)
        if holder != broker:
            yield step.violation(
                "one-controller-per-epoch",
                f"brokers {holder} and {broker} were both controller in epoch {epoch}",
                brokers=(holder, broker),
                epochs=(epoch,),
            )
