import pytest

from broker_impl.replica.events import BecomeFollower, Tick
from tests.broker_impl.replica.replica_driver import Driver, leader


def test_snapshot() -> None:
    """A snapshot has the replica's state as plain values."""
    driver = leader()
    driver.append(2)
    driver.fetched(2, 1)
    shot = driver.partition.snapshot()
    assert (shot.role, shot.leader, shot.leader_epoch, shot.epoch_start) == ("leader", 1, 0, 0)
    assert (shot.log_start, shot.high_watermark, shot.log_end) == (0, 1, 2)
    assert (shot.isr, shot.maximal_isr, shot.zk_version) == ((1, 2), (1, 2), 0)


def test_the_watermark_of_the_checkpoint_is_bounded_by_the_log() -> None:
    """The checkpointed watermark is limited to the log's end, which a crash may have moved."""
    assert Driver(high_watermark=7).partition.high_watermark == 0


def test_epochs_only_grow() -> None:
    """An order that is not newer is an assertion error: it must be fenced before."""
    driver = leader()
    with pytest.raises(AssertionError, match="the leader epoch does not increase"):
        driver(BecomeFollower(driver.state(2, epoch=0)))


def test_check_sees_what_one_replica_can_see() -> None:
    """`check` raises an AssertionError for each broken invariant, with its name."""
    driver = leader()
    driver.append(3)
    driver.fetched(2, 2)
    partition = driver.partition
    driver(Tick())

    def broken(attribute: str, value: object, message: str) -> None:
        correct = getattr(partition, attribute)
        setattr(partition, attribute, value)
        with pytest.raises(AssertionError, match=message):
            partition.check()
        setattr(partition, attribute, correct)
        partition.check()

    broken("high_watermark", 4, "are not in this order")
    broken("high_watermark", 1, "went back within epoch")
    broken("isr", frozenset({2}), "the leader is not in the ISR")
    broken("maximal_isr", frozenset({1}), "lacks a member")
    broken("leader", 2, "this replica leads, but its leader is 2")
    broken("leader_epoch", 1, "the last epoch of its log is 0")
    broken("exposed", 3, "above the high watermark")
