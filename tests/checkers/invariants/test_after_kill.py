from typing import Any

import pytest

from checkers.invariants.after_kill import (
    AbortedTransaction,
    AfterKill,
    Known,
    KnownLog,
    KnownProducer,
    StoredSegment,
    difference,
    loss,
)
from checkers.invariants.step import Rules, Stepper
from model.snapshot import ClusterState, Compaction, EpochStart, RememberedBatch
from tests.checkers.invariants.streams import KEY, broker, cluster, log, replica, state

PRODUCER = KnownProducer(0, (RememberedBatch(3, 3, 4),), None, 2)
LOG = KnownLog(
    start=0,
    end=6,
    recovery_point=4,
    clean_to=0,
    topic_id="id",
    epochs=(EpochStart(0, 0), EpochStart(2, 5)),
    segments=(StoredSegment(0, 100, 7, 3), StoredSegment(4, 50, 9, 5)),
    aborted=(AbortedTransaction(1, 0, 2, 3), AbortedTransaction(1, 3, 5, 6)),
    producers={1: PRODUCER},
    places={4: 0},
)


def other(**fields: Any) -> KnownLog:
    """Return the log with other fields."""
    return LOG._replace(**fields)


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        (LOG, None),
        (other(recovery_point=0), None),
        (other(recovery_point=5), "recovery point is 4, and would be 5"),
        (other(start=1), "start is 0, and would be 1"),
        (other(clean_to=3), "offset up to which it is compacted is 0, and would be 3"),
        (other(end=5), "would end at 5"),
        (other(topic_id=""), "would end at 6 with none"),
        (other(segments=LOG.segments[1:]), "the size of the segment at 0 is 100, and would be not"),
        (
            other(segments=(LOG.segments[0], StoredSegment(4, 50, 12, 5))),
            "the largest timestamp of the segment at 4 is (9, 5), and would be (12, 5)",
        ),
        (other(epochs=LOG.epochs[:1]), "the start of epoch 2 is 5, and would be not known"),
        (other(epochs=(*LOG.epochs, EpochStart(3, 6))), None),
        (other(aborted=LOG.aborted[:1]), "the aborted transactions with the marker at 5"),
        (other(producers={}), "the state of producer 1"),
        (
            other(producers={1: PRODUCER._replace(coordinator_epoch=-1)}),
            "the state of producer 1",
        ),
        (other(places={4: 50}), "the position of offset 4 is 0, and would be 50"),
        ("broken", "would not be loaded after a kill: broken"),
    ],
)
def test_a_kill_changes_nothing(loaded: KnownLog | str, why: str | None) -> None:
    """Only checkpoints may be older; an epoch without records is not restored."""
    found = difference(Known(LOG, loaded, LOG), is_compacted=False, forgets=False)
    assert (found is None) == (why is None)
    assert why is None or (found is not None and why in found)


def test_what_is_truncated_is_found_in_memory_only() -> None:
    """An entry for a marker beyond the end of the log is one that a truncation has left."""
    held = other(aborted=(*LOG.aborted, AbortedTransaction(1, 6, 7, 8)))
    found = difference(Known(held, LOG, LOG), is_compacted=False, forgets=False)
    assert found is not None
    assert "the aborted transactions with the marker at 7" in found


def test_two_transactions_with_one_marker_are_found() -> None:
    """A truncation has left the first, and the second was appended at the same offset."""
    held = other(aborted=(LOG.aborted[0], AbortedTransaction(2, 1, 5, 6), LOG.aborted[1]))
    found = difference(Known(held, LOG, LOG), is_compacted=False, forgets=False)
    assert found is not None
    assert "the aborted transactions with the marker at 5" in found


def test_an_earlier_start_is_allowed_with_its_epochs() -> None:
    """The start of a log is checkpointed later than it advances."""
    held = other(start=5, epochs=(EpochStart(2, 5),))
    assert difference(Known(held, LOG, LOG), is_compacted=False, forgets=False) is None


