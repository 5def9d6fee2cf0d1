"""How long each partition went without an acknowledgement around a fault, and after its healing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.app.report.columns import NO_KEY, OK, Columns, Ints
from harness.app.report.faults import Fault


@dataclass(frozen=True, slots=True)
class Impact:
    """What a fault did to the acknowledgements; ``None`` where nothing could be measured."""

    fault: Fault
    acked_per_s: float | None
    """Records acknowledged per second while it was active."""
    silence_s: float | None
    """The longest time that one partition went without an acknowledgement, touching the fault."""
    silent_key: str
    recovery_s: float | None
    """From the healing until each partition had its next acknowledgement."""


def acknowledged(columns: Columns) -> dict[str, Ints]:
    """The times at which each partition's sends were acknowledged, ascending, in nanoseconds."""
    acked = (columns.type == OK) & (columns.sent > 0) & (columns.key > NO_KEY)
    times, keys = columns.time_ns[acked], columns.key[acked]
    return {name: np.sort(times[keys == code]) for code, name in enumerate(columns.key_names)}


def impacts(columns: Columns, faults: Sequence[Fault]) -> list[Impact]:
    """The impact of each fault that was applied."""
    end_ns = int(columns.time_ns[-1]) if len(columns) else 0
    times = {key: found for key, found in acknowledged(columns).items() if len(found)}
    acked = (columns.type == OK) & (columns.sent > 0)
    found = []
    for fault in faults:
        window = fault.window_ns(end_ns)
        if window is None:
            continue
        during = acked & (columns.time_ns >= window[0]) & (columns.time_ns < window[1])
        seconds = (window[1] - window[0]) / 1e9
        silences = [(silence_ns(key_times, window), key) for key, key_times in times.items()]
        longest, key = max(silences, default=(0, ""))
        recovery = recovery_ns(list(times.values()), fault.healed_ns)
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


def silence_ns(times: Ints, window: tuple[int, int]) -> int:
    """The longest gap between neighbours of ``times`` that reaches into the window; 0 if none.

    The whole gap counts, also its part before or after the window: a partition that comes back
    five seconds after the healing was silent for those, too.
    """
    gaps = np.diff(times)
    touching = (times[:-1] < window[1]) & (times[1:] > window[0])
    return int(gaps[touching].max(initial=0))


def recovery_ns(times: Sequence[Ints], healed_ns: int | None) -> int | None:
    """Until the last partition was acknowledged again; ``None`` when some never was."""
    if healed_ns is None or not times:
        return None
    following = [int(np.searchsorted(key_times, healed_ns)) for key_times in times]
    if any(place == len(found) for place, found in zip(following, times, strict=True)):
        return None
    return max(int(found[place]) for place, found in zip(following, times, strict=True)) - healed_ns
