from collections.abc import Sequence

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.replica.events import (
    Effect,
    HighWatermarkAdvanced,
    HighWatermarkLearnt,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    RefreshIsr,
    StartFetching,
    StopFetching,
    WriteIsr,
)
from broker_impl.replica.replica_state import Stage
from broker_impl.replica.replicas import FetchTarget, ReplicaConfig, Replicas
from broker_impl.wire import batch
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
NONE = ErrorCode.NONE


class Broker:
    """Broker 1, whose disk can be given to its next process."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.now = 100.0
        self.isr_min = 1
        self.disk = disk or MemoryDisk()
        self.logs = LogManager(self.disk, lambda _: LogConfig(), broker_id=1, cluster_id="c")
        self.logs.open(0)
        self.effects: list[Effect] = []
        self.replicas = Replicas(
            1,
            self.logs,
            ReplicaConfig(
                lag_time_max_ms=10_000,
                fetch_backoff_ms=500,
                min_insync_replicas=lambda _: self.isr_min,
            ),
            clock=lambda: self.now,
            wall_ms=lambda: 1234,
            on_effect=self.effects.append,
        )
        self.replicas.on_metadata_live_brokers({1: 11, 2: 12, 3: 13})

    def order(
        self,
        leader: int = 1,
        *,
        epoch: int = 0,
        isr: Sequence[int] = (1, 2),
        replicas: Sequence[int] = (1, 2),
        tps: Sequence[TopicPartition] = (TP,),
        controller_epoch: int = 1,
        broker_epoch: int = -1,
        late: ErrorCode = NONE,
    ) -> list[ErrorCode]:
        """Handle a LeaderAndIsr request, and return its error, or one error per partition."""
        request = LeaderAndIsrRequest(
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=tp.topic,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=tp.partition,
                            controller_epoch=controller_epoch,
                            leader=leader,
                            leader_epoch=epoch,
                            isr=list(isr),
                            replicas=list(replicas),
                        )
                    ],
                )
                for tp in tps
            ],
        )
        response = self.replicas.leader_and_isr(request, late=late)
        if response.error_code:
            return [ErrorCode(response.error_code)]
        named = [TopicPartition(r.topic_name, r.partition_index) for r in response.partition_errors]
        assert named == list(tps)
        return [ErrorCode(row.error_code) for row in response.partition_errors]

    def stop(
        self, *, epoch: int, delete: bool, controller_epoch: int = 1, broker_epoch: int = -1
    ) -> ErrorCode:
        request = StopReplicaRequest(
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                StopReplicaTopicState(
                    topic_name=TP.topic,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=TP.partition,
                            leader_epoch=epoch,
                            delete_partition=delete,
                        )
                    ],
                )
            ],
        )
        response = self.replicas.stop_replica(request)
        if response.error_code:
            return ErrorCode(response.error_code)
        (row,) = response.partition_errors
        return ErrorCode(row.error_code)

    def append(self, count: int = 1, tp: TopicPartition = TP) -> None:
        data = batch.encode_batch([batch.Record(value=b"v", timestamp_ms=7)] * count)
        assert self.replicas.append(tp, data, acks=1).error is NONE

    def end(self, tp: TopicPartition = TP) -> int:
        return self.logs.logs[tp].end_offset

    def last_effect(self) -> Effect:
        return self.effects[-1]

    def high_watermark(self) -> int:
        return self.replicas.partitions[TP].high_watermark

    def targets(self, leader: int = 2) -> list[FetchTarget]:
        return self.replicas.fetch_plan().get(leader, [])


@pytest.fixture
def broker() -> Broker:
    return Broker()


# Orders of the controller.


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


def test_watermarks_of_logs_that_nobody_called_yet_are_kept() -> None:
    """KAFKA-769: the checkpoint keeps watermarks of logs that the controller has not named yet."""
    before = Broker()
    before.order(isr=(1,), replicas=(1,), tps=(TP, OTHER))
    before.append(3)
    before.append(2, OTHER)
    assert before.replicas.high_watermarks() == {TP: 3, OTHER: 2}
    before.logs.checkpoint(before.replicas.high_watermarks())
    before.disk.kill()
    broker = Broker(before.disk)
    broker.order(2, epoch=1)
    assert broker.replicas.high_watermarks() == {TP: 3, OTHER: 2}


# Appending and fetching.


def test_what_is_not_here(broker: Broker) -> None:
    """Every request for a partition that is not hosted gets UNKNOWN_TOPIC_OR_PARTITION."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas = broker.replicas
    assert replicas.append(TP, b"", acks=1).error is unknown
    assert replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1).error is unknown
    assert replicas.list_offset(TP, timestamp=-1).error is unknown
    assert replicas.end_offset_for_epoch(TP, 0, 0) == (unknown, -1, -1)


