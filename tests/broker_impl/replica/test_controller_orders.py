from uuid import UUID

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.log.topic_identity import PARTITION_METADATA
from broker_impl.replica.events import LeadershipLost, StopFetching
from broker_impl.wire import batch
from broker_impl.wire.types import NO_UUID
from tests.broker_impl.replica.conftest import NONE, OTHER, TP, Broker

OLD, NEW = UUID(int=7), UUID(int=8)
FILE = f"{TP}/{PARTITION_METADATA}"


def test_a_controller_that_was_replaced_is_not_obeyed(broker: Broker) -> None:
    """A request of a replaced controller is refused as a whole (KAFKA-1188)."""
    assert broker.order(controller_epoch=5) == [NONE]
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.order(2, epoch=1, controller_epoch=4) == [stale]
    assert broker.stop(epoch=9, delete=True, controller_epoch=4) is stale
    assert broker.replicas.leaders() == [TP]
    assert broker.replicas.order_error(-1, 4) is stale
    assert broker.replicas.order_error(-1, 6) is NONE
    assert broker.order(epoch=1, controller_epoch=5) == [stale]


def test_an_order_to_a_former_incarnation_is_not_obeyed(broker: Broker) -> None:
    """KIP-380: an order with an older broker epoch is refused.

    A later broker epoch than the known one can only be this broker's own (KAFKA-9839).
    """
    broker.replicas.broker_epoch = 70
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert broker.order(broker_epoch=69) == [stale]
    assert broker.stop(epoch=1, delete=True, broker_epoch=69) is stale
    assert broker.replicas.broker_epoch_error(69) is stale
    assert broker.replicas.partitions == {}
    assert broker.order(broker_epoch=71) == [NONE]


def test_only_a_newer_leader_epoch_is_obeyed(broker: Broker) -> None:
    """LeaderAndIsr is applied to each partition whose leader epoch is newer."""
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.order(epoch=3) == [NONE]
    assert broker.order(2, epoch=3, tps=(TP, OTHER)) == [stale, NONE]
    assert broker.order(2, epoch=2) == [stale]
    assert broker.replicas.leaders() == [TP]
    assert broker.order(2, epoch=4) == [NONE]
    assert broker.replicas.leaders() == []


