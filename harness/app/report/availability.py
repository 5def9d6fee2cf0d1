"""How long partitions let writers wait around a fault, and after its healing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.app.report.columns import INVOKE, NO_KEY, OK, Columns, Ints
from harness.app.report.faults import Fault

SENDING = ("send", "txn")
RECOVERY_NS = 5_000_000_000
"""A partition that nobody writes to within this time of a healing tells nothing about it."""


class Waits(NamedTuple):
    """When writers waited for one partition: from the first write asked for after an
    acknowledgement to the next acknowledgement, in nanoseconds, ascending."""

    begin: Ints
    end: Ints
    acked: npt.NDArray[np.bool_]
    """False for a last wait that ended with the last write's failure."""


@dataclass(frozen=True, slots=True)
class Impact:
    """What a fault did to the acknowledgements; ``None`` where nothing could be measured."""

    fault: Fault
    acked_per_s: float | None
    """Records acknowledged per second while it was active."""
    wait_s: float | None
    """The longest wait for one partition that touches the fault."""
    wait_key: str
    recovery_s: float | None
    """How long the slowest partition's writers waited from the healing on for their next
    acknowledgement."""


def waits(columns: Columns) -> dict[str, Waits]:
    """Of each partition that was written to."""
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
    """The waits of one partition; ``last_ns`` is when its last write came to an end."""
    opens = np.concatenate(([np.iinfo(np.int64).min], acked))
    closes = np.concatenate((acked, [last_ns]))
    first = np.searchsorted(asked, opens)
    begin = np.append(asked, np.iinfo(np.int64).max)[first]
    real = begin < closes
    acked_at_end = np.arange(len(closes)) < len(acked)
    return Waits(begin[real], closes[real], acked_at_end[real])


def impacts(columns: Columns, faults: Sequence[Fault]) -> list[Impact]:
    """The impact of each fault that was applied."""
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
    """The longest wait that reaches into the window; 0 if none.

    The whole wait counts, also its part before or after the window: a partition that comes back
    five seconds after the healing let its writers wait for those, too.
    """
    touching = (found.begin < window[1]) & (found.end > window[0])
    return int((found.end - found.begin)[touching].max(initial=0))


def recovery_ns(found: Sequence[Waits], healed_ns: int | None) -> int | None:
    """From the healing, or the first write asked for after it, to the next acknowledgement, where
    that took longest; ``None`` when some partition never acknowledged, or none was written to."""
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
