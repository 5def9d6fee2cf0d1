"""Samples the memory of a process and of all processes that it has started."""

import threading
from pathlib import Path
from typing import NamedTuple, Self

INTERVAL_S = 0.25


class Peaks(NamedTuple):
    """The largest resident memory of a single process of each kind, in MB."""

    driver: float
    java: float = 0.0
    python: float = 0.0
    """A process that a JVM has started: an executor's worker."""


class Sampler:
    """Measures a process and its descendants while the block runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peaks = Peaks(0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self.peaks = Peaks(*map(max, self.peaks, sample(self._pid)))


def sample(pid: int) -> Peaks:
    """Return the memory of a process, and the largest below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        if (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    below, found = list(children.get(pid, ())), []
    while below:
        child = below.pop()
        found.append(child)
        below += children.get(child, ())
    sizes = [(_is_java(child), _peak_mb(child)) for child in found]
    return Peaks(
        _peak_mb(pid),
        max((size for is_java, size in sizes if is_java), default=0.0),
        max((size for is_java, size in sizes if not is_java), default=0.0),
    )


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return None


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return False


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6
