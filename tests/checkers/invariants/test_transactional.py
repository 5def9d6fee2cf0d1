"""What is accepted within a transaction, and which offsets are stable."""

import pytest

from checkers.invariants.coordinated import Transaction
from checkers.invariants.transactional import Accepted, Coordinated, outside, unsettled

BATCH = Accepted(producer=7, epoch=2, partition="x-0")


def known(state: str = "COMPLETE_COMMIT", epoch: int = 2, *partitions: str) -> Coordinated:
    """Return what is known of the transactional id of producer 7."""
    return Coordinated(5, 5, Transaction(7, epoch, state, set(partitions)), begun=3)


CLOSED = known()


@pytest.mark.parametrize(
    "closed",
    [
        CLOSED,
        known("EMPTY"),
        known("ONGOING", 3, "x-0"),
        known("ONGOING", 2, "x-1"),
        known("PREPARE_ABORT", 3, "x-1"),
        known("PREPARE_ABORT", 1, "x-0"),
    ],
)
def test_nothing_begins_outside_of_an_open_transaction(closed: Coordinated) -> None:
    """It has ended, belongs to a later epoch, or lacks the partition."""
    assert outside(closed, closed, BATCH) is not None
    forgotten = closed._replace(transaction=None)
    assert outside(forgotten, forgotten, BATCH) is not None


@pytest.mark.parametrize(
    "open_",
    [
        known("ONGOING", 2, "x-0"),
        known("PREPARE_COMMIT"),
        known("PREPARE_ABORT"),
        known("PREPARE_ABORT", 3, "x-0"),
    ],
)
def test_an_open_transaction_may_begin(open_: Coordinated) -> None:
    """It was open when the request arrived, or when it was answered.

    A marker that is not yet written ends what begins after the coordinator has fenced the producer.
    """
    assert outside(open_, CLOSED, BATCH) is None
    assert outside(CLOSED, open_, BATCH) is None


@pytest.mark.parametrize("state", ["PREPARE_COMMIT", "PREPARE_ABORT"])
@pytest.mark.parametrize("after", [CLOSED, known("PREPARE_COMMIT", 2, "x-0")])
def test_nothing_begins_once_the_end_is_decided(state: str, after: Coordinated) -> None:
    """The only coordinator refuses to verify it; the marker may be in the partition's log already.

    Another broker that takes itself for the coordinator may still know the transaction as open, and
    a transaction that was open when the request arrived may have been verified then.
    """
    decided = known(state, 2, "x-0")._replace(is_alone=True)
    why = outside(decided, after, BATCH)
    assert why is not None
    assert f"is {state} in epoch 2" in why
    assert outside(decided._replace(is_alone=False), after, BATCH) is None
    opened = known("ONGOING", 2, "x-0")._replace(is_alone=True)
    assert outside(opened, decided, BATCH) is None
    assert outside(decided, decided._replace(begun=4), BATCH) is None
    of_another = known(state, 3, "x-0")._replace(is_alone=True)
    assert outside(of_another, after, BATCH) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CLOSED, CLOSED._replace(begun=4)),
        (CLOSED._replace(newest=6), CLOSED._replace(newest=6)),
        (CLOSED, CLOSED._replace(newest=6)),
        (CLOSED, CLOSED._replace(newest=6, epoch=6)),
        (CLOSED._replace(newest=-1, epoch=-1), CLOSED._replace(newest=-1, epoch=-1)),
    ],
)
def test_what_is_not_known_is_not_judged(before: Coordinated, after: Coordinated) -> None:
    """A partition may have been added meanwhile, or another coordinator may know more."""
    assert outside(before, after, BATCH) is None


def test_offsets_of_an_open_transaction_are_not_stable() -> None:
    """Offsets of other partitions are."""
    assert unsettled(["x-0", "x-1"], {7: {"x-1": 40}}) == ("x-1", 7, 40)
    assert unsettled(["x-0"], {7: {"x-1": 40}, 8: {}}) is None
    assert unsettled([], {7: {"x-1": 40}}) is None