def test_effects_are_passed_on(broker: Broker) -> None:
    """The result of an append is returned, and its other effects are passed to the node."""
    broker.order(isr=(1,), replicas=(1,))
    broker.append(2)
    assert broker.effects == [
        LeadershipTaken(TP, 0),
        LogEndAdvanced(TP, 2),
        HighWatermarkAdvanced(TP, 2),
    ]


@pytest.mark.parametrize(
    ("replica_id", "epoch", "error"),
    [
        (-1, 3, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, -1, NONE),
        (-1, 4, NONE),
        (2, 3, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 4, NONE),
        (7, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-2, 4, NONE),
    ],
)
def test_fetch_is_fenced(broker: Broker, replica_id: int, epoch: int, error: ErrorCode) -> None:
    """KIP-320: a fetch is fenced by its leader epoch, which a follower must name.

    An unknown follower may retry.
    """
    broker.order(epoch=4)
    broker.append(2)
    result = broker.replicas.fetch(
        TP, replica_id=replica_id, offset=0, bytes_max=1000, current_leader_epoch=epoch
    )
    assert result.error is error
    if error is not NONE:
        assert result.high_watermark == -1
        assert broker.replicas.partitions[TP].remotes[2].log_end == -1


def test_a_follower_is_not_read_from(broker: Broker) -> None:
    """A follower refuses fetches, look-ups and appends with NOT_LEADER_OR_FOLLOWER."""
    broker.order(2)
    no_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
    replicas = broker.replicas
    assert replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1).error is no_leader
    assert replicas.list_offset(TP, timestamp=-2).error is no_leader
    assert replicas.end_offset_for_epoch(TP, 0, 0) == (no_leader, -1, -1)
    assert replicas.append(TP, b"", acks=1).error is no_leader


def offsets(broker: Broker, replica_id: int, offset: int = 0) -> list[int]:
    result = broker.replicas.fetch(
        TP, replica_id=replica_id, offset=offset, bytes_max=1000, current_leader_epoch=0
    )
    return [r.offset for data in result.records for r in batch.records(data)]


def test_who_may_read_how_far(broker: Broker) -> None:
    """Rule R10: consumers read to the high watermark, replicas and debug tools to the log end."""
    broker.order()
    broker.append()
    broker.append()
    assert offsets(broker, -1) == []
    assert offsets(broker, 2) == [0, 1]
    assert offsets(broker, -2) == [0, 1]
    assert offsets(broker, 2, 1) == [1]
    assert offsets(broker, -1) == [0]


def test_a_followers_fetch_tells_what_it_holds(broker: Broker) -> None:
    """A follower's fetch reports its log end, and its response has the updated watermark.

    The same watermark counts as news once.
    """
    broker.order()
    broker.append(2)

    def fetch(offset: int, *, again: bool = False) -> tuple[int, bool]:
        result = broker.replicas.fetch(
            TP,
            replica_id=2,
            offset=offset,
            bytes_max=1000,
            current_leader_epoch=0,
            last_fetched_epoch=0 if offset else -1,
            again=again,
        )
        assert result.error is NONE
        return result.high_watermark, result.news

    assert fetch(0) == (0, True)
    assert fetch(2, again=True) == (0, False), "tried again, it says nothing about the follower"
    assert fetch(2) == (2, True)
    assert fetch(2) == (2, False)
    broker.append(1)
    assert fetch(2, again=True) == (2, False)
    assert broker.last_effect() == LogEndAdvanced(TP, 3)


