"""Which processes a harness has started, written down where the next harness finds them.

A harness that was SIGKILLed cannot end its nodes; the next one does. A process is told by its id
*and* its start, so that a stranger who was given a recycled id is never touched. Between its start
and its being written down it is told by a mark in its environment.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import psutil

from harness.cluster.state import state_folder as state_folder

MARK = "FAULTLINE_STARTED_BY"
"""The variable that every node has in its environment."""
GONE_S = 5.0
"""How long the system may take to end what was killed."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START = 22 - 3
"""Of the fields in ``/proc/<pid>/stat`` that come after the name, the first of which is the third
(proc(5): starttime)."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A process, told apart from all that ever had its id."""

    pid: int
    started: str
    """When, as :func:`start_of` has it."""
    what: str = ""

    def alive(self) -> bool:
        """Is this very process still there (a zombie is not)?"""
        return self.process() is not None

    def process(self) -> psutil.Process | None:
        """The process itself, ``None`` when it has gone."""
        try:
            process = psutil.Process(self.pid)
            same = start_of(self.pid) == self.started
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start_of(pid: int) -> str:
    """When a process began: which boot that was, and the kernel's ticks since then.

    The time of day would not do: it is reckoned from that of the boot, which moves when the clock
    is set. Where there is no ``/proc`` there is nothing better. Raises ``psutil.NoSuchProcess``.
    """
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        return f"epoch:{psutil.Process(pid).create_time()!r}"
    try:
        _, _, after_name = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    except OSError:
        raise psutil.NoSuchProcess(pid) from None
    return f"{boot}:{after_name.split()[_START]}"


def known(pid: int, what: str = "") -> Known | None:
    """What to write down of a process; ``None`` when it has gone already."""
    try:
        return Known(pid=pid, started=start_of(pid), what=what)
    except psutil.NoSuchProcess:
        return None


NAMESPACE = "faultline.owner-pidns"
HOST = "faultline.owner-host"


def place() -> Mapping[str, str]:
    """The host and the namespace of process ids that this process is in: only from there can one
    say whether a process lives."""
    namespace = Path("/proc/self/ns/pid")
    return {
        NAMESPACE: str(namespace.readlink()) if namespace.is_symlink() else "",
        HOST: socket.gethostname(),
    }


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One harness's file."""

    owner: Known
    place: dict[str, str] = {}
    """Where its owner runs: several machines or containers may share a home."""
    engine: bool = False
    """Does the container engine hold something of it?"""
    mark: str = ""
    """What the processes have in their environment; empty: nothing."""
    processes: tuple[Known, ...] = ()

    @property
    def is_stray(self) -> bool:
        """Has the owner gone, for all that can be said from here?"""
        return (not self.place or self.place == dict(place())) and not self.owner.alive()


class Registry:
    """The processes of one cluster; the file goes when the last of them has."""

    def __init__(self, name: str, folder: Path | None = None, copy: Path | None = None) -> None:
        """``name`` tells a harness's clusters apart; ``copy`` gets the same list (a run's own)."""
        owner = known(os.getpid(), "harness")
        assert owner is not None, "this process exists"
        self._owner = owner
        self._folder = folder or state_folder()
        self._path = self._folder / f"{owner.pid}-{name}.json"
        self._copy = copy
        self._mark = f"{owner.pid} {owner.started} {name}"
        self._starting = 0
        self._engine = False
        self._processes: dict[int, Known] = {}

    @contextlib.contextmanager
    def starting(self) -> Iterator[dict[str, str]]:
        """Around the start of a process up to :meth:`add`; gives what its environment must hold.

        Were this harness killed in between, nobody else would know of the process.
        """
        self._starting += 1
        self._write()
        try:
            yield {MARK: self._mark}
        finally:
            self._starting -= 1
            self._write()

    def uses_engine(self, uses: bool) -> None:
        """Write down whether the container engine holds something of this cluster."""
        self._engine = uses
        self._write()

    def add(self, pid: int, what: str) -> None:
        """Write a process down; at once, for the next moment may be our last."""
        if (process := known(pid, what)) is not None:
            self._processes[pid] = process
            self._write()

    def remove(self, pid: int) -> None:
        """Strike a process that has ended and was waited for."""
        if self._processes.pop(pid, None) is not None:
            self._write()

    def _write(self) -> None:
        processes = tuple(self._processes.values())
        entry = Entry(
            owner=self._owner,
            place=dict(place()),
            engine=self._engine,
            mark=self._mark,
            processes=processes,
        )
        if self._copy is not None:
            _replace(self._copy, msgspec.json.encode(entry))
        if not processes and not self._starting and not self._engine:
            self._path.unlink(missing_ok=True)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        _replace(self._path, msgspec.json.encode(entry))


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that another process finds the former content or the new one, never half."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)


def reap(folder: Path | None = None) -> list[Known]:
    """End what harnesses that are gone have left behind, and wait for that; what was ended.

    The entry of one that used the container engine stays: :func:`left_with_engine`.
    """
    reaped: list[Known] = []
    folder = folder or state_folder()
    for path in sorted(folder.glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
        except (msgspec.MsgspecError, OSError):
            path.unlink(missing_ok=True)
            continue
        if not entry.is_stray:
            continue
        strays = {stray.pid: stray for stray in (*_marked(entry.mark), *entry.processes)}
        for stray in strays.values():
            process = stray.process()
            if process is not None and _is_proved(process, entry.mark):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
                reaped.append(stray)
        if not entry.engine:
            path.unlink(missing_ok=True)
    for draft in sorted(folder.glob("*.draft")):
        owner = draft.name.partition("-")[0]
        if not (owner.isdecimal() and psutil.pid_exists(int(owner))):
            draft.unlink(missing_ok=True)
    end_s = time.monotonic() + GONE_S
    while any(stray.alive() for stray in reaped) and time.monotonic() < end_s:
        time.sleep(0.005)
    return reaped


def left_with_engine(folder: Path | None = None) -> list[Path]:
    """The entries of harnesses that are gone and have left something with the container engine; to
    be removed when the engine has nothing of them any more."""
    found = []
    for path in sorted((folder or state_folder()).glob("*.json")):
        with contextlib.suppress(msgspec.MsgspecError, OSError):
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
            if entry.engine and entry.is_stray:
                found.append(path)
    return found


def _is_proved(process: psutil.Process, mark: str) -> bool:
    """Does a process that an entry lists belong to this user, and carry the entry's mark?"""
    try:
        is_own = process.uids().real == os.getuid()
        return is_own and (not mark or process.environ().get(MARK) == mark)
    except psutil.Error:
        return False


def _marked(mark: str) -> Iterator[Known]:
    """The processes with this mark, whether they were written down or not."""
    if not mark:
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has just ended, or is somebody else's
            if process.environ().get(MARK) == mark and (one := known(process.pid)) is not None:
                yield one
