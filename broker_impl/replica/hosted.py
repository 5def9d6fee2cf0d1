"""The replicas that one broker hosts, and the epochs of the orders that it has obeyed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.log.manager import LogManager
from broker_impl.replica import fencing
from broker_impl.replica.events import Effect, Event, Role
from broker_impl.replica.fetch_targets import FetchTargets
from broker_impl.replica.partition import Partition
from broker_impl.wire.types import NO_UUID, BrokerId, Epoch, TopicPartition


@dataclass(frozen=True)
class ReplicaConfig:
    """Kafka's settings for replication."""

    lag_time_max_ms: int = 30_000
    """replica.lag.time.max.ms"""
    fetch_backoff_ms: int = 1_000
    """replica.fetch.backoff.ms: the delay after an error before a partition is fetched again."""
    min_insync_replicas: Callable[[str], int] = lambda topic: 1
    """min.insync.replicas of a topic."""


class HostedReplicas:
    """The replicas of one broker, with what they need: logs, settings, and clocks."""

    def __init__(
        self,
        broker_id: BrokerId,
        logs: LogManager,
        config: ReplicaConfig,
        clock: Callable[[], float],
        wall_ms: Callable[[], int],
        on_effect: Callable[[Effect], None],
    ) -> None:
        """Start without partitions.

        ``clock`` returns seconds of the loop, ``wall_ms`` wall time in milliseconds. ``on_effect``
        is called after the state has changed completely: it may query replicas, but must not add or
        remove partitions.
        """
        self.broker_id = broker_id
        self.broker_epoch: Epoch = -1
        """The epoch of this broker's registration; the node sets it each time it registers."""
        self.controller_epoch: Epoch = -1
        self.ordered_by = (-1, -1)
        """The last controller epoch that sent an order over a connection, and that connection."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: dict[TopicPartition, None] = {}
        """The partitions whose replica here is lost with a data directory that failed (KIP-112)."""
        self.deleted_here: dict[TopicPartition, None] = {}
        """The partitions whose logs were deleted here while a data directory had failed."""
        self.isr_writes: Counter[TopicPartition] = Counter()
        """How many writes of an ISR are under way, by partition; the node keeps it."""
        self.logs = logs
        self.config = config
        self.clock = clock
        self.wall_ms = wall_ms
        self.on_effect = on_effect
        self.live: dict[BrokerId, Epoch] = {}
        """The registered brokers and their epochs (-1: unknown)."""
        self.targets = FetchTargets(clock)

    def handle_event(self, partition: Partition, event: Event) -> None:
        """Pass an event to a replica, and hand on its effects."""
        effects = partition.handle(event, self.clock())
        if partition.role is Role.FOLLOWER:
            self.targets.touch(partition)
        for effect in effects:
            self.on_effect(effect)

    def host(self, tp: TopicPartition, topic_id: UUID = NO_UUID) -> Partition:
        """Create a replica on the partition's log, or on a new one of the topic with this id."""
        log = self.logs.logs.get(tp)
        if log is None:
            log = self.logs.create(tp, topic_id)
        return Partition(
            self.broker_id,
            tp,
            log,
            high_watermark=self.logs.high_watermarks.get(tp, 0),
            isr_min=self.config.min_insync_replicas(tp.topic),
            lag_max=self.config.lag_time_max_ms / 1000,
            fetch_backoff=self.config.fetch_backoff_ms / 1000,
        )

    def missing(self, tp: TopicPartition) -> ErrorCode:
        """Return the error for a request about a partition that is not in ``partitions``."""
        if tp in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def refused(self, error: DirectoryFailed) -> ErrorCode:
        """Return the error for a request that met the failure of a data directory.

        Raises ``error`` if no other directory works, because the broker ends then.
        """
        if not self.logs.goes_on:
            raise error
        return ErrorCode.KAFKA_STORAGE_ERROR

    def broker_epoch_error(self, request_epoch: Epoch) -> ErrorCode:
        """Return STALE_BROKER_EPOCH if the request was sent to a former incarnation of this broker.

        The incarnation is identified by the broker epoch (KIP-380).
        """
        return fencing.broker(request_epoch, self.broker_epoch)
