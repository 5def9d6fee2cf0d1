"""Records the processes that a harness starts, so that the next harness can end them.

A harness that was SIGKILLed cannot end its nodes; the next one does. A process is identified by its
id *and* its start time, so that an unrelated process with a recycled id is never touched. Between
its start and its registration it is identified by a mark in its environment.
"""

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import psutil

from harness.cluster.state_folder import state_folder as state_folder

MARK = "FAULTLINE_STARTED_BY"
"""The variable that every node has in its environment."""
GONE_S = 5.0
"""How long the system may take to end processes after SIGKILL."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START = 22 - 3
"""The index of the start time among the fields of ``/proc/<pid>/stat`` after the name.

It is field 22 (proc(5): starttime); the first field after the name is field 3.
"""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A process, distinguished from all others that ever had its id."""

    pid: int
    started: str
    """The start time, in the format of :func:`start_of`."""
    what: str = ""

    def alive(self) -> bool:
        """Return whether this very process still runs (a zombie does not)."""
        return self.process() is not None

    def process(self) -> psutil.Process | None:
        """The process itself; ``None`` if it has ended."""
        try:
            process = psutil.Process(self.pid)
            same = start_of(self.pid) == self.started
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def start_of(pid: int) -> str:
    """The start time of a process: the id of the boot, and the kernel's ticks since then.

    The time of day would not do: it is computed from that of the boot, which moves when the clock
    is set. Without ``/proc`` it is used nevertheless. Raises ``psutil.NoSuchProcess``.
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
    """The record of a process; ``None`` if it has ended already."""
    try:
        return Known(pid=pid, started=start_of(pid), what=what)
    except psutil.NoSuchProcess:
        return None


NAMESPACE = "faultline.owner-pidns"
HOST = "faultline.owner-host"


def place() -> Mapping[str, str]:
    """The host and the namespace of process ids in which this process runs.

    Only there can one decide whether a process is alive.
    """
    namespace = Path("/proc/self/ns/pid")
    return {
        NAMESPACE: str(namespace.readlink()) if namespace.is_symlink() else "",
        HOST: socket.gethostname(),
    }


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The file of one harness."""

    owner: Known
    place: dict[str, str] = {}
    """The place of its owner: several machines or containers may share a home."""
    engine: bool = False
    """Whether the container engine may hold objects of the harness."""
    mark: str = ""
    """The mark in the environment of its processes; empty if there is none."""
    processes: tuple[Known, ...] = ()

    @property
    def is_stray(self) -> bool:
        """Return whether the owner has ended, as far as this place can decide that."""
        return (not self.place or self.place == dict(place())) and not self.owner.alive()


class Registry:
    """The processes of one cluster; their file is removed when the last of them has ended."""

    def __init__(self, name: str, folder: Path | None = None, copy: Path | None = None) -> None:
        """``name`` distinguishes a harness's clusters; ``copy`` gets the same list (the run's
        own)."""
        owner = known(os.getpid(), "harness")
        assert owner is not None, "the running process exists"
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
        """Surround the start of a process up to :meth:`add`; yield variables for its environment.

        They identify the process if this harness is killed in between.
        """
        self._starting += 1
        self._write()
        try:
            yield self.environment
        finally:
            self._starting -= 1
            self._write()

    @property
    def environment(self) -> dict[str, str]:
        """The variable that identifies the processes of this cluster."""
        return {MARK: self._mark}

    def uses_engine(self, uses: bool) -> None:
        """Record whether the container engine may hold objects of this cluster."""
        self._engine = uses
        self._write()

    def add(self, pid: int, what: str) -> None:
        """Record a process at once, because this harness may be killed at any moment."""
        if (process := known(pid, what)) is not None:
            self._processes[pid] = process
            self._write()

    def remove(self, pid: int) -> None:
        """Remove a process that has ended and was waited for."""
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
    """Replace a file atomically: another process reads the old content or the new, never a part."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)


def reap(folder: Path | None = None) -> list[Known]:
    """End processes that ended harnesses have left behind; wait for their end and return them.

    The file of a harness that used the container engine is kept: see :func:`left_with_engine`.
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
    """The files of ended harnesses that may have left objects in the container engine.

    They may be removed once those objects have been.
    """
    found = []
    for path in sorted((folder or state_folder()).glob("*.json")):
        with contextlib.suppress(msgspec.MsgspecError, OSError):
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
            if entry.engine and entry.is_stray:
                found.append(path)
    return found


def _is_proved(process: psutil.Process, mark: str) -> bool:
    """Return whether a listed process belongs to this user and carries the entry's mark."""
    try:
        is_own = process.uids().real == os.getuid()
        return is_own and (not mark or process.environ().get(MARK) == mark)
    except psutil.Error:
        return False


def _marked(mark: str) -> Iterator[Known]:
    """The processes that carry this mark, recorded or not."""
    if not mark:
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has just ended, or belongs to another user
            if process.environ().get(MARK) == mark and (one := known(process.pid)) is not None:
                yield one
