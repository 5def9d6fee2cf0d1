"""Which processes a harness has started, written down where the next harness finds them.

A harness that was SIGKILLed cannot end its nodes; the next one does. A process is told by its id
*and* its start time, so that a stranger who was given a recycled id is never touched.
"""

import os
from pathlib import Path

import msgspec
import psutil


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A process, told apart from all that ever had its id."""

    pid: int
    started: float
    """Seconds since the epoch, as the system has it."""
    what: str = ""

    def alive(self) -> bool:
        """Is this very process still there (a zombie is not)?"""
        return self.process() is not None

    def process(self) -> psutil.Process | None:
        """The process itself, ``None`` when it has gone."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.started
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def known(pid: int, what: str = "") -> Known | None:
    """What to write down of a process; ``None`` when it has gone already."""
    try:
        return Known(pid=pid, started=psutil.Process(pid).create_time(), what=what)
    except psutil.NoSuchProcess:
        return None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One harness's file."""

    owner: Known
    processes: tuple[Known, ...] = ()


def state_folder() -> Path:
    """``$XDG_STATE_HOME/faultline``, by default ``~/.local/state/faultline``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "faultline" / "processes"


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
        self._processes: dict[int, Known] = {}

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
        entry = Entry(owner=self._owner, processes=tuple(self._processes.values()))
        if self._copy is not None:
            self._copy.write_bytes(msgspec.json.encode(entry))
        if not entry.processes:
            self._path.unlink(missing_ok=True)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(entry))
        draft.replace(self._path)


def reap(folder: Path | None = None) -> list[Known]:
    """Kill what harnesses that are gone have left behind; who was killed."""
    reaped: list[Known] = []
    for path in sorted((folder or state_folder()).glob("*.json")):
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=Entry)
        except (msgspec.MsgspecError, OSError):
            path.unlink(missing_ok=True)
            continue
        if entry.owner.alive():
            continue
        for stray in entry.processes:
            if (process := stray.process()) is not None:
                process.kill()
                reaped.append(stray)
        path.unlink(missing_ok=True)
    return reaped
