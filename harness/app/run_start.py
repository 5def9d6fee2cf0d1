"""Stores the time of day at which a run started, in ``run.json``.

A history counts nanoseconds since the run's start, while the nodes' logs show the time of day. This
file relates the two.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from harness.app import files

FILE = "run.json"


class RunStart(msgspec.Struct, frozen=True):
    """The time of day of a run's start, which is second 0 of its history."""

    started: datetime
    """The time, with its offset from UTC."""
    clock: Literal["system", "simulated"] = "system"
    """The clock: this machine's, or that of a simulation, which begins in 2023."""

    def at(self, time_ns: int) -> datetime | None:
        """Return the UTC time of day at ``time_ns`` of the history; ``None`` beyond the
        calendar."""
        try:
            return self.started.astimezone(UTC) + timedelta(microseconds=time_ns // 1000)
        except OverflowError:
            return None


def write(folder: Path, wall_ns: int, *, simulated: bool) -> None:
    """Record that the run starts now: ``wall_ns`` nanoseconds since 1970."""
    seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
    started = datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=rest_ns // 1000)
    start = RunStart(started, "simulated" if simulated else "system")
    files.replace(folder / FILE, msgspec.json.encode(start) + b"\n")


def read(folder: Path) -> RunStart | None:
    """Return the start of a run; ``None`` if an earlier version did not record it.

    A file that cannot be read also counts as missing: a report without times of day is better than
    no report.
    """
    try:
        start = msgspec.json.decode((folder / FILE).read_bytes(), type=RunStart)
    except (OSError, ValueError):
        return None
    return start if start.started.tzinfo is not None and start.at(0) is not None else None
