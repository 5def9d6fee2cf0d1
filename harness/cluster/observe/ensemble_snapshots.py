"""Snapshots of a simulated ZooKeeper ensemble: the state of its servers as values of the model.

The log of a server is read from its disk, not from the server's memory, so that a transaction that
the server takes for logged, and is not, is seen. Parts that have not changed are the same objects.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from broker_impl.zookeeper import snapshot, txn_log
from broker_impl.zookeeper.program import Program
from broker_impl.zookeeper.quorum.following import Following
from broker_impl.zookeeper.quorum.leader import Phase
from broker_impl.zookeeper.quorum.learner import Phase as LearnerPhase
from broker_impl.zookeeper.quorum.notifications import State
from broker_impl.zookeeper.store import FOLDER, zxid_of
from broker_impl.zookeeper.tree import Database
from harness.simulation.disk import SimDisk
from harness.simulation.disk_inode import Inode
from harness.simulation.disk_names import Directory
from model.ensemble_snapshot import (
    EnsembleState,
    Entries,
    Entry,
    MemberRole,
    MemberState,
)

DIGESTS_EVERY: Final = 8
"""A checksum of a server's state is taken whenever this many of its transactions were applied, and
when its role changes."""

_ROLES: Final[Mapping[State, MemberRole]] = {
    State.LOOKING: "looking",
    State.LEADING: "leading",
    State.FOLLOWING: "following",
    State.OBSERVING: "observing",
}
_ZXID = slice(12, 20)
"""The zxid in the header of a transaction: after a session's id and a request's number."""


def digest(database: Database) -> int:
    """Return a checksum of all nodes and sessions, in no matter what order they are stored."""
    out = bytearray()
    for path, node in sorted(database.nodes.items()):
        out += path.encode()
        out += b"\0" if node.data is None else b"\1" + node.data
        node.stat().write(out)
        for acl in node.acl:
            acl.write(out)
        out += f"{node.creates} {sorted(node.children)}".encode()
    owned = sorted((owner, sorted(paths)) for owner, paths in database.ephemerals.items())
    out += repr((sorted(database.sessions.items()), owned)).encode()
    return zlib.crc32(out)


class EnsembleSnapshots:
    """Takes the snapshots of one ensemble; it must be notified of every start of a server."""

    def __init__(self) -> None:
        self._lives: dict[int, _Life] = {}
        self._starts: dict[int, int] = {}
        self._last: EnsembleState | None = None
        self._servers: tuple[int, ...] = ()
        self._voters: tuple[int, ...] = ()

    def started(self, program: Program, disk: SimDisk, is_alive: Callable[[], bool]) -> None:
        """Register a new life of a server, whose snapshots are taken while ``is_alive``."""
        number = program.settings.me
        self._starts[number] = self._starts.get(number, 0) + 1
        self._lives[number] = _Life(self._starts[number], program, disk, is_alive)
        members = program.settings.members
        self._servers = tuple(sorted(member.id for member in members))
        self._voters = tuple(sorted(member.id for member in members if not member.observes))

    def take(self) -> EnsembleState | None:
        """Take a snapshot; ``None`` before the first server has started."""
        if not self._lives:
            return None
        members, down = {}, {}
        for number in sorted(self._lives):
            life = self._lives[number]
            if life.is_alive():
                members[number] = life.look()
            elif (left := life.left_behind()) is not None:
                down[number] = left
        last = self._last
        if last is None or not (_same(members, last.members) and _same(down, last.down)):
            self._last = EnsembleState(
                voters=self._voters, servers=self._servers, members=members, down=down
            )
        return self._last

    def committed(self) -> Database | None:
        """Return the state of the server that has applied the most of what is committed.

        ``None`` if no server served clients when the last snapshot was taken: only those that do
        know what is committed.
        """
        members = {} if self._last is None else self._last.members
        serving = [server for server, member in members.items() if member.is_established]
        if not serving:
            return None
        return self._lives[max(serving, key=lambda server: members[server].applied)].database


def _same(now: Mapping[int, MemberState], before: Mapping[int, MemberState]) -> bool:
    """Return whether two snapshots have the same servers in the same states."""
    return now.keys() == before.keys() and all(now[each] is before[each] for each in now)


class _Role(NamedTuple):
    """What a server does at the moment."""

    name: MemberRole = "looking"
    epoch: int = 0
    has_quorum: bool = False
    is_established: bool = False
    have_history: tuple[int, ...] = ()
    acknowledged: tuple[tuple[int, int], ...] = ()


_LOOKING: Final = _Role()


def _role(program: Program) -> _Role:
    peer = program.peer
    role = None if peer is None else peer.role
    if peer is None or role is None:
        return _LOOKING
    if isinstance(role, Following):
        learner = role.state
        return _Role(
            _ROLES[peer.state], learner.epoch, False, learner.phase is LearnerPhase.SERVING
        )
    leader = role.state
    if leader.phase not in (Phase.SYNCHRONIZATION, Phase.BROADCAST):
        return _Role("leading")
    return _Role(
        "leading",
        leader.epoch,
        True,
        leader.phase is Phase.BROADCAST,
        tuple(sorted(leader.have_history)),
        tuple(leader.acknowledged.items()),
    )


class _Life:
    """One life of one server."""

    def __init__(
        self, number: int, program: Program, disk: SimDisk, is_alive: Callable[[], bool]
    ) -> None:
        self._number = number
        self._program = program
        self.is_alive = is_alive
        self._left_behind: MemberState | None = None
        self._log = _DiskLog(disk)
        self._last: MemberState | None = None
        self._seen: tuple[object, ...] = ()
        self._role: _Role = _LOOKING
        self._digested = 0

    def look(self) -> MemberState:
        history = self._program.history
        ledger, database, role = history.ledger, history.database, _role(self._program)
        seen = (
            role,
            ledger.accepted_epoch,
            ledger.current_epoch,
            history.last_zxid,
            database.last_zxid,
            id(database),
        )
        if self._last is not None and seen == self._seen:
            return self._last
        is_other = self._role[:4] != role[:4] or self._seen[-1:] != seen[-1:]
        self._seen, self._role = seen, role
        wants_digest = is_other or database.last_zxid - self._digested >= DIGESTS_EVERY
        if wants_digest:
            self._digested = database.last_zxid
        base, log = self._log.read()
        self._last = MemberState(
            life=self._number,
            role=role.name,
            epoch=role.epoch,
            has_quorum=role.has_quorum,
            is_established=role.is_established,
            accepted_epoch=ledger.accepted_epoch,
            current_epoch=ledger.current_epoch,
            base=base,
            log=log,
            applied=database.last_zxid,
            acknowledged=dict(role.acknowledged),
            have_history=role.have_history,
            digest=digest(database) if wants_digest else None,
        )
        return self._last

    def left_behind(self) -> MemberState | None:
        """Return what is on the disk after the end: it may have logged after the last snapshot."""
        if self._left_behind is None and self._last is not None:
            base, log = self._log.read()
            self._left_behind = MemberState(
                life=self._number,
                accepted_epoch=self._last.accepted_epoch,
                current_epoch=self._program.history.ledger.current_epoch,
                base=base,
                log=log,
            )
        return self._left_behind

    @property
    def database(self) -> Database:
        return self._program.history.database


class _File:
    """The entries of one log file, as far as they were read."""

    def __init__(self, inode: Inode) -> None:
        self.inode = inode
        self.entries: list[Entry] = []
        self.ends: list[int] = []

    def read(self) -> bool:
        """Read what was added; False if entries that were read before are gone."""
        data = self.inode.data
        at = self.ends[-1] if self.ends else len(txn_log.HEADER)
        is_same = not self.ends or self._still_has_last(data)
        if not is_same:
            self.entries, self.ends, at = [], [], len(txn_log.HEADER)
        for body, end in txn_log.bodies(data, at):
            self.entries.append(_entry(body))
            self.ends.append(end)
        return is_same

    def durable(self) -> int:
        """Return how many entries, from the first one on, survive a power loss."""
        return bisect_right(self.ends, self.inode.synced)

    def _still_has_last(self, data: bytearray) -> bool:
        at = self.ends[-2] if len(self.ends) > 1 else len(txn_log.HEADER)
        body, end = next(txn_log.bodies(data, at), (b"", 0))
        return end == self.ends[-1] and _entry(body) == self.entries[-1]


def _entry(body: bytes) -> Entry:
    return Entry(int.from_bytes(body[_ZXID], "big"), zlib.crc32(body))


class _DiskLog:
    """The transactions in the log files of a server, read past the server."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._base = 0
        self._all: list[Entry] = []
        self._files: list[_File] = []
        self._purged = 0
        """How many of the entries were in files that do not exist any more."""

    def read(self) -> tuple[int, Entries]:
        """Return the zxid of the state before the first entry, and the entries."""
        folder = self._disk.names.directory(FOLDER)
        files = self._look(folder)
        if self._extends(files):
            known = len(self._all) - self._purged
            self._all += list(chain.from_iterable(file.entries for file in files))[known:]
        else:
            self._all = list(chain.from_iterable(file.entries for file in files))
            self._purged = 0
            self._base = _base(folder, self._all)
        self._files = files
        return self._base, Entries(self._all, len(self._all), self._durable(folder))

    def _look(self, folder: Directory) -> list[_File]:
        """Return the log files that exist, in order; those that are known are the same objects."""
        known = {id(file.inode): file for file in self._files}
        found = sorted((zxid, inode) for zxid, inode in _numbered(folder, txn_log.name))
        return [known.get(id(inode)) or _File(inode) for _, inode in found]

    def _extends(self, files: list[_File]) -> bool:
        """Return whether the files have what they had before, but for the oldest files."""
        are_same = [file.read() for file in files]
        gone = len(self._files) - sum(file in self._files for file in files)
        if (
            not all(are_same)
            or not self._files
            or self._files[gone:] != files[: len(self._files) - gone]
        ):
            return False
        if gone == len(self._files):
            return False  # a state was installed
        self._purged += sum(len(file.entries) for file in self._files[:gone])
        return True

    def _durable(self, folder: Directory) -> int:
        durable = self._purged
        for file in self._files:
            if not any(node is file.inode for node in folder.durable.values()):
                break
            durable += file.durable()
            if file.durable() < len(file.entries):
                break
        return durable


def _numbered(folder: Directory, name: Callable[[int], str]) -> Iterator[tuple[int, Inode]]:
    """Yield the files of one kind, each with the zxid in its name."""
    for file, node in folder.names.items():
        zxid = zxid_of(file, name)
        if zxid is not None and isinstance(node, Inode):
            yield zxid, node


def _base(folder: Directory, entries: Sequence[Entry]) -> int:
    snapshots = [zxid for zxid, _ in _numbered(folder, snapshot.name)]
    if not entries:
        return max(snapshots, default=0)
    first = entries[0].zxid
    earlier = [zxid for zxid in snapshots if zxid < first]
    if earlier:
        return max(earlier)
    # The log begins within an epoch if its earlier files were purged: a later snapshot has them.
    return first - 1 if snapshots else 0
