"""The wall-clock time at which a run started, kept in ``run.json``.

A history counts nanoseconds from its own second 0, while the nodes' logs show the time of day. This
file says which time of day second 0 was, so that one can be matched with the other.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from harness.app import files

FILE = "run.json"


class RunStart(msgspec.Struct, frozen=True):
    """When second 0 of a run's history was."""

    started: datetime
    """With its offset from UTC."""
    clock: Literal["system", "simulated"] = "system"
    """Whose time of day: this machine's, or that of a simulated world, which begins in 2023."""

    def at(self, time_ns: int) -> datetime | None:
        """The time of day at ``time_ns`` of the history, in UTC; ``None`` beyond the calendar."""
        try:
            return self.started.astimezone(UTC) + timedelta(microseconds=time_ns // 1000)
        except OverflowError:
            return None


def write(folder: Path, wall_ns: int, *, simulated: bool) -> None:
    """Record that second 0 is now: ``wall_ns`` nanoseconds since 1970."""
    seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
    started = datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=rest_ns // 1000)
    start = RunStart(started, "simulated" if simulated else "system")
    files.replace(folder / FILE, msgspec.json.encode(start) + b"\n")


def read(folder: Path) -> RunStart | None:
    """The start of a run; ``None`` where the folder does not say, as those of earlier versions.

    A file that cannot be understood says nothing either: a page without times of day is better than
    no page.
    """
    try:
        start = msgspec.json.decode((folder / FILE).read_bytes(), type=RunStart)
    except (OSError, ValueError):
        return None
    return start if start.started.tzinfo is not None and start.at(0) is not None else None
