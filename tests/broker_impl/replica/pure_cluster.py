"""Brokers, a controller and a state znode as plain objects, for one partition.

Nothing happens without the test. A test takes a follower's request, serves it at a leader,
delivers the response, or keeps any of the three for later; it applies a write of the znode, or
loses it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.replica.events import (
    AppendResult,
    Effect,
    HighWatermarkAdvanced,
    RefreshIsr,
    Role,
    WriteIsr,
)
from broker_impl.replica.fetch_targets import FetchTarget
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.partition import Partition
from broker_impl.replica.replica_state import Stage
from broker_impl.replica.replicas import Replicas
from broker_impl.replica.results import FetchResult, ListedOffset
from broker_impl.wire import batch
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.types import BrokerId, Epoch, Offset, TopicPartition

TP = TopicPartition("t", 0)
LAG_MAX_S = 10.0
LOG_CONFIG = LogConfig(segment_bytes=800)
"""A segment holds about ten records."""


def one_record(value: str, *, producer: int = -1, sequence: int = -1) -> bytes:
    """A batch with one record."""
    return batch.encode_batch(
        [batch.Record(value=value.encode())],
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
    )


@dataclass
class State:
    """The content of the state znode."""

    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]
    version: int


@dataclass(frozen=True)
class Question:
    """A follower's request on its way to a leader."""

    follower: BrokerId
    incarnation: int
    leader: BrokerId
    target: FetchTarget


@dataclass(frozen=True)
class Answer:
    """A leader's response on its way to the follower."""

    question: Question
    error: ErrorCode = ErrorCode.NONE
    epoch_end: tuple[Epoch, Offset] = (-1, -1)
    bounds: tuple[Offset, Offset] = (-1, -1)
    fetched: FetchResult = field(default_factory=FetchResult)


@dataclass(frozen=True)
class ZkRequest:
    """A broker's write or read of the znode on its way to ZooKeeper."""

    broker: BrokerId
    incarnation: int
    effect: WriteIsr | RefreshIsr


@dataclass(frozen=True)
class ZkAnswer:
    """ZooKeeper's response: the new version, the state that was read, or None for a refusal."""

    request: ZkRequest
    result: int | State | None


@dataclass(frozen=True)
class Sent:
    """A produced record that the leader has appended, and perhaps not acknowledged yet."""

    broker: BrokerId
    incarnation: int
    value: str
    result: AppendResult


class Node:
    """A broker whose process can be killed and started; its disk stays."""

    def __init__(self, cluster: "PureCluster", broker_id: BrokerId) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.disk = MemoryDisk()
        self.incarnation = 0
        self.up = False
        self.effects: list[Effect] = []
        self.logs: LogManager
        self.replicas: Replicas

    def start(self) -> None:
        """Start a new process on the old disk, which recovers the log."""
        self.up = True
        self.incarnation += 1
        self.logs = LogManager(
            {"": self.disk}, lambda _: LOG_CONFIG, broker_id=self.broker_id, cluster_id="pure"
        )
        self.logs.open(int(self.cluster.now * 1000))
        self.replicas = Replicas(
            self.broker_id,
            self.logs,
            self.cluster.config,
            clock=lambda: self.cluster.now,
            wall_ms=lambda: int(self.cluster.now * 1000),
            on_effect=self.on_effect,
        )
        self.replicas.on_metadata_live_brokers(dict.fromkeys(self.cluster.brokers, -1))

    def kill(self) -> None:
        """SIGKILL: the page cache stays, and of the watermarks the last checkpoint."""
        self.up = False
        self.disk.kill()

    def lose_disk(self) -> None:
        """Replace the disk of this dead broker by an empty one."""
        assert not self.up
        self.disk = MemoryDisk()

    def checkpoint(self) -> None:
        """Write a checkpoint of the high watermarks."""
        self.logs.checkpoint(self.replicas.high_watermarks())

    def on_effect(self, effect: Effect) -> None:
        self.effects.append(effect)
        if isinstance(effect, HighWatermarkAdvanced):
            self.cluster.on_commit(self, effect.to)
        elif isinstance(effect, WriteIsr | RefreshIsr):
            self.cluster.zk_requests.append(ZkRequest(self.broker_id, self.incarnation, effect))

    @property
    def partition(self) -> Partition | None:
        return self.replicas.partitions.get(TP) if self.up else None

    @property
    def leads(self) -> bool:
        """Whether this broker believes that it is the leader."""
        partition = self.partition
        return partition is not None and partition.role is Role.LEADER

    def contents(self) -> list[bytes]:
        """The batches in its log, with offsets and epochs; a dead broker's log can be read too."""
        log = self.logs.logs.get(TP)
        found: list[bytes] = []
        at = 0
        while log is not None and at < log.end_offset:
            for data in log.read(at, bytes_max=1 << 20, limit=log.end_offset):
                for position, header in batch.batches(data):
                    found.append(bytes(data[position : position + header.size]))
                    at = header.next_offset
        return found

    def values(self) -> list[str]:
        """The values in its log, in order."""
        return [
            (record.value or b"").decode()
            for data in self.contents()
            for record in batch.records(data)
        ]


