"""A broker with replicas, its disk and its clock."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.replica.events import Effect
from broker_impl.replica.fetch_targets import FetchTarget
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.replicas import Replicas
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
from broker_impl.wire.types import NO_UUID, TopicPartition

TP = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)
NONE = ErrorCode.NONE


class Broker:
    """Broker 1, whose disk can be given to its next process.

    With ``other_disk`` it has a second data directory.
    """

    def __init__(
        self, disk: MemoryDisk | None = None, other_disk: MemoryDisk | None = None
    ) -> None:
        self.now = 100.0
        self.isr_min = 1
        self.disk = disk or MemoryDisk()
        disks = {"": self.disk}
        if other_disk is not None:
            disks["other"] = other_disk
        self.logs = LogManager(disks, lambda _: LogConfig(), broker_id=1, cluster_id="c")
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
        topic_id: UUID = NO_UUID,
        is_new: bool = False,
    ) -> list[ErrorCode]:
        """Handle a LeaderAndIsr request, and return its error, or one error per partition."""
        request = LeaderAndIsrRequest(
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=tp.topic,
                    topic_id=topic_id,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=tp.partition,
                            controller_epoch=controller_epoch,
                            leader=leader,
                            leader_epoch=epoch,
                            isr=list(isr),
                            replicas=list(replicas),
                            is_new=is_new,
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
        self,
        *,
        epoch: int,
        delete: bool,
        controller_epoch: int = 1,
        broker_epoch: int = -1,
        tp: TopicPartition = TP,
    ) -> ErrorCode:
        request = StopReplicaRequest(
            controller_epoch=controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=[
                StopReplicaTopicState(
                    topic_name=tp.topic,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=tp.partition,
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
