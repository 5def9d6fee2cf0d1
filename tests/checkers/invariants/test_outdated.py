"""Brokers that return other metadata than ZooKeeper has, in a cluster that has recovered."""

import msgspec
import pytest

from model.snapshot import ClusterState, KeptSettings, Shown
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


SETTINGS = {"t": {"retention.ms": "5"}}
KEPT = KeptSettings(SETTINGS["t"], is_applied=True, topic_id="id")


def settings_at(second: int, kept: dict[str, KeptSettings]) -> ClusterState:
    """Broker 3 has these settings; ZooKeeper has those of one topic."""
    now = at(second, {KEY: RIGHT})
    assert now.zookeeper is not None
    third = msgspec.structs.replace(now.brokers[3], settings=kept)
    zookeeper = msgspec.structs.replace(now.zookeeper, settings=SETTINGS)
    return msgspec.structs.replace(now, brokers={**now.brokers, 3: third}, zookeeper=zookeeper)


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        ({"t": KEPT}, []),
        ({}, []),
        ({"t": KEPT, "gone": KEPT}, []),
        ({"t": KEPT._replace(is_applied=False)}, ["stuck"]),
        ({"t": KEPT._replace(overrides={})}, ["stuck"]),
        ({"t": KEPT._replace(overrides={}, topic_id="former")}, []),
        ({"t": KEPT._replace(overrides={}, topic_id="")}, []),
        ({"t": KEPT._replace(overrides={"retention.ms": "6"})}, ["stuck"]),
    ],
)
def test_brokers_have_the_settings_that_zookeeper_has(
    kept: dict[str, KeptSettings], names: list[str]
) -> None:
    """A topic that a broker does not host, or that was deleted, does not count."""
    stream = settings_at(1, kept), settings_at(31, kept)
    assert violated(*stream, recovery_s=30) == names
    in_time = settings_at(1, kept), settings_at(29, {"t": KEPT}), settings_at(31, kept)
    assert violated(*in_time, recovery_s=30) == []