@pytest.mark.parametrize(
    ("fields", "in_compacted", "if_forgotten"),
    [
        ({"producers": {}}, False, False),
        ({"aborted": ()}, False, True),
        ({"segments": (LOG.segments[0], StoredSegment(4, 50, 1, 4))}, False, True),
        ({"segments": LOG.segments[:1]}, True, True),
        ({"epochs": ()}, True, True),
    ],
)
def test_what_compaction_and_expiration_may_change(
    fields: dict[str, Any], in_compacted: bool, if_forgotten: bool
) -> None:
    """Compaction removes batches from which the rest is derived; silent producers expire."""
    known = Known(LOG, other(**fields), LOG)
    found = difference(known, is_compacted=True, forgets=False)
    assert (found is not None) == in_compacted
    found = difference(known, is_compacted=False, forgets=True)
    assert (found is not None) == if_forgotten


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        (LOG, None),
        (other(end=4, segments=LOG.segments[:1], aborted=LOG.aborted[:1], producers={}), None),
        (other(end=3), "would end at 3 after a loss of power, before its recovery point 4"),
        (
            other(segments=(StoredSegment(0, 90, 7, 3), LOG.segments[1])),
            "the size of the segment at 0 is 100, and would be 90 after a loss of power",
        ),
        (other(segments=(LOG.segments[0], StoredSegment(4, 9, 9, 5))), None),
        (other(aborted=()), "the aborted transactions with the marker at 2"),
        (other(epochs=LOG.epochs[1:]), "the start of epoch 0"),
        ("broken", "would not be loaded after a loss of power: broken"),
    ],
)
def test_what_is_below_the_recovery_point_is_durable(
    loaded: KnownLog | str, why: str | None
) -> None:
    """All that is not synced may be lost, but no part of a segment below the recovery point."""
    found = loss(Known(LOG, LOG, loaded), is_compacted=False)
    assert (found is None) == (why is None)
    assert why is None or (found is not None and why in found)


def test_the_epochs_of_a_compacted_log_may_begin_later() -> None:
    """A damaged file of epochs is rebuilt from the batches that compaction has left."""
    known = Known(LOG, LOG, other(epochs=(EpochStart(0, 1), EpochStart(2, 5))))
    assert loss(known, is_compacted=True) is None
    assert loss(known, is_compacted=False) is not None


class _Broken:
    """Loads a log that lacks its end, and counts how often it was asked for one."""

    def __init__(self, known: Known | None) -> None:
        self.known = known
        self.asked: list[tuple[int, str]] = []

    def __call__(self, number: int, key: str) -> Known | None:
        self.asked.append((number, key))
        return self.known


def judged(*states: ClusterState, known: Known | None, is_last: bool = False) -> list[str]:
    """Return the invariants that the last of these snapshots violates."""
    reload = _Broken(known)
    fold, stepper = AfterKill(Rules(), reload), Stepper()
    for number, each in enumerate(states):
        is_end = number + 1 == len(states)
        found = list(fold.step(stepper.step(each, is_last=is_last and is_end)))
        if is_end:
            assert all(violation.key == KEY for violation in found)
            return [violation.invariant for violation in found]
    raise AssertionError("there is no snapshot")


BAD = Known(LOG, other(end=5), other(end=3))
BOTH = ["same-after-kill", "durable-to-recovery-point"]


@pytest.mark.parametrize(
    ("later", "names"),
    [
        ({}, []),
        ({"role": "leader"}, []),
        ({"cuts": (3,)}, BOTH),
        ({"cuts": (3,), "log_number": 1}, []),
        ({"cuts": (3,), "role": "offline"}, []),
    ],
)
def test_a_log_is_judged_when_it_was_truncated(later: dict[str, Any], names: list[str]) -> None:
    """Other changes of a replica do not matter, and a new log is not compared."""
    batches = log(0, 0, 0)
    first = cluster(state(isr=(1,)), {2: replica(batches, 3)})
    second = cluster(state(isr=(1,)), {2: replica(batches, 3, **later)})
    assert judged(first, second, known=BAD) == names


def test_a_log_is_judged_when_it_was_compacted() -> None:
    """A pass of the cleaner replaces segments."""
    states = []
    for passes in (0, 1):
        made = {KEY: Compaction(passes=passes, is_wanted=True)}
        held = broker(replica(log(0, 0, 0), 3), compactions=made)
        states.append(cluster(state(isr=(1,)), {2: held}))
    assert judged(*states, known=BAD) == BOTH


def test_all_logs_are_judged_at_the_end() -> None:
    """Nothing has changed in the last snapshot."""
    one = cluster(state(isr=(1,)), {2: replica(log(0, 0, 0), 3)})
    assert judged(one, one, known=BAD, is_last=True) == BOTH
    assert judged(one, one, known=Known(LOG, LOG, LOG), is_last=True) == []
    assert judged(one, one, known=None, is_last=True) == []
    assert judged(one, one, known=BAD) == []
