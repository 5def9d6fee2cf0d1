from typing import Any

import pytest

from checkers.invariants import leaders as leaders_
from model.snapshot import BrokerState, ReplicaState, ZooKeeperState
from tests.checkers.invariants.streams import (
    KEY,
    broker,
    cluster,
    leader,
    log,
    replica,
    state,
    violated,
)

OLD = log(0, 0, 0)


def test_an_epoch_has_one_leader() -> None:
    """An epoch never has two leaders; the same broker may lead in it twice."""
    first = cluster(state(), {1: leader(OLD)})
    nobody = cluster(state(-1, 0), {})
    again = cluster(state(), {1: broker(leader(OLD), life=2)})
    assert violated(first, nobody, again)[1:] == []
    other = cluster(state(2, 1, (2, 3)), {2: leader(OLD)})
    assert violated(first, other) == ["one-leader-per-epoch"]


@pytest.mark.parametrize(("birth", "names"), [(1, ["one-leader-per-epoch"]), (2, [])])
def test_a_partition_that_was_added_before_its_topic_was_deleted(
    birth: int, names: list[str]
) -> None:
    """No snapshot of ZooKeeper shows the partition before its topic is created again."""
    added = BrokerState(life=1, replicas={"t-1": leader(OLD)})
    first = cluster(state(), {1: added})
    both = {KEY: state(birth=birth), "t-1": state(2, birth=birth)}
    again = ZooKeeperState(partitions=both, controller_epoch=1)
    later = BrokerState(life=1, replicas={"t-1": leader(OLD)})
    assert violated(first, cluster(again, {1: BrokerState(life=2, replicas={}), 2: later})) == names


@pytest.mark.parametrize(
    ("number", "epoch", "names"),
    [
        (1, 2, []),
        (1, 1, []),  # a deposed leader
        (2, 2, ["leader-as-elected"]),
        (1, 3, ["leader-as-elected"]),
    ],
)
def test_who_leads_was_elected(number: int, epoch: int, names: list[str]) -> None:
    """A broker leads only as elected; ZooKeeper names broker 1 in epoch 2."""
    assert violated(cluster(state(1, 2), {number: leader([], epoch=epoch)})) == names


def obeyed(before: ReplicaState, now: ReplicaState, *, life: int = 1) -> list[str]:
    """Broker 1 goes from one state to another while ZooKeeper names broker 2 in epoch 5."""
    elected = state(2, 5)
    return violated(
        cluster(elected, {1: broker(before)}), cluster(elected, {1: broker(now, life=life)})
    )


def test_no_replica_goes_back_to_an_earlier_epoch() -> None:
    """No leader or follower goes back to an earlier epoch, except across a restart of its
    broker."""
    newer, older = replica(OLD, leader_epoch=4), replica(OLD, leader_epoch=3)
    assert obeyed(newer, older) == ["leader-epoch-monotone"]
    assert obeyed(leader(OLD, epoch=4), older) == ["leader-epoch-monotone"]
    assert obeyed(older, newer) == []
    assert obeyed(newer, newer) == []
    assert obeyed(newer, older, life=2) == []


def marks(*pairs: ReplicaState, **rules: Any) -> list[str]:
    """Violations in snapshots of broker 1 alone."""
    return violated(*(cluster(state(), {1: pair}) for pair in pairs), **rules)


def test_a_leaders_watermark_rises_within_its_epoch() -> None:
    """A leader's watermark never goes back within an epoch and between two starts (R7)."""
    assert marks(leader(OLD, hw=2), leader(OLD, hw=1)) == ["leader-hw-monotone"]
    assert marks(leader(OLD, hw=2), leader(OLD, hw=3)) == []
    newer = cluster(state(1, 1), {1: leader(OLD, hw=1, epoch=1)})
    assert violated(cluster(state(), {1: leader(OLD, hw=2)}), newer) == []
    restarted = cluster(state(), {1: broker(leader(OLD, hw=1), life=2)})
    assert violated(cluster(state(), {1: leader(OLD, hw=2)}), restarted) == []


