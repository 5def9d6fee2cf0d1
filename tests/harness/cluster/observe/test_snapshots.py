import contextlib
from collections.abc import Callable, Iterator

import pytest

from broker_impl import mutants
from broker_impl.errors import ErrorCode
from broker_impl.replica import fencing, isr
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.snapshots import Snapshots
from tests.broker_impl.replica import test_cluster_machine, test_schedules
from tests.harness.cluster.observe.watched_cluster import WatchedCluster


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(test_schedules, "PureCluster", WatchedCluster)
    monkeypatch.setattr(test_cluster_machine, "PureCluster", WatchedCluster)
    WatchedCluster.seen.clear()
    yield
    mutants.removed()


def violated() -> set[str]:
    """Return the names of the violated invariants."""
    return {violation.invariant for violation in WatchedCluster.seen}


CLEAN = [made for made in test_schedules.SCHEDULES if made is not test_schedules.a02_both_crash]


@pytest.mark.parametrize("schedule", CLEAN, ids=lambda made: made.__name__)
def test_no_schedule_violates_an_invariant_on_the_correct_replica(
    schedule: Callable[[], test_schedules.Ending],
) -> None:
    """No invariant is violated after any message of the schedules.

    They mix deposed leaders, late responses and restarts.
    """
    schedule()
    assert WatchedCluster.seen == []


def test_an_unclean_election_is_allowed_where_it_is_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unclean election loses committed data, a violation only where it is not configured."""
    test_schedules.a02_both_crash()
    assert "log-matching" in violated()
    WatchedCluster.seen.clear()
    monkeypatch.setattr(WatchedCluster, "unclean", True)
    test_schedules.a02_both_crash()
    assert WatchedCluster.seen == []


def test_a_compaction_is_known_from_then_on() -> None:
    """A log that was compacted is known to be so at the next snapshot; its broker may be down."""
    taken = Snapshots()
    rewritten: list[TopicPartition] = []
    taken.broker_started(1, lambda *_: None, lambda: False, rewritten=lambda: rewritten)
    assert list(taken.take(1, producers=False).compacted) == []
    rewritten.append(TopicPartition("t", 0))
    assert list(taken.take(2, producers=False).compacted) == ["t-0"]
    rewritten.clear()
    assert list(taken.take(3, producers=False).compacted) == ["t-0"]


def test_a_compaction_that_no_snapshot_showed() -> None:
    """A log that was compacted just before its broker ended is known to be so at the next start."""
    taken = Snapshots()
    partition = TopicPartition("t", 0)
    rewritten: list[TopicPartition] = []
    taken.broker_started(1, lambda *_: None, lambda: True, rewritten=lambda: rewritten)
    before = taken.take(1, producers=False)
    rewritten.append(partition)
    taken.broker_started(1, lambda *_: None, lambda: True, rewritten=list)
    assert list(taken.take(2, producers=False).compacted) == ["t-0"]
    assert list(before.compacted) == []
    taken.broker_started(1, lambda *_: None, lambda: True)
    assert list(taken.take(3, producers=False).compacted) == ["t-0"]


@pytest.mark.slow
def test_no_order_of_events_violates_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    """No order of events that the replica's state machine test draws violates an invariant."""
    monkeypatch.setattr(WatchedCluster, "raises", True)
    test_cluster_machine.run(60, shrink=False)


@pytest.mark.parametrize(
    ("mutant", "schedule", "invariants"),
    [
        ("truncate-to-hw-loss", test_schedules.a01_two_leaders_die, {"candidate-completeness"}),
        ("no-min-isr-check", test_schedules.b04_leader_left_alone, {"hw-below-min-isr"}),
        ("pstate-not-replicated", test_schedules.d01_retry_at_the_next_leader, {"producer-state"}),
        ("ack-on-local-append", test_schedules.b07_leader_dies_at_once, set()),
    ],
)
def test_what_the_invariants_see_of_a_planted_bug(
    mutant: str, schedule: Callable[[], test_schedules.Ending], invariants: set[str]
) -> None:
    """A planted bug violates its invariants under its schedule.

    A response that comes too early is no state of a broker, so no invariant shows it.
    """
    mutants.plant([mutant])
    schedule()
    assert invariants <= violated()
    assert bool(violated()) == bool(invariants)


@pytest.mark.parametrize(
    ("rule", "fault", "schedule", "invariant"),
    [
        (
            (fencing, "current_leader_epoch"),
            lambda request_epoch, known_epoch: ErrorCode.NONE,
            test_schedules.a08_old_fetch_after_a_reelection,
            "candidate-completeness",
        ),
        (
            (isr, "reports_log_end"),
            lambda *_: True,
            test_schedules.a11_diverging_fetch,
            "candidate-completeness",
        ),
        (
            (isr, "may_join"),
            lambda end, mark, *_: end >= mark,
            test_schedules.r13_join_before_the_start_of_the_epoch,
            "candidate-completeness",
        ),
    ],
    ids=["A08", "A11", "R13"],
)
def test_faults_of_single_rules_are_seen(
    monkeypatch: pytest.MonkeyPatch,
    rule: tuple[object, str],
    fault: Callable[..., object],
    schedule: Callable[[], test_schedules.Ending],
    invariant: str,
) -> None:
    """A fault in one rule violates the invariant that the rule protects."""
    monkeypatch.setattr(*rule, fault)
    with contextlib.suppress(AssertionError):  # the schedule's own check may fail, too
        schedule()
    WatchedCluster.last.look()
    assert invariant in violated()
