"""Judges counters: every value is between what was added and what may have been."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History


def value_of(call: Call) -> tuple[int, int] | None:
    """Return the value and version of a counter that a call shows; ``None`` if it shows none."""
    if not call.ok or call.value.get("stat") is None:
        return None
    if call.f == "add":
        return call.value["total"], call.value["stat"]["version"]
    return int(call.value["data"] or "0"), call.value["stat"]["version"]


class _Sums:
    """The sums of additions up to a place of the history."""

    def __init__(self, places: list[tuple[int, int]]) -> None:
        places.sort()
        self._places = [place for place, _ in places]
        self._sums = [0, *accumulate(delta for _, delta in places)]

    def before(self, place: int) -> int:
        """Return the sum of those before a place."""
        return self._sums[bisect_left(self._places, place)]

    def until(self, place: int) -> int:
        """Return the sum of those up to a place."""
        return self._sums[bisect_right(self._places, place)]


def bounds(history: History) -> Iterator[Found]:
    """Find values above the sum of all additions that may have happened by then, and values after
    the recovery below the sum of those acknowledged before."""
    reads = history.by_path("read", "add")
    for path, calls in reads.items():
        adds = [call for call in calls if call.f == "add"]
        if not adds:
            continue
        most = _Sums([(a.invoked, a.value["delta"]) for a in adds if a.may_have_happened])
        least = _Sums([(a.completed, a.value["delta"]) for a in adds if a.ok])
        for call in calls:
            shown = value_of(call)
            if shown is None:
                continue
            low = least.before(call.invoked) if history.is_final(call) else 0
            high = most.until(call.completed)
            if not low <= shown[0] <= high:
                yield Found(
                    anomaly="zk-counter-out-of-bounds",
                    key=path,
                    offset=shown[1],
                    value=shown[0],
                    ops=(call.op,),
                    why=f"event {call.op} shows {shown[0]}; what was acknowledged before adds up to"
                    f" {low}, and what may have been added to {high}",
                )
