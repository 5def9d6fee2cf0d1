"""Leaders that keep a follower in the ISR which has lagged for too long."""

from typing import Any

import pytest

from model.snapshot import BrokerState, ClusterState
from tests.checkers.invariants.streams import broker, cluster, leader, log, replica, state, violated

NAME = "laggard-leaves-isr"
LAG_S = 10.0


def at(noted: float, end: int, held: int | BrokerState | None, **other: Any) -> ClusterState:
    """Broker 1 leads a log with this end, and broker 2 has this much of it, in the same ISR.

    noted: when broker 1 has last found all of its ISR in sync.
    """
    follower = broker(replica(log(*[0] * held))) if isinstance(held, int) else held
    isr = {"isr": (1, 2), "maximal_isr": (1, 2)} | other
    led = leader(log(*[0] * end), in_sync_at=noted, **isr)
    brokers: dict[int, BrokerState | None] = {1: broker(led), 2: follower}
    running = {number: each for number, each in brokers.items() if each is not None}
    znode = state(isr=(1, 2), replicas=(1, 2), version=led.state_version)
    return cluster(znode, running)


def found(*stream: ClusterState) -> list[str]:
    """What the stream violates, of this invariant."""
    return [name for name in violated(*stream, lag_max_s=LAG_S) if name == NAME]


FIRST, LONGER, NOTED = at(1, 3, 3), at(1, 4, 3), at(2, 4, 3)


@pytest.mark.parametrize("last", [at(12.1, 4, 3), at(12.1, 9, 3), at(12.1, 9, 1)])
def test_a_leader_keeps_a_follower_that_lags(last: ClusterState) -> None:
    """It says that all are in sync, more than the limit after it has said so first."""
    assert found(FIRST, LONGER, NOTED, last) == [NAME]


def test_a_follower_begins_to_lag_again() -> None:
    """Only records that it lacks all the time count."""
    again = at(12.1, 9, 4), at(13, 9, 4), at(23.1, 9, 8)
    assert found(FIRST, LONGER, NOTED, *again[:2]) == []
    assert found(FIRST, LONGER, NOTED, *again) == [NAME]


@pytest.mark.parametrize(
    ("case", "stream"),
    [
        ("just within the limit", (FIRST, LONGER, NOTED, at(12, 4, 3))),
        ("no note, as when the leader is paused", (FIRST, LONGER, NOTED, at(2, 9, 3))),
        ("it reaches the former end", (FIRST, LONGER, NOTED, at(5, 9, 4), at(12.1, 9, 4))),
        ("it catches up", (FIRST, LONGER, NOTED, at(5, 4, 4), at(12.1, 5, 4))),
        ("the leader may know it by a former fetch", (at(1, 3, 2), at(2, 3, 2), at(12.1, 3, 2))),
        ("the first note may be an old one", (FIRST, LONGER, at(12.1, 4, 3))),
        ("it has left the ISR", (FIRST, LONGER, NOTED, at(12.1, 4, 3, isr=(1,)))),
        ("the state has changed", (FIRST, LONGER, NOTED, at(12.1, 4, 3, state_version=1))),
        ("another epoch has begun", (FIRST, LONGER, NOTED, at(12.1, 4, 3, epoch=1))),
        ("it was away", (FIRST, LONGER, NOTED, at(5, 4, None), at(12.1, 5, 3))),
        (
            "it has restarted",
            (FIRST, LONGER, NOTED, at(12.1, 5, broker(replica(log(0, 0)), life=2))),
        ),
        ("it leads no longer", (FIRST, LONGER, NOTED, at(12.1, 5, 3, role="fenced"))),
    ],
)
def test_what_a_leader_may_do(case: str, stream: tuple[ClusterState, ...]) -> None:
    """None of these shows that the leader is wrong."""
    assert found(*stream) == [], case
