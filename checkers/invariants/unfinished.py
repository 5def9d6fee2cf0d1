"""Which orders of operators the controller has accepted and not finished.

A topic whose deletion was accepted is gone once each broker that has a replica of it has deleted
that; until then its name cannot be used. A reassignment ends once the added replicas are in sync
(KIP-455). The controller goes on with both when a broker returns, and a new controller when it is
elected, so in a cluster that has recovered none of them remains.
"""

from collections.abc import Iterator

from checkers.invariants.step import Step
from checkers.invariants.wait import Wait


class Unfinished:
    """Follows the orders in ZooKeeper from one snapshot to the next."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int, str], int] = {}
        """By partition, version of what was ordered, and reason."""

    def step(self, step: Step) -> list[Wait]:
        """Process the next snapshot; return what is not finished."""
        assert step.now.zookeeper is not None, "only clusters with a controller recover"
        controller = step.now.zookeeper.controller
        known, self._since = self._since, {}
        found = []
        for key, version, why in _orders(step):
            place = key, version, why
            since_ns = self._since[place] = known.get(place, step.now.time_ns)
            found.append(Wait(key, controller, since_ns, why))
        return found


def _orders(step: Step) -> Iterator[tuple[str, int, str]]:
    assert step.now.zookeeper is not None, "only clusters with a controller recover"
    for topic, zxid in step.now.zookeeper.deleting.items():
        yield f"{topic}-0", zxid, "the topic is still being deleted"
    for key, state in step.now.zookeeper.partitions.items():
        if state.adding or state.removing:
            why = f"a reassignment still adds {list(state.adding)}, removes {list(state.removing)}"
            yield key, state.birth, why