@pytest.mark.parametrize(("offset", "last_epoch"), [(9, -1), (9, 0), (2, 7)])
def test_a_fetch_that_failed_or_diverged_tells_nothing(
    broker: Broker, offset: int, last_epoch: int
) -> None:
    """KAFKA-8400, KAFKA-13141: a fetch that fails or diverges reports no log end."""
    broker.order()
    broker.append(3)
    broker.replicas.fetch(
        TP,
        replica_id=2,
        offset=offset,
        bytes_max=1000,
        current_leader_epoch=0,
        last_fetched_epoch=last_epoch,
    )
    assert broker.replicas.partitions[TP].remotes[2].log_end == -1
    assert broker.high_watermark() == 0


@pytest.mark.parametrize(
    ("live", "broker_epoch", "joins"),
    [({2: 12}, 12, True), ({2: 12}, 11, False), ({3: 13}, 12, False), ({2: 12}, -1, True)],
)
def test_only_the_living_incarnation_joins_the_isr(
    broker: Broker, live: dict[int, int], broker_epoch: int, joins: bool
) -> None:
    """KIP-841, KIP-903: a fetch from before a restart, or of a dead broker, joins no ISR."""
    broker.order(isr=(1,))
    broker.replicas.on_metadata_live_brokers(live)
    broker.replicas.fetch(
        TP,
        replica_id=2,
        offset=0,
        bytes_max=1000,
        current_leader_epoch=0,
        broker_epoch=broker_epoch,
    )
    written = [WriteIsr(TP, 1, 0, (1, 2), 1, 0)] if joins else []
    assert broker.effects == [LeadershipTaken(TP, 0), *written]


def test_settings_can_change(broker: Broker) -> None:
    """A change of a topic's min.insync.replicas applies to its partitions."""
    broker.isr_min = 2
    broker.order(isr=(1,))
    broker.append()
    assert broker.high_watermark() == 0
    broker.isr_min = 1
    broker.replicas.configured("another")
    assert broker.high_watermark() == 0
    broker.replicas.configured("t")
    assert broker.high_watermark() == 1


def test_offsets_and_epochs(broker: Broker) -> None:
    """ListOffsets and OffsetForLeaderEpoch are fenced by the leader epoch."""
    broker.order(isr=(1,), replicas=(1,))
    broker.append(3)
    broker.order(epoch=2, isr=(1,), replicas=(1,))
    replicas = broker.replicas
    assert replicas.list_offset(TP, timestamp=-1, current_leader_epoch=2).offset == 3
    found = replicas.list_offset(TP, timestamp=7)
    assert (found.offset, found.timestamp, found.leader_epoch) == (0, 7, 0)
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.list_offset(TP, timestamp=-1, current_leader_epoch=1).error is fenced
    assert replicas.end_offset_for_epoch(TP, 0, 2) == (NONE, 0, 3)
    assert replicas.end_offset_for_epoch(TP, 2, 2) == (NONE, 2, 3)
    assert replicas.end_offset_for_epoch(TP, 3, 2) == (NONE, -1, -1)
    assert replicas.end_offset_for_epoch(TP, 0, 1) == (fenced, -1, -1)


# Following.


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


def fetched(broker: Broker, count: int, base: int, epoch: int, high_watermark: int) -> None:
    (target,) = broker.targets()
    data = batch.encode_batch(
        [batch.Record(value=b"v")] * count, base_offset=base, leader_epoch=epoch
    )
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=high_watermark, log_start_offset=0
    )


def test_a_followers_life(broker: Broker) -> None:
    """A follower fetches; in a new epoch it asks for the last epoch's end, and truncates."""
    broker.order(2)
    fetched(broker, 4, 0, 0, 3)
    assert (broker.end(), broker.high_watermark()) == (4, 3)
    assert broker.targets() == [FetchTarget(TP, Stage.FETCH, 0, 4, 0, 0)]
    broker.order(2, epoch=5)
    (target,) = broker.targets()
    assert target == FetchTarget(TP, Stage.EPOCH_END, 5, 4, 0, 0)
    broker.replicas.epoch_end_answered(target, NONE, 0, 4)
    (target,) = broker.targets()
    assert target.stage is Stage.FETCH
    broker.replicas.fetched(target, NONE, diverging=(0, 0))
    assert broker.end() == 0
    fetched(broker, 3, 0, 1, 3)
    assert broker.targets() == [FetchTarget(TP, Stage.FETCH, 5, 3, 1, 0)]
    assert broker.high_watermark() == 3


