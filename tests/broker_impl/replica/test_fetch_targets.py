from broker_impl.errors import ErrorCode
from broker_impl.replica.events import StartFetching
from broker_impl.replica.fetch_targets import FetchChanges, FetchTarget
from broker_impl.replica.replica_state import Stage
from broker_impl.wire import batch
from tests.broker_impl.replica.conftest import NONE, OTHER, TP, Broker


def test_the_plan_names_what_to_ask(broker: Broker) -> None:
    """The fetch plan groups partitions by leader, and follows changes of the leader."""
    broker.order(2, tps=(TP, OTHER))
    assert broker.effects == [StartFetching(TP, 2), StartFetching(OTHER, 2)]
    assert broker.targets() == [FetchTarget(tp, Stage.FETCH, 0, 0, -1, 0) for tp in (TP, OTHER)]
    broker.order(3, epoch=1)
    plan = broker.replicas.fetch_plan()
    assert {leader: [t.tp for t in targets] for leader, targets in plan.items()} == {
        2: [OTHER],
        3: [TP],
    }
    broker.order(1, epoch=2, tps=(TP, OTHER))
    assert broker.replicas.fetch_plan() == {}
    broker.order(-1, epoch=3)
    assert broker.replicas.fetch_plan() == {}


def test_out_of_range_asks_for_the_bounds(broker: Broker) -> None:
    """Out of range, a follower asks for the bounds, and may restart at the leader's log start."""
    broker.order(2)
    (target,) = broker.targets()
    broker.replicas.fetched(target, ErrorCode.OFFSET_OUT_OF_RANGE)
    (target,) = broker.targets()
    assert target.stage is Stage.BOUNDS
    broker.replicas.bounds_answered(target, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
    assert broker.targets() == []
    broker.now += 1
    broker.replicas.bounds_answered(target, NONE, 20, 30)
    assert broker.targets() == [FetchTarget(TP, Stage.FETCH, 0, 20, -1, 20)]


def test_after_an_error_the_partition_pauses(broker: Broker) -> None:
    """An error pauses one partition for replica.fetch.backoff.ms, not others of the same leader."""
    broker.order(2, tps=(TP, OTHER))
    assert broker.replicas.next_retry(2) is None
    broker.replicas.fetched(broker.targets()[0], ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert [target.tp for target in broker.targets()] == [OTHER]
    assert broker.replicas.next_retry(2) == broker.now + 0.5
    broker.now += 0.5
    assert [target.tp for target in broker.targets()] == [TP, OTHER]
    assert broker.replicas.next_retry(2) is None
    (_, target) = broker.targets()
    broker.order(2, epoch=1, tps=(TP, OTHER))
    broker.replicas.epoch_end_answered(target, ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert broker.replicas.next_retry(2) is None, "of the former epoch"


def test_an_answer_for_a_deleted_partition_is_ignored(broker: Broker) -> None:
    """KAFKA-13207: a late response does not bring a deleted partition back."""
    broker.order(2)
    (target,) = broker.targets()
    broker.stop(epoch=-2, delete=True)
    broker.replicas.fetched(target, NONE, records=b"", high_watermark=0, log_start_offset=0)
    assert broker.logs.logs == {}
    assert broker.replicas.partitions == {}


def test_only_changes_are_returned(broker: Broker) -> None:
    """The changes of the requests to a leader are those of partitions that had an event."""
    replicas = broker.replicas
    broker.order(2, tps=(TP, OTHER))
    assert replicas.leaders_followed() == [2]
    first = replicas.fetch_changes(2)
    assert (first.due, first.gone) == (broker.targets(), [])
    assert replicas.fetch_changes(2) == FetchChanges([], [])
    replicas.fetched(first.due[0], NONE, records=one_batch(), high_watermark=0, log_start_offset=0)
    assert replicas.fetch_changes(2) == FetchChanges([FetchTarget(TP, Stage.FETCH, 0, 1, 0, 0)], [])
    broker.order(2, epoch=1)
    assert [(each.tp, each.leader_epoch) for each in replicas.fetch_changes(2).due] == [(TP, 1)]


def test_what_is_left_is_gone(broker: Broker) -> None:
    """A partition with another leader, or none, is gone for the former one, and due for the new."""
    replicas = broker.replicas
    broker.order(2, tps=(TP, OTHER))
    replicas.fetch_changes(2)
    broker.order(3, epoch=1)
    assert replicas.fetch_changes(2) == FetchChanges([], [TP])
    assert [each.tp for each in replicas.fetch_changes(3).due] == [TP]
    broker.stop(epoch=-2, delete=True, tp=OTHER)
    assert replicas.fetch_changes(2) == FetchChanges([], [OTHER])
    broker.order(1, epoch=2)
    assert replicas.fetch_changes(3) == FetchChanges([], [TP])
    assert replicas.leaders_followed() == []


def test_a_delayed_partition_is_gone_until_its_time(broker: Broker) -> None:
    """After an error a partition is gone, and due again by the passing of time alone."""
    replicas = broker.replicas
    broker.order(2, tps=(TP, OTHER))
    target = replicas.fetch_changes(2).due[0]
    replicas.fetched(target, ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert replicas.fetch_changes(2) == FetchChanges([], [TP])
    assert replicas.fetch_changes(2) == FetchChanges([], [])
    broker.now += 0.5
    assert replicas.fetch_changes(2) == FetchChanges([target], [])
    assert replicas.fetch_changes(2) == FetchChanges([], [])


def test_retention_changes_the_request(broker: Broker) -> None:
    """A follower reports the start of its log again after retention has moved it."""
    replicas = broker.replicas
    broker.order(2)
    replicas.fetch_changes(2)
    replicas.start_moved(TP)
    replicas.start_moved(OTHER)
    assert [each.tp for each in replicas.fetch_changes(2).due] == [TP]


def one_batch() -> bytes:
    """A batch of a leader in epoch 0."""
    return batch.encode_batch([batch.Record(value=b"v")], leader_epoch=0)
