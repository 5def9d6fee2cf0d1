from model.ensemble_snapshot import MemberState
from tests.checkers.invariants.ensemble.members import (
    ensemble,
    entries,
    leading,
    member,
    serving,
    violated,
    zxid,
)

SECOND_NS = 1_000_000_000


def test_the_same_zxid_is_the_same_state() -> None:
    """After the same transaction all servers have the same nodes and sessions (I11)."""
    log = entries((1, 1))

    def both(one: int | None, other: int | None, applied: int = zxid(1, 1)) -> list[str]:
        return violated(
            {1: leading(log, digest=one), 2: serving(log, digest=other, applied=applied)}
        )

    assert both(7, 7) == []
    assert both(7, None) == []
    assert both(7, 8, applied=0) == []
    assert both(7, 8) == ["equal-states"]


def test_a_restarted_server_has_the_same_state() -> None:
    """A server that replays its log has the state that it had before."""
    log = entries((1, 1))
    assert violated({1: member(log, digest=7)}, {1: member(log, digest=8, life=2)}) == [
        "equal-states"
    ]


def test_every_server_serves_some_time_after_the_faults() -> None:
    """Once the bound has passed, every server serves in the same epoch (I13)."""
    whole: dict[int, MemberState | None] = {1: leading(), 2: serving()}

    def after(seconds: int, third: MemberState | None) -> list[str]:
        members = {server: each for server, each in {**whole, 3: third}.items() if each}
        snapshot = ensemble(members, seconds * SECOND_NS, calm_since_ns=0)
        return violated(snapshot, recovery_s=10.0)

    assert after(11, serving()) == []
    assert after(11, member()) == ["stuck"]
    assert after(9, member()) == []
    assert after(11, None) == ["stuck"]
    assert after(11, serving(epoch=2)) == ["stuck"]


def test_a_server_that_lags_is_stuck() -> None:
    """A server that serves and does not apply what is committed is stuck as well."""
    log = entries((1, 1))
    behind = {1: leading(log), 2: serving(log), 3: serving(applied=0)}
    snapshot = ensemble(behind, 11 * SECOND_NS, calm_since_ns=0)
    assert violated(snapshot, recovery_s=10.0) == ["stuck"]
