"""One random life of a data directory, with a copy in memory of what it must contain.

The copy is the sequence of transactions that were logged, and how far they are committed. An
operation that is interrupted leaves several possible sequences: those before and after it, and
those of its parts. A start must find one of them.
"""

import copy
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.lives import writes
from broker_impl.errors import StorageError
from broker_impl.zookeeper import snapshot_file, zxids
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal
from harness.simulation.disk import SimDisk

OPERATIONS_MAX = 14
"""An interruption happens after at most so many operations on the disk."""


class Lost(Exception):
    """A start has found a state that the directory must not have, or has refused without cause."""


class _Process:
    """A process of the server; its handle on the disk is useless once it has ended."""

    def __init__(self) -> None:
        self.is_ended = False


class Life:
    """A data directory through many starts and ends."""

    def __init__(self, seed: int, counts: Counter[str]) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng, StorageError)
        self.counts = counts
        self._base = Database()
        """The state before the first of the transactions."""
        self._log: list[Proposal] = []
        self._committed = 0
        """How many of the transactions are committed: they must stay."""
        self._possible: list[tuple[Database, list[Proposal]]] = []
        """Further contents that an interrupted operation may have left."""
        self._epochs = (0, 0)
        """The accepted and the current epoch."""
        self._possible_epochs: list[tuple[int, int]] = []
        self._history: History | None = None
        self._proposer: Proposer
        self._process = _Process()

    def live(self, ends: int) -> None:
        """Start, work and end as often.

        Raises:
            Lost: something acknowledged is missing, or something else is wrong.
        """
        with _small_slices(self.rng.choice([2, 5, 500])):
            for _ in range(ends):
                self._start()
                self._work()

    # --- a process

    def _start(self) -> None:
        """Start, possibly several times: a start can be interrupted as well."""
        while True:
            is_disturbed = self.rng.random() < 0.4
            if is_disturbed:
                self._disturb()
            try:
                history = self._open()
            except StorageError as error:
                self._refused(error, is_disturbed)
                continue
            finally:
                self._calm()
            self._history = history
            self._verify(history)
            return

    def _open(self) -> History:
        process = self._process = _Process()
        self.counts["starts"] += 1
        access = self.disk.attach(is_ended=lambda: process.is_ended)
        return History(Store(access, snap_count=self.rng.choice([3, 10, 40])))

    def _refused(self, error: StorageError, is_disturbed: bool) -> None:
        self.counts["starts that were refused or interrupted"] += 1
        if not is_disturbed:
            raise Lost(f"a start is refused: {error}")
        if not str(error) or "\n" in str(error):
            raise Lost(f"a start is refused without one sentence: {error!r}")
        self._process.is_ended = True

    def _work(self) -> None:
        """Take a role and work, until the process is ended at a random moment."""
        disturbed = self.rng.randrange(12)
        try:
            self._take_role()
            for step in range(self.rng.randrange(4, 30)):
                if step == disturbed:
                    self._disturb()
                self._step()
        except StorageError:
            self.counts["operations that failed"] += 1
            self._process.is_ended = True  # it is unknown what is stored, so the server stops
            return
        finally:
            self._calm()
        self._end()

    def _end(self) -> None:
        """End a process in one of three ways, with nothing in flight."""
        self.counts["ends"] += 1
        match self.rng.randrange(3):
            case 0:
                assert self._history is not None
                ledger = self._history.ledger
                assert isinstance(ledger, Store)
                ledger.close()
                self._process.is_ended = True
            case 1:
                self._kill()
            case _:
                self._lose_power()

    # --- faults

    def _disturb(self) -> None:
        operations = self.rng.randrange(OPERATIONS_MAX)
        match self.rng.randrange(8):
            case 0 | 1 | 2:
                self.disk.interrupt(operations, self._kill)
            case 3 | 4 | 5:
                self.disk.interrupt(operations, self._lose_power)
            case 6:
                self.counts["failing syncs"] += 1
                self.disk.interrupt(operations, lambda: self.disk.fail_fsync(1))
            case _:
                self.counts["full disks"] += 1
                self.disk.fill(self.rng.choice([0, 100, 5000]))

    def _calm(self) -> None:
        self.disk.cancel_interrupt()
        self.disk.fail_fsync(0)
        self.disk.free()

    def _kill(self) -> None:
        self.counts["kills"] += 1
        self._process.is_ended = True

    def _lose_power(self) -> None:
        self.counts["power losses"] += 1
        self._process.is_ended = True
        self.disk.power_loss()

    # --- what a server does

    def _take_role(self) -> None:
        """Take over a leader's history, as a learner does: accept, synchronize, enter."""
        history = self._history
        assert history is not None
        accepted, current = self._epochs
        epoch = accepted + self.rng.choice([1, 1, 3])
        self._possible_epochs = [(epoch, current)]
        history.ledger.accept_epoch(epoch)
        self._epochs = (epoch, current)
        match self.rng.randrange(5):
            case 0:
                self._truncate(history)
            case 1:
                self._install(history)
            case _:
                pass
        self._possible_epochs = [(epoch, epoch)]
        history.ledger.enter_epoch(epoch)
        self._epochs = (epoch, epoch)
        self._possible_epochs = []
        self._committed = len(self._log)
        self._proposer = Proposer(history.database, zxids.first_of(epoch))

    def _truncate(self, history: History) -> None:
        keep = self.rng.randint(self._committed, len(self._log))
        last = self._log[keep - 1].header.zxid if keep else self._base.last_zxid
        self._possible = [(self._base, self._log[:size]) for size in range(keep, len(self._log))]
        history.truncate(last)
        self.counts["truncations"] += 1
        del self._log[keep:]
        self._possible = []

    def _install(self, history: History) -> None:
        """Install a leader's state: what is committed here, and transactions of the leader."""
        state = _state(self._base, self._log[: self._committed])
        epoch = zxids.epoch_of(state.last_zxid) + 1
        proposer = Proposer(state, zxids.first_of(epoch))
        if epoch <= self._epochs[0] - 1:
            for proposal in self._proposals(proposer, state, self.rng.randrange(4)):
                state.apply(proposal)
        self._possible = [(state, [])]
        history.install(copy.deepcopy(state))
        self.counts["installations"] += 1
        self._base, self._log, self._committed = state, [], 0
        self._possible = []

    def _step(self) -> None:
        history = self._history
        assert history is not None
        match self.rng.randrange(8):
            case 0 | 1 | 2 | 3:
                self._append(history)
            case 4 | 5:
                self._commit(history)
            case 6:
                self._ask(history)
            case _:
                pass
        was_writing = history.ledger.is_writing_snapshot
        history.rest()
        self.counts["slices of snapshots"] += was_writing or history.ledger.is_writing_snapshot

    def _append(self, history: History) -> None:
        count = self.rng.randint(1, 4)
        proposals = list(self._proposals(self._proposer, history.database, count))
        self._possible = [
            (self._base, [*self._log, *proposals[:size]]) for size in range(1, count + 1)
        ]
        history.log(proposals)
        self._log += proposals
        self._possible = []

    def _proposals(self, proposer: Proposer, database: Database, count: int) -> Iterator[Proposal]:
        for _ in range(count):
            op, request = writes.draw(self.rng)
            yield proposer.propose(
                op,
                request,
                session_id=self.rng.choice(writes.SESSIONS),
                cxid=1,
                ids=(writes.IDENTITY,),
                now_ms=self.rng.randrange(1000),
            )

    def _commit(self, history: History) -> None:
        """Commit some of what is logged: clients are answered, so it must stay."""
        for _ in range(self.rng.randrange(len(history.uncommitted) + 1)):
            proposal = history.uncommitted[0]
            history.commit(proposal.header.zxid)
            self._proposer.applied(proposal)
            self._committed += 1

    def _ask(self, history: History) -> None:
        """Read from the log what a learner lacks: the true transactions, or None."""
        committed = self._log[: self._committed]
        first = self.rng.randrange(len(committed) + 1)
        after = committed[first - 1].header.zxid if first else self._base.last_zxid
        found = history.committed_since(after)
        if found is not None and found != committed[first:]:
            raise Lost(f"after {after:#x} a learner gets other transactions than were committed")
        self.counts["answers from the log" if found else "no answers from the log"] += 1

    # --- the judgement

    def _verify(self, history: History) -> None:
        """Check that a start has found one of the possible states, and take it over."""
        found = facts(history.database)
        for base, log in [(self._base, self._log), *self._possible]:
            last = log[-1].header.zxid if log else base.last_zxid
            if last == history.database.last_zxid and found == facts(_state(base, log)):
                self._base, self._log = base, list(log)
                self._committed = min(self._committed, len(self._log))
                break
        else:
            raise Lost(
                f"a start ends at {history.database.last_zxid:#x}; committed is "
                f"{self._committed} of {len(self._log)} transactions"
            )
        self._possible = []
        epochs = (history.ledger.accepted_epoch, history.ledger.current_epoch)
        if epochs not in (self._epochs, *self._possible_epochs):
            raise Lost(f"a start finds the epochs {epochs}, but they were {self._epochs}")
        self._epochs = epochs
        self._possible_epochs = []


def facts(database: Database) -> object:
    """Everything that a state says, apart from the order of names."""
    nodes = {
        path: (node.stat(), node.data, node.acl, node.creates, set(node.children))
        for path, node in database.nodes.items()
    }
    ephemerals = {session: set(paths) for session, paths in database.ephemerals.items()}
    return nodes, database.sessions, ephemerals, database.last_zxid


def _state(base: Database, log: Sequence[Proposal]) -> Database:
    database = copy.deepcopy(base)
    for proposal in log:
        database.apply(proposal)
    return database


@contextmanager
def _small_slices(nodes: int) -> Iterator[None]:
    """Write snapshots in slices of so few nodes that transactions come between them."""
    before = snapshot_file.NODES_PER_SLICE
    snapshot_file.NODES_PER_SLICE = nodes
    try:
        yield
    finally:
        snapshot_file.NODES_PER_SLICE = before