def test_the_watermark_stands_still_below_min_isr() -> None:
    """The watermark does not move below min.insync.replicas (KIP-966), unless the ISR may have
    changed."""
    alone: dict[str, Any] = {"isr": (1,), "maximal_isr": (1,)}

    def moved(before: ReplicaState, after: ReplicaState, isr_min: int | None = 2) -> list[str]:
        stream = [cluster(state(isr=(1,)), {1: held}) for held in (before, after)]
        return violated(*stream, isr_min=isr_min)

    held, beyond = leader(OLD, hw=1, **alone), leader(OLD, hw=2, **alone)
    assert moved(held, beyond) == ["hw-below-min-isr"]
    assert moved(held, leader(log(0, 0, 0, 0), hw=1, **alone)) == []
    assert moved(held, beyond, isr_min=None) == []
    assert moved(held, leader(OLD, hw=2, **alone | {"state_version": 1})) == []
    both: dict[str, Any] = {"isr": (1, 2), "maximal_isr": (1, 2)}
    assert moved(leader(OLD, hw=1, **both), leader(OLD, hw=2, **both)) == []
    topic, _, _ = KEY.rpartition("-")
    stream = [cluster(state(isr=(1,)), {1: now}) for now in (held, beyond)]
    assert violated(*stream, isr_min=2, isr_min_of={topic: 1}) == []
    assert violated(*stream, isr_min=1, isr_min_of={topic: 2}) == ["hw-below-min-isr"]
    assert violated(*stream, isr_min=2, isr_min_of={"other": 1}) == ["hw-below-min-isr"]


def test_a_leader_counts_all_that_stand_in_the_isr() -> None:
    """A leader counts at least the ISR in ZooKeeper (KIP-497); a deposed one may have missed a
    change."""
    fewer = leader(OLD, isr=(1, 2), maximal_isr=(1, 2))
    assert violated(cluster(state(isr=(1, 2, 3)), {1: fewer})) == ["isr-superset"]
    assert violated(cluster(state(isr=(1, 2)), {1: leader(OLD, isr=(1, 2))})) == []
    assert violated(cluster(state(2, 1, (1, 2, 3)), {1: fewer})) == []


def test_the_end_that_clients_were_told_never_goes_back() -> None:
    """The end that ListOffsets returns is never lower in a later epoch (KIP-207)."""
    told = cluster(state(), {1: leader(OLD, exposed=3, hw=3)})
    later = leader([*OLD, *log(0, 0, 0, 1)[3:]], hw=3, epoch=1, exposed=3)
    assert violated(told, cluster(state(2, 1, (2, 3)), {2: later})) == []
    less = leader(OLD, hw=2, epoch=1, exposed=2)
    assert violated(told, cluster(state(2, 1, (2, 3)), {2: less})) == ["exposed-end-monotone"]
    silent = leader(OLD, hw=2, epoch=1)
    assert violated(told, cluster(state(2, 1, (2, 3)), {2: silent})) == []


def test_an_epochs_offset_is_one_batch() -> None:
    """An offset in an epoch is one batch on all brokers; another epoch may have another batch
    there."""
    one = cluster(state(isr=(1,)), {1: leader(log(0, 0)), 2: replica(log(0, 0, crc=1))})
    assert violated(one) == ["one-log-per-epoch"]
    other = cluster(state(isr=(1,)), {1: leader(log(0, 0)), 2: replica(log(0, 1, crc=0))})
    assert violated(other) == []
    both = replica(log(0, 0, crc=1))
    later = [cluster(state(isr=(1,)), {2: both}), cluster(state(isr=(1,)), {3: replica(log(0))})]
    assert violated(*later) == ["one-log-per-epoch"]


def test_batches_that_no_broker_has_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not compared with those of a broker that returns; what is still in a log is."""
    whole, now = log(*[0] * 9), state(isr=(1,))
    held = cluster(now, {1: leader(whole[:8], hw=4)})
    begun = cluster(now, {1: leader(whole[4:], hw=4, log_start=4)})
    old = cluster(now, {2: replica(log(*[0] * 4, crc=1))})
    young = cluster(now, {2: replica([*whole[:7], *log(*[0] * 8, crc=1)[7:]])})
    assert violated(held, begun, old) == ["one-log-per-epoch"]
    monkeypatch.setattr(leaders_, "PRUNE_MIN", 8)
    assert violated(held, begun, old) == []
    assert violated(held, begun, young) == ["one-log-per-epoch"]


def test_a_leader_that_lost_power_may_write_its_epoch_anew() -> None:
    """A leader that lost power unnoticed may lead its epoch again and write other batches."""
    isr = state(isr=(1,))
    led = cluster(isr, {1: leader(log(0, 0), isr=(1,), maximal_isr=(1,))})
    anew = broker(leader([*log(0), *log(0, 0, crc=5)[1:]], isr=(1,), maximal_isr=(1,)), life=2)
    assert violated(led, cluster(isr, {1: anew}, damages={1: 1})) == []
    assert violated(led, cluster(isr, {1: anew})) == ["one-log-per-epoch"]
