"""The server's data on disk: the transaction log, snapshots, and recovery from both.

A transaction is acknowledged after the sync that covers it. A snapshot is the whole state after one
transaction; the log continues in a new file after it. It is written in slices while later
transactions are applied, and may contain some of their effects. A starting server loads the newest
intact snapshot, replays the log from there, and truncates what a crash has torn.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import Protocol

from broker_impl.errors import StorageError
from broker_impl.zookeeper import snapshot, txn_log, zxids
from broker_impl.zookeeper.epochs import Epochs
from broker_impl.zookeeper.history import CannotTruncate
from broker_impl.zookeeper.snapshot_file import SUFFIX, SnapshotWriter
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal

log = logging.getLogger(__name__)

FOLDER = "version-2"
"""ZooKeeper's folder name, after the version of its formats."""
SECRET = "secret"
SECRET_BYTES = 32
INSTALLING = "installing."
"""Begins the name of a state of the leader while it replaces log and snapshots; its zxid follows.

Its contents are those of a snapshot. It is complete, because it is renamed to this name.
"""
SNAPSHOTS_KEPT = 3
RESERVED_BYTES = 1 << 20
"""How much a log file is lengthened at a time."""


class StoreFile(Protocol):
    """An open file that grows at its end."""

    def append(self, buffers: Sequence[bytes]) -> None:
        """Write all the buffers, in order."""

    def truncate(self, size: int) -> None:
        """Truncate the file to `size` bytes."""

    def reserve(self, size: int) -> None:
        """Lengthen the file by `size` zeros, which later appends overwrite."""

    def fsync(self) -> None:
        """Make every byte survive a crash."""

    def close(self) -> None:
        """Close the file; nothing is synced."""


