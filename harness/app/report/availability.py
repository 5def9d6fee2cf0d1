"""Measures how long writers waited for partitions during a fault and after its heal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.app.report.columns import INVOKE, NO_KEY, OK, Columns, Ints
from harness.app.report.faults import Fault

SENDING = ("send", "txn")
RECOVERY_NS = 5_000_000_000
"""A partition without a write within this time after a heal shows nothing about the recovery."""


class Waits(NamedTuple):
    """The waits of writers for one partition, in nanoseconds, ascending.

    A wait begins with the first write that is invoked after an acknowledgement, and ends with the
    next acknowledgement.
    """

    begin: Ints
    end: Ints
    acked: npt.NDArray[np.bool_]
    """False for a final wait that ended with the failure of the last write."""


@dataclass(frozen=True, slots=True)
class Impact:
    """The effect of a fault on acknowledgements; ``None`` where nothing could be measured."""

    fault: Fault
    acked_per_s: float | None
    """Records acknowledged per second while the fault was active."""
    wait_s: float | None
    """The longest wait for one partition that overlaps the fault."""
    wait_key: str
    recovery_s: float | None
    """How long the slowest partition's writers waited after the heal for an acknowledgement."""


def waits(columns: Columns) -> dict[str, Waits]:
    """Return the waits of each partition that was written to."""
    sending = [code for code, name in enumerate(columns.f_names) if name in SENDING]
    mine = np.isin(columns.f, sending) & (columns.key > NO_KEY)
    found = {}
    for code, name in enumerate(columns.key_names):
        rows = np.flatnonzero(mine & (columns.key == code))
        times, types = columns.time_ns[rows], columns.type[rows]
        asked, acked = np.sort(times[types == INVOKE]), np.sort(times[types == OK])
        done = np.sort(times[types != INVOKE])
        if len(asked) and len(done):
            found[name] = between(asked, acked, int(done[-1]))
    return found


def between(asked: Ints, acked: Ints, last_ns: int) -> Waits:
    """Return the waits of one partition; ``last_ns`` is when its last write ended."""
    opens = np.concatenate(([np.iinfo(np.int64).min], acked))
    closes = np.concatenate((acked, [last_ns]))
    first = np.searchsorted(asked, opens)
    begin = np.append(asked, np.iinfo(np.int64).max)[first]
    real = begin < closes
    acked_at_end = np.arange(len(closes)) < len(acked)
    return Waits(begin[real], closes[real], acked_at_end[real])


def impacts(columns: Columns, faults: Sequence[Fault]) -> list[Impact]:
    """Return the impact of each fault that was applied."""
    end_ns = int(columns.time_ns[-1]) if len(columns) else 0
    by_key = waits(columns)
    acked = (columns.type == OK) & (columns.sent > 0)
    found = []
    for fault in faults:
        window = fault.window_ns(end_ns)
        if window is None:
            continue
        during = acked & (columns.time_ns >= window[0]) & (columns.time_ns < window[1])
        seconds = (window[1] - window[0]) / 1e9
        longest, key = max(
            ((wait_ns(key_waits, window), key) for key, key_waits in by_key.items()),
            default=(0, ""),
        )
        recovery = recovery_ns(list(by_key.values()), fault.healed_ns)
        found.append(
            Impact(
                fault,
                float(columns.sent[during].sum()) / seconds if seconds else None,
                longest / 1e9 if longest else None,
                key,
                None if recovery is None else recovery / 1e9,
            )
        )
    return found


def wait_ns(found: Waits, window: tuple[int, int]) -> int:
    """Return the longest wait that overlaps the window; 0 if there is none.

    The whole wait counts, including its part before or after the window: a partition that comes
    back five seconds after the heal made its writers wait for those seconds, too.
    """
    touching = (found.begin < window[1]) & (found.end > window[0])
    return int((found.end - found.begin)[touching].max(initial=0))


def recovery_ns(found: Sequence[Waits], healed_ns: int | None) -> int | None:
    """Return the longest time from the heal, or the first write after it, to an acknowledgement.

    Returns ``None`` if some partition never acknowledged again, or none was written to.
    """
    if healed_ns is None:
        return None
    times = []
    for each in found:
        place = int(np.searchsorted(each.end, healed_ns, side="right"))
        if place < len(each.end) and each.begin[place] <= healed_ns + RECOVERY_NS:
            if not each.acked[place]:
                return None
            times.append(int(each.end[place] - max(each.begin[place], healed_ns)))
    return max(times, default=None)