def test_an_order_for_others_is_refused(broker: Broker) -> None:
    """An order is refused for a partition of which this broker is not a replica."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.order(2, isr=(2,), replicas=(2, 3)) == [error]
    assert broker.replicas.partitions == {}
    assert broker.logs.logs == {}


def test_stop_keeps_the_log(broker: Broker) -> None:
    """A replica that is stopped without deletion keeps its log and its epoch."""
    broker.order()
    broker.append()
    assert broker.stop(epoch=0, delete=False) is ErrorCode.FENCED_LEADER_EPOCH
    assert broker.stop(epoch=1, delete=False) is NONE
    assert broker.last_effect() == LeadershipLost(TP)
    assert broker.end() == 1
    assert broker.order(2, epoch=0) == [ErrorCode.STALE_CONTROLLER_EPOCH]
    assert broker.order(2, epoch=2) == [NONE]
    assert broker.stop(epoch=3, delete=False) is NONE
    assert broker.last_effect() == StopFetching(TP)
    assert broker.targets() == []


def test_deletion(broker: Broker) -> None:
    """A deletion removes replica and log; a topic of the same name starts with an empty log."""
    broker.order()
    broker.append()
    result = broker.replicas.append(TP, batch.encode_batch([batch.Record()]), acks=-1)
    assert broker.stop(epoch=-2, delete=True) is NONE
    assert broker.logs.logs == {}
    assert broker.replicas.partitions == {}
    assert broker.replicas.high_watermarks() == {}
    assert broker.replicas.acknowledged(TP, result) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.stop(epoch=-2, delete=True) is NONE, "said again"
    assert broker.order(epoch=0) == [NONE]
    assert broker.end() == 0


def test_a_topic_that_was_deleted_while_the_broker_was_down() -> None:
    """The log of a topic that was deleted while the broker was down is deleted too."""
    before = Broker()
    before.order()
    before.append()
    before.disk.kill()
    broker = Broker(before.disk)
    assert broker.end() == 1
    assert broker.stop(epoch=-2, delete=True) is NONE
    assert broker.logs.logs == {}


def test_an_order_by_a_connection_that_was_given_up_is_late(broker: Broker) -> None:
    """An order over a connection that the same controller has given up is late.

    The next controller starts again with any connection number.
    """
    late = broker.replicas.late_error
    assert late(1, 4) is NONE
    assert late(1, 6) is NONE
    assert late(1, 4) is ErrorCode.REQUEST_TIMED_OUT
    assert late(1, 6) is NONE
    assert late(2, 5) is NONE
    assert late(1, 7) is NONE, "a former controller is refused by its epoch"
    assert late(2, 4) is ErrorCode.REQUEST_TIMED_OUT


def test_a_late_order_makes_no_replica_anew(broker: Broker) -> None:
    """A late order does not create a deleted replica again.

    Its epoch cannot show that it is late, because the replica's epochs are gone with the
    replica.
    """
    assert broker.order(epoch=3) == [NONE]
    broker.append()
    assert broker.stop(epoch=4, delete=True) is NONE
    assert broker.order(epoch=3, late=ErrorCode.REQUEST_TIMED_OUT) == [ErrorCode.REQUEST_TIMED_OUT]
    assert TP not in broker.replicas.partitions
    assert broker.order(epoch=5) == [NONE], "this one is in time"
    assert broker.replicas.led(TP, 5) is not None


def restarted(topic_id: UUID) -> Broker:
    """A broker that was killed with one record, high watermark 1, in a log of this topic id."""
    before = Broker()
    before.order(isr=(1,), topic_id=topic_id)
    before.append()
    before.logs.logs[TP].flush()
    before.logs.checkpoint(before.replicas.high_watermarks())
    before.disk.crash()
    return Broker(before.disk)


def test_the_log_of_a_deleted_topic_is_deleted() -> None:
    """KIP-516: a log of another topic id is renamed, and the replica begins with an empty log."""
    broker = restarted(OLD)
    assert (broker.end(), broker.logs.high_watermarks[TP]) == (1, 1)
    assert broker.order(topic_id=NEW) == [NONE]
    assert (broker.end(), broker.high_watermark()) == (0, 0)
    assert broker.logs.logs[TP].topic_id == NEW
    [renamed] = [name for name in broker.disk.list("") if name.endswith("-delete")]
    assert renamed.startswith(str(TP))
    broker.disk.crash()
    again = Broker(broker.disk)
    assert (again.end(), again.logs.logs[TP].topic_id) == (0, NEW)


def test_the_log_of_the_same_topic_is_kept() -> None:
    """A log of the topic id in the order is kept, also if the order says that it is new.

    The controller sends such an order again if the response to it is lost.
    """
    broker = restarted(OLD)
    assert broker.order(epoch=1, topic_id=OLD, is_new=True) == [NONE]
    assert broker.end() == 1


@pytest.mark.parametrize(("is_new", "end"), [(False, 1), (True, 0)])
def test_a_log_of_an_earlier_release_takes_the_id(is_new: bool, end: int) -> None:
    """A log without an id takes the one in the order, unless the partition has just been created.

    The id is on disk before the replica is used.
    """
    broker = restarted(NO_UUID)
    assert not broker.disk.exists(FILE)
    assert broker.order(topic_id=NEW, is_new=is_new) == [NONE]
    assert broker.end() == end
    broker.disk.crash()
    assert Broker(broker.disk).logs.logs[TP].topic_id == NEW


def test_an_order_without_a_topic_id_changes_none() -> None:
    """LeaderAndIsr v4 has no topic ids, so it finds the log that has the name."""
    broker = restarted(OLD)
    assert broker.order(is_new=True) == [NONE]
    assert (broker.end(), broker.logs.logs[TP].topic_id) == (1, OLD)


def test_a_replica_of_a_deleted_topic_is_replaced(broker: Broker) -> None:
    """A live broker may still lead a partition of the deleted topic, in a later leader epoch.

    The new topic counts its leader epochs from 0. Records of the deleted topic that wait for
    replication are not acknowledged by the new one.
    """
    broker.order(epoch=3, isr=(1, 2), topic_id=OLD)
    result = broker.replicas.append(TP, batch.encode_batch([batch.Record()]), acks=-1)
    assert broker.replicas.acknowledged(TP, result) is None
    assert broker.order(epoch=3, topic_id=OLD) == [ErrorCode.STALE_CONTROLLER_EPOCH]
    assert broker.end() == 1
    assert broker.order(epoch=0, isr=(1,), topic_id=NEW, is_new=True) == [NONE]
    assert LeadershipLost(TP) in broker.effects
    assert (broker.end(), broker.replicas.leader_epoch(TP)) == (0, 0)
    broker.append()
    assert broker.replicas.acknowledged(TP, result) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_of_a_deleted_topic_fetches_from_the_start(broker: Broker) -> None:
    """A follower that is replaced follows the new leader only, from offset 0."""
    broker.order(epoch=3, topic_id=OLD)
    broker.append()
    broker.order(2, epoch=4, topic_id=OLD)
    assert broker.targets(2)[0].offset == 1
    assert broker.order(3, isr=(3,), replicas=(3, 1), topic_id=NEW) == [NONE]
    assert broker.targets(2) == []
    assert [(target.offset, target.leader_epoch) for target in broker.targets(3)] == [(0, 0)]


def test_an_order_for_others_deletes_no_log() -> None:
    """An order for a partition of which this broker is not a replica does not touch its log."""
    broker = restarted(OLD)
    refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.order(2, isr=(2,), replicas=(2, 3), topic_id=NEW) == [refused]
    assert broker.end() == 1