class StoreDisk(Protocol):
    """What a store asks of its data directory; every failure is a StorageError."""

    def open(self, path: str, *, create: bool = False) -> StoreFile:
        """Open an existing file; with `create`, create it if it does not exist."""

    def read(self, path: str) -> bytes:
        """Read a whole file."""

    def write(self, path: str, data: bytes) -> None:
        """Replace a file; after a crash it holds the old or the new bytes. Durable on return."""

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""

    def list(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""

    def make_dir(self, path: str) -> None:
        """Create a directory whose parent exists."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file; one that has the new name is replaced."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""

    def lock(self) -> None:
        """Lock the data directory; StorageError if another process has locked it."""

    def unlock(self) -> None:
        """Release the lock."""


def append_durably(file: StoreFile, buffers: Sequence[bytes]) -> None:
    """Write at the end of a log file, and sync it: only then are transactions acknowledged.

    Raises:
        StorageError: it is unknown whether they are stored; the server must stop (ZOOKEEPER-2247).
    """
    file.append(buffers)
    file.fsync()


class Store:
    """A data directory, locked by one server.

    Args:
        disk: the data directory; locked as long as the store is open.
        snap_count: transactions between two snapshots.
    """

    def __init__(self, disk: StoreDisk, *, snap_count: int = 100_000) -> None:
        disk.lock()
        self._disk = disk
        self._snap_count = snap_count
        self._since_snapshot = 0
        self._file: StoreFile | None = None
        self._room = 0
        """How many bytes are reserved at the end of the log file."""
        self._snapshot: SnapshotWriter | None = None
        self._epochs = Epochs(disk, FOLDER)
        if not disk.exists(FOLDER):
            disk.make_dir(FOLDER)
        disk.fsync_dir("")  # always: the server that made it may have been killed before this line

    def secret(self, entropy: Callable[[int], bytes]) -> bytes:
        """The secret for session passwords: drawn once, then kept on disk."""
        if not self._disk.exists(SECRET):
            self._disk.write(SECRET, entropy(SECRET_BYTES))
        return self._disk.read(SECRET)

    @property
    def accepted_epoch(self) -> int:
        """The highest epoch whose leader this server has promised to follow."""
        return self._epochs.accepted

    @property
    def current_epoch(self) -> int:
        """The epoch of the leader whose history this server has taken over."""
        return self._epochs.current

    def accept_epoch(self, epoch: int) -> None:
        """Set the accepted epoch, durable on return."""
        self._epochs.accept(epoch)

    def enter_epoch(self, epoch: int) -> None:
        """Set the current epoch, durable on return."""
        self._epochs.enter(epoch)

    def recover(self) -> Database:
        """The state after the last intact transaction, committed or not.

        Raises:
            StorageError: data is missing or damaged in a way that a crash does not explain.
        """
        self._end_file()
        self.stop_snapshot()
        self._since_snapshot = 0
        self._end_installation()
        self._remove_partial()
        database = self._newest_snapshot()
        starts = self._zxids(txn_log.name)
        for position, start in enumerate(starts, 1):
            is_last = position == len(starts)
            if is_last or starts[position] > database.last_zxid + 1:
                self._replay(database, start, is_last=is_last)
        newest = max(self._zxids(snapshot.name), default=0)
        if database.last_zxid < newest:
            raise StorageError(
                f"{snapshot.name(newest)} is damaged, and the log ends at {database.last_zxid:#x}"
            )
        latest = max(max(node.mzxid, node.pzxid) for node in database.nodes.values())
        if database.last_zxid < latest:
            raise StorageError(
                f"{snapshot.name(newest)} has changes of transaction {latest:#x}, "
                f"and the log ends at {database.last_zxid:#x}"
            )
        self._epochs.load(database.last_zxid)
        return database

    def append(self, proposals: Sequence[Proposal]) -> None:
        """Write and sync; durable on return.

        Raises:
            StorageError: it is unknown whether these transactions are stored; stop writing.
        """
        entries = txn_log.entries(proposals)
        if self._file is not None:
            self._reserve(self._file, len(entries))
            append_durably(self._file, [entries])
        else:
            path = self._path(txn_log.name(proposals[0].header.zxid))
            self._file = self._disk.open(path, create=True)
            self._room = 0
            self._reserve(self._file, len(txn_log.HEADER) + len(entries))
            append_durably(self._file, [txn_log.HEADER, entries])
            self._disk.fsync_dir(FOLDER)
        self._since_snapshot += len(proposals)

    def _reserve(self, file: StoreFile, size: int) -> None:
        """Lengthen the log in advance, as Apache ZooKeeper does: its syncs are faster then."""
        if size > self._room:
            self._room = max(RESERVED_BYTES, size)
            file.reserve(self._room)
        self._room -= size

    def since(self, zxid: int) -> list[Proposal] | None:
        """Return the logged transactions after a zxid, in order.

        None if the log does not reach back to it, or if its history does not contain that zxid.
        """
        found: list[Proposal] = []
        starts = self._zxids(txn_log.name)
        last = zxid if self._begins(zxid, starts) else None
        for start, following in zip_longest(starts, starts[1:]):
            if following is not None and following <= zxid:
                continue
            path = self._path(txn_log.name(start))
            for proposal, _ in txn_log.read(self._disk.read(path), path):
                this = proposal.header.zxid
                if last is None:
                    last = this if this == zxid else None
                elif this > zxid:
                    if not zxids.follows(this, last):
                        return None
                    last = this
                    found.append(proposal)
        return found if last is not None else None

    def _begins(self, zxid: int, starts: Sequence[int]) -> bool:
        """Return whether the log's history begins right after a zxid, which no entry has."""
        snapshots = self._zxids(snapshot.name)
        is_start = any(zxids.follows(start, zxid) for start in starts)
        return is_start and (zxid in snapshots if zxid else not snapshots)

    def truncate(self, zxid: int) -> None:
        """Remove all transactions above a zxid from the log; `recover` must follow.

        Raises:
            CannotTruncate: a snapshot holds later transactions, so they cannot be removed.
        """
        self._end_file()
        self.stop_snapshot()
        if any(kept > zxid for kept in self._zxids(snapshot.name)):
            raise CannotTruncate(f"a snapshot is newer than {zxid:#x}, where the log must end")
        # The newest file first: after a crash, what is left has no gap.
        for start in reversed(self._zxids(txn_log.name)):
            path = self._path(txn_log.name(start))
            if start > zxid:
                self._disk.remove(path)
                self._disk.fsync_dir(FOLDER)
            else:
                self._cut(path, zxid)

    def _cut(self, path: str, zxid: int) -> None:
        end = len(txn_log.HEADER)
        data = self._disk.read(path)
        for proposal, at in txn_log.read(data, path):
            if proposal.header.zxid <= zxid:
                end = at
        if end < len(data):
            file = self._disk.open(path)
            file.truncate(end)
            file.fsync()
            file.close()

    def install(self, database: Database) -> None:
        """Replace the log and all snapshots by a state of the leader, durable on return.

        The log may hold transactions that the leader's history does not have, so no part of it may
        be replayed over that state (ZOOKEEPER-2832).
        """
        self._end_file()
        self.stop_snapshot()
        name = f"{INSTALLING}{database.last_zxid:x}"
        self._disk.write(self._path(name), snapshot.encode(database))
        self._end_installation()
        self._since_snapshot = 0

    def _end_installation(self) -> None:
        """Replace everything by an installed state; a crash may have left that undone."""
        for zxid in self._zxids(lambda zxid: f"{INSTALLING}{zxid:x}"):
            for start in reversed(self._zxids(txn_log.name)):
                self._disk.remove(self._path(txn_log.name(start)))
            for other in self._zxids(snapshot.name):
                self._disk.remove(self._path(snapshot.name(other)))
            self._disk.fsync_dir(FOLDER)
            self._disk.rename(self._path(f"{INSTALLING}{zxid:x}"), self._path(snapshot.name(zxid)))
            self._disk.fsync_dir(FOLDER)

    def applied(self, database: Database) -> None:
        """Write a slice of a snapshot if one is due or begun.

        The log may hold more than the database has applied, and transactions may be applied before
        the next slice.
        """
        if self._snapshot is None:
            if self._since_snapshot < self._snap_count:
                return
            self._since_snapshot = 0
            self._end_file()
            self._snapshot = SnapshotWriter(self._disk, FOLDER, database)
        if self._snapshot.step():
            self._snapshot = None
            self._purge()

    @property
    def is_writing_snapshot(self) -> bool:
        """Has a snapshot been begun that is not complete?"""
        return self._snapshot is not None

    def stop_snapshot(self) -> None:
        """Abandon a snapshot that is not complete; another one is begun when that is due."""
        if self._snapshot is not None:
            self._snapshot.abandon()
            self._snapshot = None

    def close(self) -> None:
        """Close the log file, and unlock the directory."""
        self._end_file()
        self.stop_snapshot()
        self._disk.unlock()

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remove_partial(self) -> None:
        """Remove the snapshots that a former life of the server has not completed."""
        for name in self._disk.list(FOLDER):
            if name.endswith(SUFFIX):
                self._disk.remove(self._path(name))

    def _newest_snapshot(self) -> Database:
        zxids = self._zxids(snapshot.name)
        for zxid in reversed(zxids):
            try:
                return snapshot.decode(self._disk.read(self._path(snapshot.name(zxid))), zxid)
            except StorageError as error:
                log.warning("%s; an older snapshot is used, if its log still exists", error)
        return Database()

    def _replay(self, database: Database, start: int, *, is_last: bool) -> None:
        path = self._path(txn_log.name(start))
        data = self._disk.read(path)
        end = 0
        for proposal, at in txn_log.read(data, path):
            end = at
            zxid = proposal.header.zxid
            if zxid <= database.last_zxid:
                continue
            if not zxids.follows(zxid, database.last_zxid):
                raise StorageError(f"{path}: transaction {zxid:#x} follows {database.last_zxid:#x}")
            database.replay(proposal)
            self._since_snapshot += 1
        torn = len(data[end:].rstrip(b"\0"))  # log files are filled with zeros in advance
        if is_last:
            if torn:
                log.warning("%s: the log is incomplete at %d; %d bytes were cut", path, end, torn)
            self._settle(path, data[:end])
        elif end == 0 or torn:
            raise StorageError(
                f"{path}: the log is damaged at {end}, and has more transactions after that"
            )

    def _settle(self, path: str, data: bytes) -> None:
        """Write what was found in the last log file again, as it is served from now on.

        A sync would not be enough. If a sync has failed before, in this or a former process, the
        kernel may never write some of the pages, although later syncs succeed.
        """
        if data:
            self._disk.write(path, data)
        else:
            self._disk.remove(path)
            self._disk.fsync_dir(FOLDER)

    def _purge(self) -> None:
        """Keep three snapshots, and the log from the oldest of them on."""
        snapshots = self._zxids(snapshot.name)
        for zxid in snapshots[:-SNAPSHOTS_KEPT]:
            self._disk.remove(self._path(snapshot.name(zxid)))
        oldest = snapshots[-SNAPSHOTS_KEPT:][0]
        starts = self._zxids(txn_log.name)
        for start, following in pairwise(starts):
            if following <= oldest + 1:
                self._disk.remove(self._path(txn_log.name(start)))

    def _zxids(self, name: Callable[[int], str]) -> list[int]:
        """The zxids in the names of the files of one kind, in order; other files are ignored."""
        found = (zxid_of(file, name) for file in self._disk.list(FOLDER))
        return sorted(zxid for zxid in found if zxid is not None)

    def _path(self, name: str) -> str:
        return f"{FOLDER}/{name}"


def zxid_of(file: str, name: Callable[[int], str]) -> int | None:
    """Return the zxid in the name of a file; None if it is of another kind, or not complete.

    ``name`` returns the name of a file of this kind.
    """
    try:
        zxid = int(file.removeprefix(name(0)[:-1]), 16)
    except ValueError:
        return None
    return zxid if file == name(zxid) else None