@pytest.mark.parametrize(
    ("high_watermark", "log_start", "changes"),
    [(3, 0, False), (2, 0, True), (4, 0, True), (9, 0, True), (3, 1, True), (0, 0, True)],
)
def test_an_answer_without_records_counts_where_it_says_something_new(
    broker: Broker, high_watermark: int, log_start: int, changes: bool
) -> None:
    """A response without records applies a changed watermark or log start, up to the log's end.

    The watermark may go back (R4).
    """
    broker.order(2)
    fetched(broker, 4, 0, 0, 3)
    log = broker.logs.logs[TP]
    before = broker.high_watermark(), log.start_offset
    (target,) = broker.targets()
    broker.effects.clear()
    broker.replicas.fetched(target, NONE, high_watermark=high_watermark, log_start_offset=log_start)
    expected = (min(high_watermark, 4), log_start) if changes else before
    assert (broker.high_watermark(), log.start_offset) == expected
    assert bool(broker.effects) == changes


def test_a_leader_hears_of_a_follower_that_is_idle(broker: Broker) -> None:
    """An idle follower that fetches stays in the ISR, and the next record is committed."""
    broker.order(1, isr=(1, 2))
    broker.append(1)
    for _ in range(5):
        broker.now += 7.5
        broker.replicas.fetch(TP, replica_id=2, offset=1, bytes_max=99, current_leader_epoch=0)
        broker.replicas.tick()
    assert not [effect for effect in broker.effects if isinstance(effect, WriteIsr)]
    broker.append(1)
    assert broker.high_watermark() == 1
    broker.replicas.fetch(TP, replica_id=2, offset=2, bytes_max=99, current_leader_epoch=0)
    assert broker.high_watermark() == 2


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


# The ISR, and time.


def test_the_isr_changes_by_way_of_the_znode(broker: Broker) -> None:
    """A leader writes the ISR to the znode, and reads the znode again after a refusal.

    Only leaders check the time.
    """
    broker.order()
    broker.order(2, tps=(OTHER,))
    broker.append()
    broker.now += 11
    broker.replicas.tick()
    assert broker.last_effect() == WriteIsr(TP, 1, 0, (1,), 1, 0)
    broker.replicas.isr_write_refused(TP)
    assert broker.last_effect() == RefreshIsr(TP)
    broker.replicas.isr_refreshed(TP, leader=1, leader_epoch=0, isr=(1, 2), zk_version=3)
    broker.replicas.tick()
    assert broker.last_effect() == WriteIsr(TP, 1, 0, (1,), 1, 3)
    broker.replicas.isr_written(TP, 4)
    assert broker.replicas.partitions[TP].isr == {1}
    assert broker.high_watermark() == 1
    assert broker.replicas.tick_interval == 5.0
    assert [(shot.partition, shot.role, shot.isr) for shot in broker.replicas.snapshot()] == [
        (0, "leader", (1,)),
        (1, "follower", ()),
    ]


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


# DeleteRecords.


def fetch(broker: Broker, replica_id: int, offset: int, *, log_start: int) -> None:
    broker.replicas.fetch(
        TP,
        replica_id=replica_id,
        offset=offset,
        bytes_max=1000,
        current_leader_epoch=0,
        log_start_offset=log_start,
    )


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 0), (2, 2), (3, 3), (-1, 3), (4, None), (-2, None)]
)
def test_only_what_is_committed_is_deleted(broker: Broker, offset: int, start: int | None) -> None:
    """KIP-107: records are deleted up to the high watermark at most, which -1 stands for."""
    broker.order()
    broker.append(3)
    fetch(broker, 2, 3, log_start=0)
    broker.append()
    assert (broker.high_watermark(), broker.end()) == (3, 4)
    deletion = broker.replicas.delete_records(TP, offset)
    assert deletion.error is (NONE if start is not None else ErrorCode.OFFSET_OUT_OF_RANGE)
    assert broker.logs.logs[TP].start_offset == (start or 0)


