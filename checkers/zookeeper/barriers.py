"""Judges barriers: no client leaves one before as many have entered as it needs."""

from collections.abc import Iterator

from checkers.kernels.found import Found
from checkers.zookeeper.calls import History


def early(history: History) -> Iterator[Found]:
    """Find clients that passed a barrier before enough others had tried to enter."""
    for barrier, calls in history.by_path("enter").items():
        invoked = sorted((call.invoked, call.value["member"]) for call in calls)
        for call in calls:
            members = {member for at, member in invoked if at < call.completed}
            if call.ok and len(members) < call.value["size"]:
                yield Found(
                    anomaly="zk-early-barrier",
                    key=barrier,
                    ops=(call.op,),
                    why=f"event {call.op} passed a barrier for {call.value['size']} clients when"
                    f" only {len(members)} had tried to enter",
                )


def count(history: History) -> int:
    """Return how many clients passed a barrier."""
    return sum(call.ok for call in history.of("enter"))
