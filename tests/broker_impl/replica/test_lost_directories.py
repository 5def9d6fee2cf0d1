import pytest

from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.replica import controller_orders, log_directories, lost_directories
from broker_impl.replica.events import LeadershipLost, StopFetching
from broker_impl.replica.results import EARLIEST
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.replica.conftest import NONE, OTHER, TP, Broker

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
THIRD = TopicPartition("t", 2)


class Two(Broker):
    """A broker with two data directories, whose logs TP and OTHER are in one each."""

    def __init__(self, disk: MemoryDisk | None = None, other: MemoryDisk | None = None) -> None:
        self.other_disk = other or MemoryDisk()
        super().__init__(disk, self.other_disk)

    def break_down(self) -> None:
        """Let every operation in the directory of TP fail."""
        self.disk.fails = lambda operation, path: True

    def lose(self) -> None:
        """Take the directory of TP offline, after it has failed."""
        lost_directories.lose(self.replicas, self.logs.directories[0])


@pytest.fixture
def two() -> Two:
    """A broker that leads TP and OTHER, each with ten records."""
    found = Two()
    assert found.order(tps=(TP, OTHER), is_new=True, isr=(1,), replicas=(1, 2)) == [NONE, NONE]
    for tp in (TP, OTHER):
        found.append(10, tp)
    return found


def answers(broker: Broker, tp: TopicPartition) -> set[ErrorCode]:
    """The errors of all requests of clients about a partition."""
    replicas = broker.replicas
    records = batch.encode_batch([batch.Record(value=b"v", timestamp_ms=7)])
    producers = replicas.producers(tp)
    return {
        replicas.append(tp, records, acks=1).error,
        replicas.fetch(tp, replica_id=-1, offset=5, bytes_max=100).error,
        replicas.fetch(tp, replica_id=2, offset=5, bytes_max=100, current_leader_epoch=0).error,
        replicas.list_offset(tp, timestamp=5).error,
        replicas.list_offset(tp, timestamp=EARLIEST).error,
        replicas.delete_records(tp, 1).error,
        replicas.end_offset_for_epoch(tp, 0, 0)[0],
        producers if isinstance(producers, ErrorCode) else NONE,
    }


def test_a_request_that_meets_the_failure_is_refused(two: Two) -> None:
    """The request that finds the failure is answered KAFKA_STORAGE_ERROR, whatever it was."""
    assert answers(two, TP) == answers(two, OTHER) == {NONE}
    two.break_down()
    replicas = two.replicas
    assert replicas.fetch(TP, replica_id=-1, offset=5, bytes_max=100).error is STORAGE
    assert replicas.list_offset(TP, timestamp=5).error is STORAGE
    assert replicas.delete_records(TP, 3).error is STORAGE
    records = batch.encode_batch([batch.Record(value=b"v", timestamp_ms=7)])
    assert replicas.append(TP, records, acks=1).error is STORAGE
    assert answers(two, OTHER) == {NONE}


def test_without_another_directory_the_failure_is_raised(two: Two) -> None:
    """The failure of the last directory that works ends the broker."""
    two.break_down()
    two.other_disk.fails = lambda operation, path: True
    assert two.replicas.fetch(TP, replica_id=-1, offset=5, bytes_max=100).error is STORAGE
    for tp in (OTHER, TP):
        with pytest.raises(DirectoryFailed):
            two.replicas.fetch(tp, replica_id=-1, offset=5, bytes_max=100)


def test_lost_replicas_answer_that_they_are_lost(two: Two) -> None:
    """A replica in a failed directory does not lead any more, and every request is refused."""
    two.break_down()
    two.effects.clear()
    two.lose()
    assert two.replicas.leaders() == [OTHER]
    assert LeadershipLost(TP) in two.effects
    assert LeadershipLost(OTHER) not in two.effects
    assert answers(two, TP) == {STORAGE}
    assert answers(two, OTHER) == {NONE}
    assert TP not in two.replicas.high_watermarks()


def test_a_follower_that_is_lost_does_not_fetch(two: Two) -> None:
    """A replica in a failed directory is not fetched any more."""
    assert two.order(2, epoch=1, tps=(TP, OTHER)) == [NONE, NONE]
    assert {target.tp for target in two.targets()} == {TP, OTHER}
    two.effects.clear()
    two.break_down()
    two.lose()
    assert [target.tp for target in two.targets()] == [OTHER]
    assert StopFetching(TP) in two.effects or LeadershipLost(TP) not in two.effects


def test_the_controller_learns_which_replicas_are_lost(two: Two) -> None:
    """Every order about a lost replica is refused, and one about another is obeyed."""
    two.break_down()
    two.lose()
    assert two.order(epoch=5, tps=(TP, OTHER)) == [STORAGE, NONE]
    assert two.order(2, epoch=6, tps=(TP,), is_new=True) == [STORAGE]
    assert two.stop(epoch=9, delete=False) is STORAGE
    assert two.stop(epoch=9, delete=True) is STORAGE
    assert two.stop(epoch=9, delete=True, tp=OTHER) is NONE
    assert TP not in two.replicas.partitions


def test_an_order_that_meets_the_failure_is_refused(two: Two) -> None:
    """An order that has to change a log in the failing directory stops no other order."""
    two.break_down()
    assert two.order(epoch=5, tps=(TP, OTHER)) == [STORAGE, NONE]
    assert two.replicas.partitions[OTHER].leader_epoch == 5
    two.lose()
    assert two.stop(epoch=9, delete=True) is STORAGE


def test_a_deletion_that_meets_the_failure_is_refused(two: Two) -> None:
    """The controller repeats a deletion that a failing directory has refused."""
    two.break_down()
    assert two.stop(epoch=9, delete=True) is STORAGE


@pytest.mark.parametrize(
    ("is_new", "any_failed", "expected"),
    [(True, True, True), (True, False, True), (False, False, True), (False, True, False)],
)
def test_where_a_log_may_be_is_not_begun_again(
    is_new: bool, any_failed: bool, expected: bool
) -> None:
    """Only a log that cannot be in a failed directory is created."""
    assert controller_orders.may_create(is_new=is_new, any_failed=any_failed) is expected


def test_a_restart_with_a_failed_directory_begins_no_log_again(two: Two) -> None:
    """A broker that starts without a directory hosts new partitions, and none that it may have."""
    two.break_down()
    for disk in (two.disk, two.other_disk):
        disk.kill()
    again = Two(two.disk, two.other_disk)
    assert again.logs.goes_on
    assert again.order(epoch=1, tps=(TP, OTHER)) == [STORAGE, NONE]
    assert again.order(tps=(THIRD,), is_new=True) == [NONE]
    assert sorted(again.logs.logs) == [OTHER, THIRD]


def test_no_replica_moves_to_or_from_a_failed_directory(two: Two) -> None:
    """A move that needs a failed directory is refused, also if it finds the failure itself."""
    two.break_down()
    assert log_directories.alter(two.replicas, OTHER, "") is STORAGE
    two.lose()
    for tp, path in ((OTHER, ""), (TP, "other"), (THIRD, "")):
        assert log_directories.alter(two.replicas, tp, path) is STORAGE
    assert log_directories.alter(two.replicas, THIRD, "other") is ErrorCode.REPLICA_NOT_AVAILABLE
