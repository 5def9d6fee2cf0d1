"""Bugs in how a ZooKeeper server logs transactions, and takes over the history of a leader."""

import asyncio
from collections.abc import Sequence
from typing import Any

from broker_impl.errors import StorageError
from broker_impl.mutants import mutant
from broker_impl.zookeeper import snapshot, store
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum import synchronization
from broker_impl.zookeeper.quorum.packets import Type
from broker_impl.zookeeper.quorum.synchronization import Plan
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.store import StoreFile
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal

LATE_S = 0.1
"""How much later a thread of the log writes what it was handed."""


def _taken_over(history: History, state: Database | None, committed: Sequence[Proposal]) -> None:
    """Make the leader's history durable and apply it, as the rule does before the epoch."""
    if state is not None:
        _replayed(state, committed)
        history.install(state)
    elif committed:
        history.log(committed)
        history.commit_to(committed[-1].header.zxid)


def _replayed(state: Database, committed: Sequence[Proposal]) -> None:
    for proposal in committed:
        if proposal.header.zxid > state.last_zxid:
            state.replay(proposal)


@mutant(
    "zk-history-not-synced",
    of="broker_impl.zookeeper.quorum.learner_rules:take_over",
    source="ZOOKEEPER-3911, ZOOKEEPER-4646",
    kind="historic",
    symptom="invariant:zab-commit-quorum",
    schedule="A follower receives transactions as a difference, acknowledges NEWLEADER, and loses "
    "power.",
)
def take_over_unsynced(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """The history before NEWLEADER is written and acknowledged, but not synced.

    The leader serves clients once a quorum has acknowledged. If that follower loses power, its
    history ends earlier, and it may form another quorum with a server that lacks it too.
    """
    if state is not None:
        _replayed(state, committed)
        history.install(state)
    elif committed:
        correct, store.append_durably = store.append_durably, _append_only
        try:
            history.log(committed)
        finally:
            store.append_durably = correct
        history.commit_to(committed[-1].header.zxid)
    history.ledger.enter_epoch(epoch)


def _append_only(file: StoreFile, buffers: Sequence[bytes]) -> None:
    file.append(buffers)


@mutant(
    "zk-history-logged-late",
    of="broker_impl.zookeeper.quorum.learner_rules:take_over",
    source="ZOOKEEPER-4785",
    kind="historic",
    symptom="invariant:zab-agreement",
    schedule="A follower receives transactions as a difference, acknowledges NEWLEADER, and is "
    "killed.",
)
def take_over_late(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """The history before NEWLEADER is handed to the thread of the log, and acknowledged at once.

    A server that ends before that thread has written it loses what it has acknowledged.
    """
    if state is not None:
        _replayed(state, committed)
        history.install(state)
    elif committed:
        ledger = history.ledger
        late: Any = _LateLedger(ledger, committed)
        history.ledger = late
        history._logged.extend(committed)
        history.last_zxid = committed[-1].header.zxid
        history.commit_to(history.last_zxid)
    history.ledger.enter_epoch(epoch)


class _LateLedger:
    """A ledger that writes some transactions later, but before all others."""

    def __init__(self, ledger: Any, late: Sequence[Proposal]) -> None:
        self._ledger = ledger
        self._late = list(late)
        asyncio.get_running_loop().call_later(LATE_S, self._write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def append(self, proposals: Sequence[Proposal]) -> None:
        """Write what is late, then these."""
        self._write()
        if proposals:
            self._ledger.append(proposals)

    def _write(self) -> None:
        late, self._late = self._late, []
        if late:
            self._ledger.append(late)


@mutant(
    "zk-epoch-before-history",
    of="broker_impl.zookeeper.quorum.learner_rules:take_over",
    source="ZOOKEEPER-4643",
    kind="historic",
    symptom="invariant:zab-committed-truncated",
    schedule="A follower ends between writing currentEpoch and the log; then it is elected, "
    "because its epoch is later, and has the others truncate.",
    tier=2,
)
def take_over_epoch_first(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """The epoch of the leader is durable before the history that belongs to it.

    A server that ends in between has a later epoch with a shorter history. Its vote beats that of
    servers that have the committed transactions, and as their leader it has them truncated.
    """
    history.ledger.enter_epoch(epoch)
    _taken_over(history, state, committed)


@mutant(
    "zk-epoch-not-entered",
    of="broker_impl.zookeeper.quorum.learner_rules:take_over",
    source="ZOOKEEPER-335, ZOOKEEPER-1282",
    kind="historic",
    symptom="invariant:zab-durable-acknowledgement",
    schedule="A follower acknowledges NEWLEADER.",
)
def take_over_without_epoch(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """A follower acknowledges the leader's history and does not write the leader's epoch.

    In the next election its vote is of the earlier epoch, whatever it has logged since.
    """
    _taken_over(history, state, committed)


@mutant(
    "zk-state-beside-old-log",
    of="broker_impl.zookeeper.quorum.learner_rules:take_over",
    source="ZOOKEEPER-2832",
    kind="historic",
    symptom="invariant:zab-agreement",
    schedule="A follower with an uncommitted transaction receives the leader's state, and "
    "restarts.",
    tier=2,
)
def take_over_beside(
    history: History, state: Database | None, committed: Sequence[Proposal], epoch: int
) -> None:
    """The leader's state becomes a snapshot next to the log, which is not removed.

    The log may hold transactions that the leader's history does not have. After a restart they are
    replayed over that state.
    """
    if state is not None:
        _replayed(state, committed)
        ledger: Any = history.ledger
        ledger._end_file()
        path = ledger._path(snapshot.name(state.last_zxid))
        ledger._disk.write(path, snapshot.encode(state))
        history.database = state
        history.last_zxid = state.last_zxid
        history.window.clear()
        history._logged.clear()
    elif committed:
        history.log(committed)
        history.commit_to(committed[-1].header.zxid)
    history.ledger.enter_epoch(epoch)


@mutant(
    "zk-keeps-uncommitted-state",
    of="broker_impl.zookeeper.quorum.role_rules:leave",
    source="ZOOKEEPER-2845",
    kind="historic",
    symptom="invariant:zab-agreement",
    schedule="A follower has logged a transaction whose commit it does not see; its leader fails, "
    "and the next leader does not have that transaction.",
)
def leave(server: Server, history: History) -> None:
    """A server that leaves its role keeps its state, and votes with what it has applied.

    Its log may have more. The next leader does not know of that, so it does not have it truncated,
    and a restart replays it.
    """
    server.suspend()
    history.listener = None
    history._logged.clear()
    history.last_zxid = history.database.last_zxid


@mutant(
    "zk-serves-without-leader",
    of="broker_impl.zookeeper.quorum.role_rules:leave",
    source="M20",
    kind="mutation",
    symptom="zk-divergence",
    schedule="A client stays connected to a server that has lost its leader, and whose log has "
    "transactions that are truncated later.",
    tier=2,
)
def leave_serving(server: Server, history: History) -> None:
    """A server without a leader goes on to answer reads.

    It has applied its whole log, also what was never committed. The next leader has it truncate
    that, and its clients have read what never was.
    """
    history.settle()


@mutant(
    "zk-zombie-log",
    of="broker_impl.zookeeper.quorum.role_rules:leave",
    source="ZOOKEEPER-4712, ZOOKEEPER-4541",
    kind="historic",
    symptom="invariant:zab-log-in-order",
    schedule="A leader loses its quorum while transactions are outstanding, and follows another.",
)
def leave_with_zombie(server: Server, history: History) -> None:
    """The thread of the log is not stopped with its role, and writes its queue in the next one.

    The transactions of the former role follow those of the new one, out of their order, in the log.
    """
    late = list(history.uncommitted)
    server.suspend()
    history.settle()
    if late:
        asyncio.get_running_loop().call_later(0.6, history.ledger.append, late)


@mutant(
    "zk-truncation-ignored",
    of="broker_impl.zookeeper.quorum.learner_rules:begin",
    source="ZOOKEEPER-2832",
    kind="mutation",
    symptom="invariant:zab-agreement",
    schedule="A former leader has logged what no other server has, and returns as a follower.",
)
def begin(history: History, kind: Type, zxid: int) -> None:
    """A follower keeps the transactions that its leader has it truncate.

    They were never committed, and stay in its state: it differs from all others from then on.
    """
    if kind is Type.TRUNC:
        history.last_zxid = zxid


@mutant(
    "zk-zxid-of-difference",
    of="broker_impl.zookeeper.quorum.learner_rules:begin",
    source="ZOOKEEPER-2355",
    kind="historic",
    symptom="invariant:zab-agreement",
    schedule="A follower loses its leader between DIFF and NEWLEADER.",
    tier=2,
)
def begin_ahead(history: History, kind: Type, zxid: int) -> None:
    """A follower takes the zxid in DIFF for its own before it has received what leads to it.

    If the connection is lost, it claims in the next election to have those transactions: the next
    leader does not send them, and they are missing on this server for ever.
    """
    if kind is Type.TRUNC:
        history.truncate(zxid)
    elif kind is Type.DIFF and zxid > history.last_zxid:
        history.last_zxid = zxid
        history.database.last_zxid = zxid


@mutant(
    "zk-state-in-memory",
    of="broker_impl.zookeeper.quorum.learner_rules:hold",
    source="ZOOKEEPER-3642",
    kind="historic",
    symptom="invariant:zab-agreement",
    schedule="A follower loses its leader between the leader's state and NEWLEADER, follows the "
    "next one, and restarts.",
    tier=2,
    is_planned=False,
)
def hold(history: History, state: Database) -> Database:
    """A state of the leader is used as soon as it has arrived, before it is on disk.

    If the connection is lost before NEWLEADER, the next leader sends what follows that state, and
    after a restart the server lacks everything before it.
    """
    history.database = state
    history.last_zxid = state.last_zxid
    history.window.clear()
    history._logged.clear()
    return state


@mutant(
    "zk-early-proposals-dropped",
    of="broker_impl.zookeeper.quorum.learner_rules:uncommitted",
    source="ZOOKEEPER-4394, ZOOKEEPER-3023",
    kind="historic",
    symptom="invariant:zab-stuck",
    schedule="A follower joins while clients write: a proposal arrives before NEWLEADER, and its "
    "commit after it.",
    tier=3,
    is_planned=False,
)
def uncommitted(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Transactions that were proposed before NEWLEADER, and are not committed by then, are dropped.

    Their commits find nothing, so the follower leaves its leader and begins again. Under load this
    repeats itself.
    """
    return []


@mutant(
    "zk-ack-before-write",
    of="broker_impl.zookeeper.quorum.learner_rules:log",
    source="M2",
    kind="mutation",
    symptom="invariant:zab-durable-acknowledgement",
    schedule="A follower acknowledges writes, and is killed.",
)
def log(history: History, proposals: Sequence[Proposal]) -> list[int]:
    """A follower acknowledges transactions before it has written them.

    The leader commits with that acknowledgement. A follower that is killed then lacks them.
    """
    if not isinstance(history.ledger, _LateLedger):
        late: Any = _LateLedger(history.ledger, [])
        history.ledger = late
    ledger: Any = history.ledger
    ledger._late += proposals
    asyncio.get_running_loop().call_later(LATE_S, ledger._write)
    history._logged.extend(proposals)
    history.last_zxid = proposals[-1].header.zxid
    return [proposal.header.zxid for proposal in proposals]


@mutant(
    "zk-log-not-written",
    of="broker_impl.zookeeper.quorum.learner_rules:log",
    source="M8",
    kind="mutation",
    symptom="invariant:zab-durable-acknowledgement",
    schedule="A follower acknowledges writes, and restarts.",
)
def log_nothing(history: History, proposals: Sequence[Proposal]) -> list[int]:
    """A follower applies what is committed although its log does not have it.

    Everything is right until it restarts. Then it has nothing since its last snapshot.
    """
    history._logged.extend(proposals)
    history.last_zxid = proposals[-1].header.zxid
    return [proposal.header.zxid for proposal in proposals]


@mutant(
    "zk-log-not-synced",
    of="broker_impl.zookeeper.store:append_durably",
    source="M3",
    kind="mutation",
    symptom="invariant:zab-durable-acknowledgement",
    schedule="Servers lose power after they have acknowledged writes.",
)
def append_durably(file: StoreFile, buffers: Sequence[bytes]) -> None:
    """Transactions are written to the log and acknowledged, but not synced.

    A killed process loses nothing, because the kernel has the bytes. A loss of power takes them.
    """
    file.append(buffers)


@mutant(
    "zk-disk-error-ignored",
    of="broker_impl.zookeeper.store:append_durably",
    source="ZOOKEEPER-4882, ZOOKEEPER-2247",
    kind="historic",
    symptom="invariant:zab-durable-acknowledgement",
    schedule="A disk is full or fails for a moment while a server logs.",
)
def append_durably_or_not(file: StoreFile, buffers: Sequence[bytes]) -> None:
    """An error of the log's disk is ignored, and the transaction acknowledged and applied.

    The log has a hole, or ends in the middle of a transaction: everything after it is lost at the
    next start.
    """
    try:
        file.append(buffers)
        file.fsync()
    except StorageError:
        return


@mutant(
    "zk-difference-in-place-of-truncation",
    of="broker_impl.zookeeper.quorum.synchronization:plan",
    source="ZOOKEEPER-2845",
    kind="mutation",
    symptom="invariant:zab-agreement",
    schedule="A former leader has logged what no other server has, and returns as a follower.",
)
def plan(learner: int, window: Sequence[int], last: int) -> Plan | None:
    """A leader sends the transactions that follow, and never has a learner truncate its log.

    What a former leader has logged alone stays in its log and state.
    """
    newest = window[-1] if window else last
    if learner > newest:
        return Plan(Type.DIFF, newest, newest)
    return _plan(learner, window, last)


_plan = synchronization.plan
