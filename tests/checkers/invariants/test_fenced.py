"""Requests of another epoch are refused, and those of the broker's own epoch are not."""

import pytest

from checkers.invariants.fenced import (
    FENCED_LEADER_EPOCH,
    NONE,
    STALE_BROKER_EPOCH,
    STALE_CONTROLLER_EPOCH,
    UNKNOWN_LEADER_EPOCH,
    Known,
    of_leader,
    of_marker,
    of_order,
)

STILL, GROWN = Known(5, 5), Known(5, 7)


@pytest.mark.parametrize(
    ("asked", "known", "error"),
    [
        (5, STILL, NONE),
        (-1, STILL, NONE),
        (-1, STILL, FENCED_LEADER_EPOCH),
        (4, STILL, FENCED_LEADER_EPOCH),
        (6, STILL, UNKNOWN_LEADER_EPOCH),
        (4, STILL, 6),
        (5, GROWN, NONE),
        (6, GROWN, NONE),
        (7, GROWN, NONE),
        (6, GROWN, FENCED_LEADER_EPOCH),
        (6, GROWN, UNKNOWN_LEADER_EPOCH),
    ],
)
def test_leader_epochs_that_are_answered_as_they_must_be(
    asked: int, known: Known, error: int
) -> None:
    """Each epoch that the broker knew meanwhile may decide; another error says nothing."""
    assert of_leader(asked, known, error) is None


@pytest.mark.parametrize(
    ("asked", "known", "error", "why"),
    [
        (4, STILL, NONE, "epoch 4 was served in epoch 5"),
        (6, STILL, NONE, "epoch 6 was served in epoch 5"),
        (4, GROWN, NONE, "epoch 4 was served in epoch 5 to 7"),
        (8, GROWN, NONE, "epoch 8 was served in epoch 5 to 7"),
        (5, STILL, FENCED_LEADER_EPOCH, "refused as older"),
        (7, GROWN, FENCED_LEADER_EPOCH, "refused as older"),
        (5, STILL, UNKNOWN_LEADER_EPOCH, "refused as newer"),
        (5, GROWN, UNKNOWN_LEADER_EPOCH, "refused as newer"),
    ],
)
def test_leader_epochs_that_are_not(asked: int, known: Known, error: int, why: str) -> None:
    """An older or a newer one is served, or the right one is refused."""
    assert why in (of_leader(asked, known, error) or "")


def test_orders_of_earlier_epochs() -> None:
    """They are refused, and the order with the newest epoch is obeyed; no epoch is no reason."""
    for asked, error in ((5, NONE), (9, NONE), (-1, NONE), (4, STALE_CONTROLLER_EPOCH), (4, 7)):
        assert of_order("controller", asked, STILL, error, STALE_CONTROLLER_EPOCH) is None
    why = of_order("controller", 4, STILL, NONE, STALE_CONTROLLER_EPOCH)
    assert why == "an order with the controller epoch 4 was obeyed, and 5 was known"
    assert of_order("broker", 5, STILL, STALE_BROKER_EPOCH, STALE_BROKER_EPOCH) is not None
    # The broker may have learned of the epoch 7 before it decided.
    assert of_order("broker", 6, GROWN, STALE_BROKER_EPOCH, STALE_BROKER_EPOCH) is None
    assert of_order("broker", 6, GROWN, NONE, STALE_BROKER_EPOCH) is None


def test_markers_of_earlier_epochs() -> None:
    """Neither an older producer nor a replaced coordinator ends a transaction."""
    assert of_marker(3, 5, (3, 5), NONE) is None
    assert of_marker(4, 6, (3, 5), NONE) is None
    assert of_marker(2, 5, (3, 5), 47) is None
    assert of_marker(2, 5, (3, 5), NONE) is not None
    assert of_marker(3, 4, (3, 5), NONE) is not None
