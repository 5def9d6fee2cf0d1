"""All replicas of one broker, as the API and the fetchers use them.

Each method finds the partition, passes an event to its state machine, and calls ``on_effect`` with
each effect of the event. Requests are fenced here, by controller epoch, broker epoch and leader
epoch, before an event is created for them.
"""

from collections.abc import Mapping

import msgspec

from broker_impl.errors import ApiError, DirectoryFailed, ErrorCode
from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import Marker
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import ProducerEntry
from broker_impl.replica import (
    appending,
    controller_orders,
    fencing,
    following,
    isr,
    serving,
    watermark,
)
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    BoundsAnswered,
    Configure,
    DeleteRecords,
    Diverged,
    EndTransaction,
    EpochEndAnswered,
    Event,
    FetchesPaused,
    FetchRefused,
    FollowerFetched,
    FollowerKeptUp,
    IsrRefreshed,
    IsrWriteRefused,
    IsrWritten,
    Replicated,
    Role,
    Tick,
)
from broker_impl.replica.fetch_targets import FetchChanges, FetchTarget
from broker_impl.replica.hosted import HostedReplicas
from broker_impl.replica.results import FetchResult, ListedOffset, PartitionSnapshot
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import LeaderAndIsrResponse
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.types import BrokerId, Buffer, Epoch, Offset, TopicPartition


class Deletion(msgspec.Struct, frozen=True):
    """The result of DeleteRecords on the leader."""

    error: ErrorCode
    offset: Offset = -1
    """The new log start."""


