"""The history of a server: transactions in its log, those of them that are committed, their state.

Everything that changes the log or the state goes through :class:`History`. A transaction is logged
first and committed later; only committed ones are applied while the server has a role. A server
without a leader counts all that it has logged as its history, as it does after a restart.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from broker_impl.errors import StorageError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.tree import Applied, Database
from broker_impl.zookeeper.txn_records import Proposal

WINDOW = 500
"""The number of committed transactions that are kept for learners, unless given."""


class Ledger(Protocol):
    """The data directory of a server; every failure is a StorageError."""

    @property
    def accepted_epoch(self) -> int:
        """The highest epoch whose leader this server has promised to follow."""

    @property
    def current_epoch(self) -> int:
        """The epoch of the leader whose history this server has taken over."""

    def recover(self) -> Database:
        """Return the state after the last transaction in the log."""

    def append(self, proposals: Sequence[Proposal]) -> None:
        """Write these transactions to the log, durable on return."""

    def truncate(self, zxid: int) -> None:
        """Remove all transactions above a zxid; CannotTruncate if a snapshot contains some."""

    def since(self, zxid: int) -> list[Proposal] | None:
        """Return the transactions after a zxid; None if the log does not reach back to it."""

    def install(self, database: Database) -> None:
        """Replace everything by a state that was received."""

    def applied(self, database: Database) -> None:
        """Write a slice of a snapshot if one is due or begun; the database may have changed."""

    @property
    def is_writing_snapshot(self) -> bool:
        """Has a snapshot been begun that is not complete?"""

    def stop_snapshot(self) -> None:
        """Abandon a snapshot that is not complete."""

    def accept_epoch(self, epoch: int) -> None:
        """Set the accepted epoch, durable on return."""

    def enter_epoch(self, epoch: int) -> None:
        """Set the current epoch, durable on return."""


Listener = Callable[[Proposal, Applied], None]


class CannotTruncate(StorageError):
    """A snapshot contains what a leader does not have; the log and the state are unchanged."""


class OutOfOrder(Exception):
    """A transaction or a commit that cannot follow what the server has; it leaves its leader."""


class History:
    """The log and the state of one server."""

    def __init__(
        self, ledger: Ledger, configuration: str | None = None, *, window: int = WINDOW
    ) -> None:
        """Recover the state.

        configuration: the text of ``/zookeeper/config``; None for a server that is alone.
        window: the number of committed transactions that are kept for learners.
        """
        self.ledger = ledger
        self._configuration = configuration
        self.database = self._configured(ledger.recover())
        self.last_zxid = self.database.last_zxid
        """The zxid of the last transaction in the log."""
        self.window: deque[Proposal] = deque(maxlen=window)
        """The latest committed transactions, without a gap."""
        self.listener: Listener | None = None
        """Is called with each transaction that is applied, while the server serves clients."""
        self._logged: deque[Proposal] = deque()

    @property
    def uncommitted(self) -> Sequence[Proposal]:
        """The transactions in the log that are not known to be committed, in order."""
        return self._logged

    def log(self, proposals: Sequence[Proposal]) -> None:
        """Write transactions to the log, durable on return.

        Raises:
            OutOfOrder: one does not follow the last transaction.
            StorageError: it is unknown whether they are stored; the server must stop.
        """
        last = self.last_zxid
        for proposal in proposals:
            zxid = proposal.header.zxid
            if not zxids.follows(zxid, last):
                raise OutOfOrder(f"transaction {zxid:#x} does not follow {last:#x}")
            last = zxid
        self.ledger.append(proposals)
        self._logged.extend(proposals)
        self.last_zxid = last

    def commit(self, zxid: int) -> None:
        """Apply the next transaction of the log.

        Raises:
            OutOfOrder: the next one has another zxid.
        """
        if not self._logged or self._logged[0].header.zxid != zxid:
            found = f"{self._logged[0].header.zxid:#x}" if self._logged else "none"
            raise OutOfOrder(f"transaction {zxid:#x} is committed, but the next one is {found}")
        proposal = self._logged.popleft()
        applied = self.database.apply(proposal)
        self.window.append(proposal)
        if self.listener is not None:
            self.listener(proposal, applied)

    def commit_to(self, zxid: int) -> None:
        """Apply the transactions of the log up to a zxid."""
        while self._logged and self._logged[0].header.zxid <= zxid:
            self.commit(self._logged[0].header.zxid)

    def rest(self) -> bool:
        """Write a slice of a snapshot if one is due; called between two turns.

        Returns whether there is more to write, so that another turn is due without requests.
        """
        self.ledger.applied(self.database)
        return self.ledger.is_writing_snapshot

    def settle(self) -> None:
        """Apply everything in the log, as a restart would (ZOOKEEPER-2845): there is no leader.

        It may not be committed, so it must not get into a snapshot that is being written (1549).
        """
        self.listener = None
        self.ledger.stop_snapshot()
        self.commit_to(self.last_zxid)

    def truncate(self, zxid: int) -> None:
        """Remove all transactions above a zxid from the log and from the state."""
        self.ledger.truncate(zxid)
        self._reload()

    def install(self, database: Database) -> None:
        """Replace the log and the state by a state of the leader, durable on return."""
        self.ledger.install(database)
        self.database = self._configured(database)
        self.last_zxid = database.last_zxid
        self.window.clear()
        self._logged.clear()

    def committed_since(self, zxid: int) -> list[Proposal] | None:
        """Return the committed transactions after a zxid; None if they are not known any more."""
        if self.window and self.window[0].header.zxid <= zxid:
            return [proposal for proposal in self.window if proposal.header.zxid > zxid]
        last = self.database.last_zxid
        if zxid == last:
            return []
        found = self.ledger.since(zxid)
        if found is None:
            return None
        return [proposal for proposal in found if proposal.header.zxid <= last]

    def as_loaded(self, ledger: Ledger) -> "History":
        """Return the history that this server would have if it started with this ledger."""
        return History(ledger, self._configuration)

    def _reload(self) -> None:
        self.database = self._configured(self.ledger.recover())
        self.last_zxid = self.database.last_zxid
        self.window.clear()
        self._logged.clear()

    def _configured(self, database: Database) -> Database:
        """Set what each server knows by itself in a state that was read."""
        if self._configuration is not None:
            database.configure(self._configuration)
        return database
