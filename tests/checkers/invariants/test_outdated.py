"""Brokers that return other metadata than ZooKeeper has, in a cluster that has recovered."""

import pytest

from model.snapshot import ClusterState, Shown
from tests.checkers.invariants.streams import (
    KEY,
    broker,
    cluster,
    leader,
    log,
    replica,
    shown_as,
    state,
    violated,
)

S = 1_000_000_000
LOG = log(0, 0)
ZNODE = state(topic_id="id")
RIGHT = shown_as(ZNODE)


def at(second: int, shown: dict[str, Shown]) -> ClusterState:
    """Broker 3 returns this to clients; all faults are over since the beginning."""
    right = {KEY: RIGHT}
    held = {
        1: broker(leader(LOG, hw=2), shown=right),
        2: broker(replica(LOG, 2), shown=right),
        3: broker(replica(LOG, 2), shown=shown),
    }
    return cluster(ZNODE, held, time_ns=second * S, calm_since_ns=0)


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        ({KEY: RIGHT}, []),
        ({KEY: RIGHT._replace(isr=(3, 2, 1))}, []),
        ({}, ["stuck"]),
        ({KEY: RIGHT._replace(leader=2)}, ["stuck"]),
        ({KEY: RIGHT._replace(isr=(1, 2))}, ["stuck"]),
        ({KEY: RIGHT._replace(replicas=(1, 2))}, ["stuck"]),
        ({KEY: RIGHT._replace(topic_id="former")}, ["stuck"]),
        ({KEY: RIGHT, "gone-0": RIGHT}, ["stuck"]),
    ],
)
def test_brokers_return_what_zookeeper_has(shown: dict[str, Shown], names: list[str]) -> None:
    """If it differs for long enough before the bound, and at the bound."""
    assert violated(at(1, shown), at(31, shown), recovery_s=30) == names
    assert violated(at(1, {KEY: RIGHT}), at(25, shown), at(31, shown), recovery_s=30) == []
    assert violated(at(1, shown), at(29, {KEY: RIGHT}), at(31, shown), recovery_s=30) == []


def test_a_reason_that_changes_begins_again() -> None:
    """A broker that receives each of many changes late is not outdated for long."""
    wrong = [{KEY: RIGHT._replace(leader_epoch=second)} for second in range(1, 32)]
    stream = [at(second, shown) for second, shown in enumerate(wrong, 1)]
    assert violated(*stream, recovery_s=30) == []
    late = [at(second, wrong[0]) for second in range(1, 32)]
    assert violated(*late, recovery_s=30) == ["stuck"]