class PureCluster:
    """A cluster for one partition whose messages a test delivers one by one; see the module."""

    def __init__(self, brokers: int, *, isr_min: int) -> None:
        self.now = 1000.0
        self.config = ReplicaConfig(
            lag_time_max_ms=int(LAG_MAX_S * 1000),
            fetch_backoff_ms=0,
            min_insync_replicas=lambda _: isr_min,
        )
        self.brokers = tuple(range(1, brokers + 1))
        self.on_commit: Callable[[Node, Offset], None] = lambda node, to: None
        self.state = State(-1, -1, self.brokers, 0)
        self.zk_requests: list[ZkRequest] = []
        self.nodes = {broker: Node(self, broker) for broker in self.brokers}
        for node in self.nodes.values():
            node.start()
        self.orders: dict[BrokerId, list[LeaderAndIsrRequest]] = {b: [] for b in self.brokers}

    # Controller.

    def elect(
        self, leader: BrokerId, *, isr: tuple[BrokerId, ...] | None = None, deliver: bool = True
    ) -> None:
        """Write a new epoch to the znode, and send it to all brokers, or keep it for later."""
        state = self.state
        self.state = State(
            leader, state.leader_epoch + 1, state.isr if isr is None else isr, state.version + 1
        )
        order = self.order()
        for broker in self.brokers:
            self.orders[broker].append(order)
            if deliver:
                self.deliver_orders(broker)

    def order(self) -> LeaderAndIsrRequest:
        """The state of the znode as a LeaderAndIsr request."""
        state = self.state
        row = LeaderAndIsrPartitionState(
            partition_index=TP.partition,
            controller_epoch=1,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
            partition_epoch=state.version,
            replicas=list(self.brokers),
        )
        return LeaderAndIsrRequest(
            controller_id=1,
            controller_epoch=1,
            topic_states=[LeaderAndIsrTopicState(topic_name=TP.topic, partition_states=[row])],
        )

    def deliver_orders(self, broker: BrokerId) -> None:
        """Deliver all pending orders to this broker, in order."""
        node = self.nodes[broker]
        orders, self.orders[broker] = self.orders[broker], []
        for order in orders if node.up else []:
            node.replicas.leader_and_isr(order)

    def notice_death(self, broker: BrokerId) -> None:
        """Handle the end of a broker's registration: elect another leader, or shrink the ISR."""
        state = self.state
        if broker not in state.isr:
            return
        rest = tuple(b for b in state.isr if b != broker)
        alive = [b for b in rest if self.nodes[b].up]
        if state.leader == broker:
            self.elect(alive[0] if alive else -1, isr=rest if alive else None)
        elif rest:
            self.elect(state.leader, isr=rest)

    def notice_start(self, broker: BrokerId) -> None:
        """Handle a broker's registration: send it the state, or elect it if there is no leader."""
        if self.state.leader == -1 and broker in self.state.isr:
            self.elect(broker)
        else:
            self.orders[broker].append(self.order())
            self.deliver_orders(broker)

    def restart(self, broker: BrokerId) -> None:
        """Kill a broker and start it again; the controller notices both."""
        self.nodes[broker].kill()
        self.notice_death(broker)
        self.nodes[broker].start()
        self.notice_start(broker)

    # ZooKeeper.

    def serve_zk(self, request: ZkRequest) -> ZkAnswer:
        """Apply a request in ZooKeeper, and return its response."""
        self.zk_requests.remove(request)
        effect = request.effect
        state = self.state
        if isinstance(effect, RefreshIsr):
            return ZkAnswer(request, State(**vars(state)))
        if effect.zk_version != state.version:
            return ZkAnswer(request, None)
        self.state = State(effect.leader, effect.leader_epoch, effect.isr, state.version + 1)
        return ZkAnswer(request, self.state.version)

    def lose_zk(self, request: ZkRequest) -> ZkAnswer:
        """Lose the connection before the request arrives, which the broker cannot know."""
        self.zk_requests.remove(request)
        return ZkAnswer(request, None)

    def take_zk(self, answer: ZkAnswer) -> None:
        """Deliver ZooKeeper's response to the broker."""
        node = self.nodes[answer.request.broker]
        if not node.up or node.incarnation != answer.request.incarnation:
            return
        result = answer.result
        if isinstance(result, State):
            node.replicas.isr_refreshed(
                TP,
                leader=result.leader,
                leader_epoch=result.leader_epoch,
                isr=result.isr,
                zk_version=result.version,
            )
        elif isinstance(answer.request.effect, WriteIsr):
            if result is None:
                node.replicas.isr_write_refused(TP)
            else:
                node.replicas.isr_written(TP, result)

    def settle_zk(self, *brokers: BrokerId) -> None:
        """Serve the znode requests of these brokers, or of all, until none is left."""
        mine = brokers or self.brokers
        while requests := [r for r in self.zk_requests if r.broker in mine]:
            self.take_zk(self.serve_zk(requests[0]))

    # Replication.

    def ask(self, follower: BrokerId) -> Question | None:
        """The next request of this follower to its leader, or None."""
        node = self.nodes[follower]
        plan = node.replicas.fetch_plan() if node.up else {}
        for leader, targets in plan.items():
            return Question(follower, node.incarnation, leader, targets[0])
        return None

    def serve(self, question: Question, at: BrokerId | None = None) -> Answer | None:
        """The response of the broker that receives the request, or None if it is down."""
        node = self.nodes[question.leader if at is None else at]
        target = question.target
        if not node.up:
            return None
        if target.stage is Stage.EPOCH_END:
            error, epoch, end = node.replicas.end_offset_for_epoch(
                TP, target.last_epoch, target.leader_epoch
            )
            return Answer(question, error, epoch_end=(epoch, end))
        if target.stage is Stage.BOUNDS:
            ends: list[ListedOffset] = [
                node.replicas.list_offset(
                    TP,
                    timestamp=timestamp,
                    current_leader_epoch=target.leader_epoch,
                    replica_id=question.follower,
                )
                for timestamp in (-2, -1)
            ]
            return Answer(question, ends[0].error, bounds=(ends[0].offset, ends[1].offset))
        fetched = node.replicas.fetch(
            TP,
            replica_id=question.follower,
            offset=target.offset,
            bytes_max=1 << 20,
            current_leader_epoch=target.leader_epoch,
            last_fetched_epoch=target.last_epoch,
            log_start_offset=target.log_start,
        )
        return Answer(question, fetched.error, fetched=fetched)

    def take(self, answer: Answer | None) -> None:
        """Deliver a response to the follower, if it is still the process that sent the request."""
        if answer is None:
            return
        question = answer.question
        node = self.nodes[question.follower]
        if not node.up or node.incarnation != question.incarnation:
            return
        replicas, target, fetched = node.replicas, question.target, answer.fetched
        if target.stage is Stage.EPOCH_END:
            replicas.epoch_end_answered(target, answer.error, *answer.epoch_end)
        elif target.stage is Stage.BOUNDS:
            replicas.bounds_answered(target, answer.error, *answer.bounds)
        else:
            replicas.fetched(
                target,
                answer.error,
                records=b"".join(fetched.records),
                high_watermark=fetched.high_watermark,
                log_start_offset=fetched.log_start_offset,
                diverging=fetched.diverging,
            )

    def fetch(self, follower: BrokerId, rounds: int = 1) -> None:
        """Run complete rounds of request and response."""
        for _ in range(rounds):
            question = self.ask(follower)
            if question is not None:
                self.take(self.serve(question))

    def catch_up(self, *followers: BrokerId) -> None:
        """Run enough rounds for these followers to have, and know, all that their leader has."""
        for _ in range(12):
            for follower in followers or self.brokers:
                self.fetch(follower)
                self.settle_zk()

    def tick(self, seconds: float = 0.0) -> None:
        """Advance the clock, and let every broker check its deadlines."""
        self.now += seconds
        for node in self.nodes.values():
            if node.up:
                node.replicas.tick()

    # Clients.

    def produce(
        self,
        broker: BrokerId,
        value: str,
        *,
        acks: int = -1,
        producer: int = -1,
        sequence: int = -1,
    ) -> Sent:
        """Produce one record to this broker."""
        node = self.nodes[broker]
        result = node.replicas.append(
            TP, one_record(value, producer=producer, sequence=sequence), acks=acks
        )
        return Sent(broker, node.incarnation, value, result)

    def outcome(self, sent: Sent) -> ErrorCode | None:
        """The result for an acks=all producer, or None while it waits or if its broker died."""
        node = self.nodes[sent.broker]
        if sent.result.error:
            return sent.result.error
        if not node.up or node.incarnation != sent.incarnation:
            return None
        return node.replicas.acknowledged(TP, sent.result)

    def consume(self, broker: BrokerId, offset: Offset = 0) -> dict[Offset, bytes]:
        """The values by offset that a consumer gets from this broker, from this offset on."""
        node = self.nodes[broker]
        fetched = node.replicas.fetch(TP, replica_id=-1, offset=offset, bytes_max=1 << 20)
        return {
            record.offset: record.value or b""
            for data in fetched.records
            for record in batch.records(data)
            if record.offset >= offset
        }