class Replicas(HostedReplicas):
    """The replicas of one broker: its orders, requests and responses by partition."""

    # Orders of the controller.

    def order_error(self, broker_epoch: Epoch, controller_epoch: Epoch) -> ErrorCode:
        """Return the error with which a request of a controller is rejected, or NONE.

        With NONE, the controller epoch of the request becomes this broker's controller epoch.
        """
        return controller_orders.order_error(self, broker_epoch, controller_epoch)

    def late_error(self, controller_epoch: Epoch, connection: int) -> ErrorCode:
        """The error for an order that arrives over an outdated connection, whatever its epochs."""
        return controller_orders.late_error(self, controller_epoch, connection)

    def leader_and_isr(
        self, request: LeaderAndIsrRequest, *, late: ErrorCode = ErrorCode.NONE
    ) -> LeaderAndIsrResponse:
        """Make partitions leaders or followers; ``late`` is the result of ``late_error``."""
        return controller_orders.leader_and_isr(self, request, late=late)

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop the replicas in a StopReplica request, and delete those that it says to delete."""
        return controller_orders.stop_replica(self, request)

    def configured(self, topic: str) -> None:
        """Apply the settings of this topic to its partitions, after the settings have changed."""
        isr_min = self.config.min_insync_replicas(topic)
        for tp, partition in self.partitions.items():
            if tp.topic == topic:
                self.handle_event(partition, Configure(isr_min))

    def on_metadata_live_brokers(self, live: Mapping[BrokerId, Epoch]) -> None:
        """Set the registered brokers and their epochs (-1: unknown)."""
        self.live = dict(live)

    # Requests of clients.

    def append(
        self,
        tp: TopicPartition,
        records: Buffer,
        *,
        acks: int,
        guard: int | None = None,
        by_coordinator: bool = False,
    ) -> AppendResult:
        """Append records as the leader; if the result has an error, nothing was appended.

        ``guard`` is the value that the method ``guard`` returned before the transaction was
        verified that begins with this batch. ``by_coordinator`` is true if this broker's group
        coordinator appends on behalf of a producer.
        """
        return self._append(tp, Append(records, acks, self.wall_ms(), guard, by_coordinator))

    def end_transaction(self, tp: TopicPartition, marker: Marker) -> AppendResult:
        """Append a transaction marker as the leader.

        The caller waits for its replication with ``acknowledged``, as for acks=all.
        """
        return self._append(tp, EndTransaction(marker, self.wall_ms()))

    def led(self, tp: TopicPartition, leader_epoch: Epoch) -> PartitionLog | None:
        """Return the log of the partition; None if this broker does not lead it in this epoch."""
        partition = self.partitions.get(tp)
        if partition is None or partition.role is not Role.LEADER:
            return None
        return partition.log if partition.leader_epoch == leader_epoch else None

    def committed(self, tp: TopicPartition, leader_epoch: Epoch) -> Offset | None:
        """Return the high watermark; None if this broker does not lead in this epoch."""
        if self.led(tp, leader_epoch) is None:
            return None
        return self.partitions[tp].high_watermark

    def guard(self, tp: TopicPartition, producer_id: int) -> int | None:
        """Return the guard with which to append a transaction's first batch, once it is verified.

        None is returned if no verification is needed, because a transaction is open or verification
        is switched off, or if this broker does not lead the partition.
        """
        partition = self.partitions.get(tp)
        if partition is None or partition.role is not Role.LEADER:
            return None
        if not aborted_index.is_verified(partition.log.config.verify_transactions):
            return None
        return partition.log.producers.guard(producer_id)

    def producers(self, tp: TopicPartition) -> dict[int, ProducerEntry] | ErrorCode:
        """Return the state of each producer, by producer id, as leader or follower (KIP-664).

        An error is returned if this broker has no replica of the partition.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            return self.missing(tp)
        error = partition.read_refusal(fencing.NO_EPOCH, from_follower=True)
        return error if error is not ErrorCode.NONE else partition.log.producers.entries

    def _append(self, tp: TopicPartition, event: Append | EndTransaction) -> AppendResult:
        partition = self.partitions.get(tp)
        if partition is None:
            return AppendResult(error=self.missing(tp))
        try:
            done, *effects = partition.handle(event, self.clock())
        except DirectoryFailed as error:
            return AppendResult(error=self.refused(error))
        assert isinstance(done, AppendDone), "the first effect of an append is its result"
        for effect in effects:
            self.on_effect(effect)
        return done.result

    def acknowledged(self, tp: TopicPartition, result: AppendResult) -> ErrorCode | None:
        """Return the response to an append with acks=all; None while it waits for replication."""
        partition = self.partitions.get(tp)
        if partition is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # deleted meanwhile
        return appending.acknowledged(partition, result)

    def delete_records(self, tp: TopicPartition, offset: Offset) -> Deletion:
        """Delete the records before ``offset`` (-1: before the high watermark), as the leader."""
        partition = self.partitions.get(tp)
        if partition is None:
            return Deletion(self.missing(tp))
        error = partition.refusal(fencing.NO_EPOCH)
        if error is not ErrorCode.NONE:
            return Deletion(error)
        if "delete" not in partition.log.config.cleanup_policy:
            return Deletion(ErrorCode.POLICY_VIOLATION)
        start = partition.deletable(offset)
        if start is None:
            return Deletion(ErrorCode.OFFSET_OUT_OF_RANGE)
        try:
            self.handle_event(partition, DeleteRecords(start))
        except DirectoryFailed as failure:
            return Deletion(self.refused(failure))
        return Deletion(ErrorCode.NONE, start)

    def deleted(self, tp: TopicPartition, deletion: Deletion) -> tuple[ErrorCode, Offset] | None:
        """Return the result of DeleteRecords with the low watermark; None while a replica lags.

        Only live replicas are waited for. A replica that is down learns the log start from its
        leader when it is live again.
        """
        partition = self.partitions.get(tp)
        if partition is None or partition.role is not Role.LEADER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        low = partition.low_watermark(self.live)
        return (ErrorCode.NONE, low) if low >= deletion.offset else None

    def fetch(
        self,
        tp: TopicPartition,
        *,
        replica_id: BrokerId,
        offset: Offset,
        bytes_max: int,
        current_leader_epoch: Epoch = fencing.NO_EPOCH,
        last_fetched_epoch: Epoch = fencing.NO_EPOCH,
        log_start_offset: Offset = -1,
        isolation: int = 0,
        at_least_one: bool = True,
        broker_epoch: Epoch = -1,
        again: bool = False,
        from_follower: bool = False,
    ) -> FetchResult:
        """Return records from this partition's log for a consumer, a follower or a debugging tool.

        Consumers read up to the high watermark (or the last stable offset, depending on
        ``isolation``), followers and debugging tools up to the log end. Only the leader serves
        reads, unless ``from_follower`` is true: then a follower also serves them, up to the high
        watermark that it knows (KIP-392).

        A fetch by a follower shows up to which offset the follower's log is complete, so the leader
        updates its state of that follower with it. The leader does not do that if the fetch failed
        or the logs diverge (KAFKA-8400, KAFKA-13141), nor if ``again`` is true: then this is
        another attempt of a request in purgatory, whose first attempt has updated the state.

        A follower that is not one of the assigned replicas receives UNKNOWN_LEADER_EPOCH, a
        retriable error, because it may know an assignment that this broker has not received yet.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            return FetchResult(error=self.missing(tp))
        error = partition.read_refusal(current_leader_epoch, from_follower=from_follower)
        if error is ErrorCode.NONE and replica_id >= 0:
            error = serving.follower_error(partition, replica_id, current_leader_epoch)
        if error is not ErrorCode.NONE:
            return FetchResult(error=error)
        try:
            result = serving.read(
                partition,
                offset,
                replica_id=replica_id,
                isolation=isolation,
                bytes_max=bytes_max,
                last_fetched_epoch=last_fetched_epoch,
                at_least_one=at_least_one,
            )
        except DirectoryFailed as failure:
            return FetchResult(error=self.refused(failure))
        if replica_id < 0:
            reads_committed = isolation and replica_id == watermark.CONSUMER
            return serving.with_aborted(partition, offset, result) if reads_committed else result
        if isr.reports_log_end(result.error, result.diverging is not None, again):
            eligible = isr.eligible(self.live.get(replica_id), broker_epoch)
            self.handle_event(
                partition,
                FollowerFetched(
                    replica_id, partition.leader_epoch, offset, log_start_offset, eligible
                ),
            )
        return serving.answer_follower(partition, replica_id, result)

    def leader_epoch(self, tp: TopicPartition) -> Epoch:
        """Return the leader epoch that this broker knows of the partition, or -1."""
        partition = self.partitions.get(tp)
        return fencing.NO_EPOCH if partition is None else partition.leader_epoch

    def follower_kept_up(self, tp: TopicPartition, event: FollowerKeptUp) -> None:
        """Record until when a follower fetched that left the partition out of its requests."""
        self._answered(tp, event)

    def preferred_read_replica(
        self, tp: TopicPartition, offset: Offset, rack: str, racks: Mapping[BrokerId, str | None]
    ) -> BrokerId | None:
        """Return the replica from which a consumer in this rack should fetch; None: this leader.

        ``racks`` contains the rack of each live broker.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            return None
        return serving.preferred_read_replica(partition, offset, rack, racks)

    def list_offset(
        self,
        tp: TopicPartition,
        *,
        timestamp: int,
        current_leader_epoch: Epoch = fencing.NO_EPOCH,
        isolation: int = 0,
        replica_id: BrokerId = watermark.CONSUMER,
    ) -> ListedOffset:
        """Return the offset of the first record whose timestamp is ``timestamp`` or later.

        Special values of ``timestamp`` are -1 for the log end, -2 for the log start, and -3 for the
        record with the largest timestamp.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            return ListedOffset(error=self.missing(tp))
        error = fencing.of_listing(partition.refusal(current_leader_epoch))
        if error is not ErrorCode.NONE:
            return ListedOffset(error=error)
        try:
            return serving.list_offset(
                partition, timestamp, isolation=isolation, replica_id=replica_id
            )
        except DirectoryFailed as failure:
            return ListedOffset(error=self.refused(failure))
        except ApiError as failure:
            return ListedOffset(error=failure.code)  # a stored batch cannot be decoded

    def end_offset_for_epoch(
        self, tp: TopicPartition, epoch: Epoch, current_leader_epoch: Epoch
    ) -> tuple[ErrorCode, Epoch, Offset]:
        """Return an epoch and its end offset in the leader's log, as OffsetForLeaderEpoch does.

        Epoch and offset are (-1, -1) if the log does not know the requested epoch.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            return self.missing(tp), -1, -1
        error = fencing.of_epoch_end(partition.refusal(current_leader_epoch))
        if error is not ErrorCode.NONE:
            return error, -1, -1
        log = partition.log
        return ErrorCode.NONE, *log.epochs.end_offset_for(epoch, log.end_offset)

    # As a follower: the requests to the leaders, and their responses. Each response names the
    # leader epoch of its request; a response that comes too late is ignored.

    def fetch_plan(self) -> dict[BrokerId, list[FetchTarget]]:
        """Return the fetch targets for which a request is due, by leader."""
        return self.targets.by_leader()

    def leaders_followed(self) -> list[BrokerId]:
        """Return the brokers that lead a partition which this broker follows."""
        return self.targets.leaders()

    def fetch_changes(self, leader: BrokerId) -> FetchChanges:
        """Return which requests to this leader changed since the last call; see `FetchTargets`."""
        return self.targets.changes(leader)

    def fetch_targets(self, leader: BrokerId) -> list[FetchTarget]:
        """Return the fetch targets for which a request to this leader is due."""
        return self.targets.of(leader)

    def next_retry(self, leader: BrokerId) -> float | None:
        """Return when the next request to this leader that was delayed after an error is due.

        The time is in seconds of the clock; None if no request is delayed.
        """
        return self.targets.next_retry(leader)

    def _answered(self, tp: TopicPartition, event: Event) -> None:
        partition = self.partitions.get(tp)
        if partition is not None:
            self.handle_event(partition, event)

    def epoch_end_answered(
        self, target: FetchTarget, error: ErrorCode, epoch: Epoch, end_offset: Offset
    ) -> None:
        """Handle the leader's response to a request of stage EPOCH_END."""
        if error is not ErrorCode.NONE:
            self._answered(target.tp, FetchRefused(target.leader_epoch, error))
            return
        self._answered(
            target.tp,
            EpochEndAnswered(target.leader_epoch, target.last_epoch, epoch, end_offset),
        )

    def fetched(
        self,
        target: FetchTarget,
        error: ErrorCode,
        *,
        records: Buffer = b"",
        high_watermark: Offset = -1,
        log_start_offset: Offset = -1,
        diverging: tuple[Epoch, Offset] | None = None,
    ) -> None:
        """Handle the leader's response to a request of stage FETCH."""
        partition = self.partitions.get(target.tp)
        if partition is None:
            return
        event: Event
        if error is not ErrorCode.NONE:
            event = FetchRefused(target.leader_epoch, error)
        elif diverging is not None:
            event = Diverged(target.leader_epoch, target.offset, *diverging)
        elif not len(records) and not following.would_learn(
            partition, high_watermark, log_start_offset
        ):
            return  # most partitions are idle: an event for each would change nothing
        else:
            event = Replicated(
                target.leader_epoch,
                target.offset,
                records,
                high_watermark,
                log_start_offset,
                self.wall_ms(),
            )
        self.handle_event(partition, event)

    def end_offset(self, tp: TopicPartition) -> Offset:
        """Return the end of this broker's log of a partition; 0 if it has none."""
        partition = self.partitions.get(tp)
        return 0 if partition is None else partition.log.end_offset

    def has_in_sync(self, tp: TopicPartition, broker: BrokerId) -> bool:
        """Return whether a broker is in the ISR of a partition that this broker leads."""
        partition = self.partitions.get(tp)
        return partition is not None and broker in partition.isr

    def pause_fetches(self, target: FetchTarget, until: float) -> None:
        """Fetch a partition again at a time of the clock, in seconds, and not before."""
        self._answered(target.tp, FetchesPaused(target.leader_epoch, until))

    def bounds_answered(
        self, target: FetchTarget, error: ErrorCode, log_start: Offset, log_end: Offset
    ) -> None:
        """Handle the leader's responses to a request of stage BOUNDS."""
        if error is not ErrorCode.NONE:
            self._answered(target.tp, FetchRefused(target.leader_epoch, error))
        else:
            self._answered(target.tp, BoundsAnswered(target.leader_epoch, log_start, log_end))

    # The state znode.

    def isr_written(self, tp: TopicPartition, zk_version: int) -> None:
        """Handle a successful write of the ISR that produced this version of the state znode."""
        self._answered(tp, IsrWritten(zk_version))

    def isr_write_refused(self, tp: TopicPartition) -> None:
        """Handle a write of the ISR that failed with a version conflict or an unknown result."""
        self._answered(tp, IsrWriteRefused())

    def isr_refreshed(
        self,
        tp: TopicPartition,
        *,
        leader: BrokerId,
        leader_epoch: Epoch,
        isr: tuple[BrokerId, ...],
        zk_version: int,
    ) -> None:
        """Handle the content of the state znode, read after a write was refused."""
        self._answered(tp, IsrRefreshed(leader, leader_epoch, isr, zk_version))

    # Time and snapshots.

    def start_moved(self, tp: TopicPartition) -> None:
        """Note that retention has moved the start of the partition's log."""
        partition = self.partitions.get(tp)
        if partition is not None:
            self.targets.touch(partition)

    def tick(self) -> None:
        """Check whether followers lag; called every half of replica.lag.time.max.ms."""
        event = Tick()
        for partition in self.partitions.values():
            if partition.role is Role.LEADER:
                self.handle_event(partition, event)

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """Return the high watermark to checkpoint for each log on these disks.

        This includes logs for which this broker has no replica.
        """
        read = self.logs.high_watermarks
        marks = {tp: watermark.without_replica(read.get(tp, 0)) for tp in self.logs.logs}
        marks.update((tp, partition.high_watermark) for tp, partition in self.partitions.items())
        return marks

    def leaders(self) -> list[TopicPartition]:
        """The partitions that this broker leads."""
        return [tp for tp, p in self.partitions.items() if p.role is Role.LEADER]

    def snapshot(self) -> list[PartitionSnapshot]:
        """Return the state of all replicas as plain values."""
        return [partition.snapshot() for partition in self.partitions.values()]
