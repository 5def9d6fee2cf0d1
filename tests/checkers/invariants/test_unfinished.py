import msgspec
import pytest

from model.snapshot import ClusterState, PartitionState
from tests.checkers.invariants.streams import cluster, leader, log, replica, state, violated

S = 1_000_000_000
LOG = log(0, 0)


def at(second: int, deleting: dict[str, int], znode: PartitionState | None = None) -> ClusterState:
    """The cluster is calm from the first second on, and has these orders."""
    held = {1: leader(LOG, hw=2), 2: replica(LOG, 2), 3: replica(LOG, 2)}
    now = cluster(znode or state(), held, time_ns=second * S, calm_since_ns=S)
    assert now.zookeeper is not None
    zookeeper = msgspec.structs.replace(now.zookeeper, deleting=deleting)
    return msgspec.structs.replace(now, zookeeper=zookeeper)


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ({}, {}, []),
        ({"d": 5}, {}, []),
        ({"d": 5}, {"d": 5}, ["stuck"]),
        ({"d": 5}, {"d": 9}, []),  # a later topic of the same name
        ({}, {"d": 5}, []),
    ],
)
def test_a_deletion_ends_in_time(
    first: dict[str, int], last: dict[str, int], names: list[str]
) -> None:
    """Each order has half of the bound."""
    assert violated(at(1, first), at(20, first), at(31, last), recovery_s=30) == names


@pytest.mark.parametrize(
    ("znode", "names"),
    [
        (state(), []),
        (state(adding=(3,)), ["stuck"]),
        (state(removing=(3,)), ["stuck"]),
        (state(adding=(3,), birth=7), ["stuck"]),
    ],
)
def test_a_reassignment_ends_in_time(znode: PartitionState, names: list[str]) -> None:
    """Once the added replicas are in sync, and the removed ones are deleted."""
    assert violated(at(1, {}, znode), at(31, {}, znode), recovery_s=30) == names
