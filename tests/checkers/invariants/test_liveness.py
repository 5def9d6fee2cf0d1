from typing import Any

import msgspec
import pytest

from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from model.snapshot import Batch, ClusterState, PartitionState, ReplicaState, Unmarked
from tests.checkers.invariants.streams import KEY, cluster, leader, log, replica, state, violated

S = 1_000_000_000
LOG = log(0, 0)
WHOLE = leader(LOG, hw=2)


def at(
    second: int,
    since: int | None,
    held: ReplicaState | None,
    znode: PartitionState | None = None,
    followers: tuple[int, ...] = (2, 3),
    behind: int = 0,
    high: int = 2,
) -> ClusterState:
    """Broker 1 holds this replica; the others follow, or are some epochs behind.

    high: the high watermark of the others.
    """
    calm = None if since is None else since * S
    znode = znode or state()
    following = replica(LOG, high, leader_epoch=znode.leader_epoch - behind)
    brokers = ({} if held is None else {1: held}) | dict.fromkeys(followers, following)
    return cluster(znode, brokers, time_ns=second * S, calm_since_ns=calm)


@pytest.mark.parametrize(
    ("held", "znode", "names"),
    [
        (WHOLE, state(), []),
        (None, state(), ["stuck"]),
        (None, state(-1, 1), ["stuck"]),
        (leader(LOG, hw=2, role="fenced"), state(), ["stuck"]),
        (WHOLE, state(1, 1), ["stuck"]),
        (WHOLE, state(isr=(1, 2), version=1), ["stuck"]),
        (leader(LOG, hw=2, epoch=1), state(1, 1), []),
        (leader(LOG, hw=1, epoch=1), state(1, 1), ["stuck"]),
    ],
)
def test_the_cluster_is_whole_in_time(
    held: ReplicaState | None, znode: PartitionState, names: list[str]
) -> None:
    """A partition has a leader as in ZooKeeper, a full ISR and all committed records, within the
    bound."""
    before = at(0, None, WHOLE)
    assert violated(before, at(70, 40, held, znode=znode), recovery_s=30) == names
    assert violated(before, at(69, 40, held, znode=znode), recovery_s=30) == []


@pytest.mark.parametrize(
    ("followers", "behind", "names"),
    [((2, 3), 0, []), ((3,), 0, ["stuck"]), ((2, 3), 1, ["stuck"])],
)
def test_who_is_in_sync_is_there_and_follows(
    followers: tuple[int, ...], behind: int, names: list[str]
) -> None:
    """Every member of the ISR runs and follows; a dead broker leaves it when its session
    expires."""
    held = leader(LOG, hw=2, epoch=1)
    before = at(0, None, WHOLE)
    now = at(70, 40, held, state(1, 1), followers, behind)
    assert violated(before, now, recovery_s=30) == names


def test_followers_learn_the_high_watermark() -> None:
    """What was committed early in the calm is known to the followers at the end of the bound."""
    late = at(50, 40, WHOLE)
    assert violated(late, at(70, 40, WHOLE, high=1), recovery_s=30) == ["stuck"]
    assert violated(late, at(70, 40, WHOLE), recovery_s=30) == []
    assert violated(at(60, 40, WHOLE), at(70, 40, WHOLE, high=1), recovery_s=30) == []


SENT = [batch._replace(producer=7, producer_epoch=1) for batch in LOG]


def waiting(
    second: int, key: str = KEY, epoch: int = 1, batches: list[Batch] = SENT, **other: Any
) -> ClusterState:
    """Broker 2 coordinates a transaction of producer 7 that waits for a marker in a partition."""
    now = at(second, 40, leader(batches, hw=2))
    coordinator = msgspec.structs.replace(
        now.brokers[2], unmarked={"tx": Unmarked(7, epoch, (key,))}
    )
    return msgspec.structs.replace(now, brokers={**now.brokers, 2: coordinator}, **other)


@pytest.mark.parametrize(
    ("now", "names"),
    [
        ({}, ["stuck"]),
        ({"key": "deleted-0"}, ["stuck"]),
        ({"epoch": 2}, ["stuck"]),  # its first batch has this epoch
        ({"epoch": 0}, []),  # the leader refuses the marker
        ({"batches": LOG}, []),  # the topic was perhaps created again
        ({"compacted": {KEY: None}}, []),
    ],
)
def test_no_transaction_waits_for_ever(now: dict[str, Any], names: list[str]) -> None:
    """A transaction whose marker can be written, or is not needed, ends within the bound (KIP-98),
    and may take half of it."""
    before = at(0, None, WHOLE)
    assert violated(before, waiting(50, **now), waiting(70, **now), recovery_s=30) == names
    assert violated(before, waiting(56, **now), waiting(70, **now), recovery_s=30) == []
    assert violated(before, waiting(50, **now), waiting(69, **now), recovery_s=30) == []
    ended = at(60, 40, leader(SENT, hw=2))
    assert violated(before, waiting(50, **now), ended, waiting(70, **now), recovery_s=30) == []


def test_a_transaction_that_waits_is_pending() -> None:
    """The end of the run waits until a transaction has its markers, or the bound has passed."""
    watch = Watch(Rules(recovery_s=30))
    for now, is_pending in (
        (waiting(41), True),
        (waiting(42, epoch=0), False),
        (waiting(43, key="deleted-0"), True),
        (at(44, 40, leader(SENT, hw=2)), False),
        (waiting(70), False),
    ):
        list(watch.step(now))
        assert watch.is_pending is is_pending, now.time_ns


def test_only_a_calm_that_lasts_is_judged() -> None:
    """The bound counts from the last heal, and a new fault starts it again; without a bound nothing
    is judged."""
    assert violated(at(70, None, None), recovery_s=30) == []
    assert violated(at(70, 60, None), at(80, None, None), at(95, 80, None), recovery_s=30) == []
    assert violated(at(99, 0, None)) == []


def test_what_is_lacking_within_the_bound_is_pending() -> None:
    """What is missing within the bound is pending: not before the last heal, and not once it is
    judged."""
    watch = Watch(Rules(recovery_s=30))
    lacking = state(isr=(1, 2), version=1)
    stream = [
        (at(9, None, WHOLE, znode=lacking), False),
        (at(10, 10, WHOLE, znode=lacking), True),
        (at(39, 10, WHOLE, znode=lacking), True),
        (at(39, 10, WHOLE, znode=state(version=2)), False),
        (at(39, 10, None), True),
        (at(40, 10, None), False),
        (at(41, 10, None), False),
    ]
    for now, is_pending in stream:
        list(watch.step(now))
        assert watch.is_pending is is_pending, now.time_ns


def test_each_calm_is_judged_once() -> None:
    """Each calm is judged once, at the end of its bound."""
    assert violated(at(30, 0, WHOLE), at(40, 0, None), recovery_s=30) == []
    assert violated(at(30, 0, WHOLE), at(90, 50, None), recovery_s=30) == ["stuck"]


def test_what_a_former_topic_had_need_not_be_there() -> None:
    """A topic that was created again need not hold the records of its predecessor."""
    anew = leader(log(0), hw=1)
    before = at(0, None, WHOLE)
    assert violated(before, at(70, 40, anew, state(birth=2)), recovery_s=30) == []
    assert "stuck" in violated(before, at(70, 40, anew, state()), recovery_s=30)
