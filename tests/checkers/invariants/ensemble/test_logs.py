from typing import Any

import pytest

from model.ensemble_snapshot import MemberState
from tests.checkers.invariants.ensemble.members import entries, leading, member, serving, violated


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (
            {"accepted_epoch": 3, "current_epoch": 2},
            {"accepted_epoch": 3, "current_epoch": 3, "life": 2},
            [],
        ),
        (
            {"accepted_epoch": 3, "current_epoch": 2},
            {"accepted_epoch": 2, "current_epoch": 2, "life": 2},
            ["epochs-monotone"],
        ),
        (
            {"accepted_epoch": 3, "current_epoch": 3},
            {"accepted_epoch": 3, "current_epoch": 2},
            ["epochs-monotone"],
        ),
    ],
)
def test_epochs_never_go_back(
    before: dict[str, Any], after: dict[str, Any], names: list[str]
) -> None:
    """The epochs on a server's disk never go back, not even over a restart (I1)."""
    assert violated({1: member(**before)}, {1: member(**after)}) == names


@pytest.mark.parametrize(
    ("accepted", "current", "names"),
    [(2, 2, []), (3, 2, []), (1, 2, ["epochs-monotone"]), (3, 1, ["epochs-monotone"])],
)
def test_epochs_are_in_order(accepted: int, current: int, names: list[str]) -> None:
    """Accepted epoch ≥ current epoch ≥ epoch of the log, which is 2 here."""
    log = entries((2, 1))
    assert violated({1: member(log, accepted_epoch=accepted, current_epoch=current)}) == names


def test_a_server_serves_in_the_epoch_on_its_disk() -> None:
    """A server that serves clients has taken over its leader's epoch (ZOOKEEPER-335)."""
    assert violated({1: serving(epoch=2)}) == []
    assert violated({1: serving(epoch=2, current_epoch=1)}) == ["epoch-of-role"]
    assert violated({1: serving(epoch=2, accepted_epoch=3)}) == ["epoch-of-role"]
    assert violated({1: member(epoch=2, role="following", accepted_epoch=2)}) == []


@pytest.mark.parametrize(
    ("zxids", "names"),
    [
        ([(1, 1), (1, 2), (2, 1)], []),
        ([(1, 1), (1, 3)], ["log-in-order"]),
        ([(1, 2), (1, 1)], ["log-in-order"]),
        ([(1, 1), (2, 2)], ["log-in-order"]),
        ([(1, 2)], ["log-in-order"]),
    ],
)
def test_a_log_has_no_gap(zxids: list[tuple[int, int]], names: list[str]) -> None:
    """In a log each transaction follows the one before it (I2)."""
    assert violated({1: member(entries(*zxids))}) == names


def test_a_log_begins_after_its_state() -> None:
    """The first transaction follows the state that precedes the log."""
    log = entries((1, 5), (1, 6))
    assert violated({1: member(log, base=1 << 32 | 4)}) == []
    assert violated({1: member(log, base=1 << 32 | 3)}) == ["log-in-order"]


def one_of(crc: int, **other: int) -> MemberState:
    return member(entries((1, 1), crc=crc), **other)


def test_a_zxid_is_one_transaction() -> None:
    """A zxid is the same transaction on all servers and at all times (I3)."""
    assert violated({1: one_of(0), 2: one_of(0)}) == []
    assert violated({1: one_of(0), 2: one_of(7)}) == ["one-transaction-per-zxid"]
    assert violated({1: one_of(0)}, {2: one_of(7)}) == ["one-transaction-per-zxid"]


def test_an_epoch_has_one_leader() -> None:
    """No two servers ever lead the same epoch, not even one after the other (I5)."""
    assert violated({1: leading(epoch=1), 2: leading(epoch=2)}) == []
    assert violated({1: leading(epoch=1)}, {2: leading(epoch=1)}) == ["one-leader-per-epoch"]
    waiting = leading(epoch=1, has_quorum=False, is_established=False)
    assert violated({1: waiting}, {2: leading(epoch=1)}) == []