def test_a_deletion_is_over_when_all_live_replicas_have_it(broker: Broker) -> None:
    """DeleteRecords completes when all live replicas have the new log start.

    Each follower's fetch reports its log start; dead replicas are not waited for.
    """
    broker.order(replicas=(1, 2, 3), isr=(1, 2, 3))
    broker.append(3)
    for follower in (2, 3):
        fetch(broker, follower, 3, log_start=0)
    deletion = broker.replicas.delete_records(TP, 2)
    assert broker.last_effect() == LogStartAdvanced(TP)
    assert broker.replicas.deleted(TP, deletion) is None
    fetch(broker, 2, 3, log_start=2)
    assert broker.last_effect() == LogStartAdvanced(TP)
    assert broker.replicas.deleted(TP, deletion) is None
    broker.replicas.on_metadata_live_brokers({1: 11, 2: 12})
    assert broker.replicas.deleted(TP, deletion) == (NONE, 2)
    broker.order(2, epoch=1)
    assert broker.replicas.deleted(TP, deletion) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_who_may_not_delete(broker: Broker) -> None:
    """DeleteRecords is refused by a follower, for an unknown partition, and for a compacted log."""
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.order(2)
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.order(1, epoch=1)
    broker.logs.logs[TP].config = LogConfig(cleanup_policy=("compact",))
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.POLICY_VIOLATION


def test_a_follower_begins_where_its_leader_does(broker: Broker) -> None:
    """A follower advances its log start to the leader's, up to its own watermark."""
    broker.order(2)
    (target,) = broker.targets()
    data = batch.encode_batch([batch.Record(value=b"v")] * 3, leader_epoch=0)
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=2, log_start_offset=3, diverging=None
    )
    assert broker.logs.logs[TP].start_offset == 2
    assert broker.last_effect() == LogStartAdvanced(TP)


# Reads from followers (KIP-392).


def test_a_follower_serves_what_it_knows_to_be_committed(broker: Broker) -> None:
    """A follower serves consumers that support KIP-392 up to its watermark.

    A stopped replica refuses them.
    """
    broker.order(2)
    (target,) = broker.targets()
    data = b"".join(
        batch.encode_batch([batch.Record(value=b"v")], base_offset=at, leader_epoch=0)
        for at in range(3)
    )
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=2, log_start_offset=0, diverging=None
    )
    assert broker.last_effect() == HighWatermarkLearnt(TP)
    result = broker.replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1000, from_follower=True)
    assert (result.error, result.high_watermark) == (NONE, 2)
    assert [r.offset for data in result.records for r in batch.records(data)] == [0, 1]
    stale = broker.replicas.fetch(
        TP, replica_id=-1, offset=0, bytes_max=1, from_follower=True, current_leader_epoch=9
    )
    assert stale.error is ErrorCode.UNKNOWN_LEADER_EPOCH
    broker.stop(epoch=1, delete=False)
    stopped = broker.replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1, from_follower=True)
    assert stopped.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_sends_readers_to_their_rack(broker: Broker) -> None:
    """A leader sends a reader to a live in-sync replica in the reader's rack."""
    broker.order()
    broker.append()
    fetch(broker, 2, 1, log_start=0)
    racks = {1: "a", 2: "b"}
    replicas = broker.replicas
    assert replicas.preferred_read_replica(TP, 0, "b", racks) == 2
    assert replicas.preferred_read_replica(TP, 0, "a", racks) is None
    assert replicas.preferred_read_replica(TP, 0, "b", {1: "a"}) is None
    assert replicas.preferred_read_replica(OTHER, 0, "b", racks) is None
    broker.order(2, epoch=1)
    assert replicas.preferred_read_replica(TP, 0, "b", racks) is None
