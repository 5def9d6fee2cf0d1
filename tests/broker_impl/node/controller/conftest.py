"""A controller on a real ZooKeeper server, with brokers that are only registrations."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.controller import ControllerConfig, ControllerRuntime
from broker_impl.node.peers import PeerError, Peers
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.messages.update_metadata_response import UpdateMetadataResponse
from broker_impl.wire.types import BrokerId, TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss, NodeExists

WALL_MS = 1_700_000_000_000


class FakePeers(Peers):
    """Peers that record the requests of the controller, and answer them as brokers would."""

    def __init__(self) -> None:
        super().__init__("test", {})
        self.told: dict[BrokerId, list[Any]] = {}
        self.addresses: Mapping[BrokerId, tuple[str, int]] = {}
        self.silent: set[BrokerId] = set()
        """Brokers that do not answer."""
        self.refusing: dict[BrokerId, ErrorCode] = {}
        """Brokers that answer every request with an error."""
        self.keeping: set[BrokerId] = set()
        """Brokers that cannot delete a replica."""
        self.failed: dict[BrokerId, list[TopicPartition]] = {}
        """The replicas of each broker that are in a failed log directory."""

    def update(self, brokers: Mapping[BrokerId, tuple[str, int]]) -> None:
        self.addresses = dict(brokers)

    def disconnect(self, broker_id: BrokerId) -> None:
        """Do nothing: there is no connection."""

    async def request(
        self, broker_id: BrokerId, message: Any, version: int, *, timeout_s: float
    ) -> Any:
        await asyncio.sleep(0)
        if broker_id in self.silent:
            raise PeerError(f"broker {broker_id} is silent")
        self.told.setdefault(broker_id, []).append(message)
        error = self.refusing.get(broker_id, ErrorCode.NONE)
        match message:
            case LeaderAndIsrRequest():
                failed = self.failed.get(broker_id, [])
                topics = [
                    LeaderAndIsrTopicError(
                        topic.topic_id,
                        [
                            LeaderAndIsrPartitionError(
                                partition_index=row.partition_index,
                                error_code=ErrorCode.KAFKA_STORAGE_ERROR
                                if TopicPartition(topic.topic_name, row.partition_index) in failed
                                else ErrorCode.NONE,
                            )
                            for row in topic.partition_states
                        ],
                    )
                    for topic in message.topic_states
                ]
                return LeaderAndIsrResponse(error_code=error, topics=topics)
            case UpdateMetadataRequest():
                return UpdateMetadataResponse(error_code=error)
            case StopReplicaRequest():
                kept = ErrorCode.KAFKA_STORAGE_ERROR if broker_id in self.keeping else 0
                rows = [
                    StopReplicaPartitionError(topic.topic_name, row.partition_index, kept)
                    for topic in message.topic_states
                    for row in topic.partition_states
                ]
                return StopReplicaResponse(error_code=error, partition_errors=rows)
            case _:
                raise AssertionError(message)

    def roles(self, broker: BrokerId, tp: TopicPartition) -> list[Any]:
        """The rows of LeaderAndIsr for the partition that a broker has received, oldest first."""
        return [
            row
            for order in self.told.get(broker, [])
            if isinstance(order, LeaderAndIsrRequest)
            for topic in order.topic_states
            for row in topic.partition_states
            if TopicPartition(topic.topic_name, row.partition_index) == tp
        ]

    def metadata(self, broker: BrokerId, tp: TopicPartition) -> list[Any]:
        """The rows of UpdateMetadata for the partition that a broker has received, oldest first."""
        return [
            row
            for order in self.told.get(broker, [])
            if isinstance(order, UpdateMetadataRequest)
            for topic in order.topic_states
            for row in topic.partition_states
            if TopicPartition(topic.topic_name, row.partition_index) == tp
        ]

    def stops(self, broker: BrokerId, tp: TopicPartition) -> list[Any]:
        """The rows of StopReplica for the partition that a broker has received, oldest first."""
        return [
            row
            for order in self.told.get(broker, [])
            if isinstance(order, StopReplicaRequest)
            for topic in order.topic_states
            for row in topic.partition_states
            if TopicPartition(topic.topic_name, row.partition_index) == tp
        ]


class Contender:
    """A broker's candidate in the controller election: its ZooKeeper session, runtime and peers."""

    def __init__(self, zk: ZooKeeper, runtime: ControllerRuntime, peers: FakePeers) -> None:
        self.zk = zk
        self.runtime = runtime
        self.peers = peers
        self.task = asyncio.get_running_loop().create_task(runtime.run())

    async def stop(self) -> None:
        """Stop the candidate, and end its session."""
        self.task.cancel()
        [end] = await asyncio.gather(self.task, return_exceptions=True)
        await self.zk.close()
        assert end is None or isinstance(end, asyncio.CancelledError), repr(end)


class World:
    """ZooKeeper, registered brokers, and the candidates in the controller election."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.zk: ZooKeeper
        self.sessions: dict[BrokerId, ZooKeeper] = {}
        self.contenders: list[Contender] = []

    async def session(self, timeout_ms: int = 2000) -> ZooKeeper:
        """Open a session with a long timeout, so that a busy machine does not end it."""
        zk = ZooKeeper(self.server.address, session_timeout_ms=timeout_ms, rng=random.Random(1))
        await zk.start()
        return zk

    async def begin(self) -> None:
        self.zk = await self.session()
        for path in zk_paths.PERSISTENT_PATHS:
            await self.zk.ensure_path(path)

    async def end(self) -> None:
        for contender in self.contenders:
            await contender.stop()
        for zk in (self.zk, *self.sessions.values()):
            await zk.close()
        await asyncio.sleep(0.01)  # let the server see the last closed session before it stops

    async def come(self, *numbers: BrokerId, rack: str | None = None) -> None:
        """Register brokers, each in a session of its own."""
        for number in numbers:
            self.sessions[number] = await self.session(timeout_ms=1000)
            znode = zk_paths.BrokerZnode(
                host="127.0.0.1",
                port=9000 + number,
                endpoints=[f"CLIENT://127.0.0.1:{9000 + number}", f"R://127.0.0.1:{number}"],
                listener_security_protocol_map={"CLIENT": "PLAINTEXT", "R": "PLAINTEXT"},
                timestamp="0",
                rack=rack,
            )
            await self._register(self.sessions[number], number, zk_paths.encode(znode))

    async def _register(self, zk: ZooKeeper, number: BrokerId, data: bytes) -> None:
        """Register as a broker does: retry, and wait until a former registration is gone."""
        path = zk_paths.broker(number)
        async with asyncio.timeout(10):
            while True:
                try:
                    await zk.create(path, data, ephemeral=True)
                except NodeExists:
                    found = await zk.exists(path)
                    if found is not None and found.ephemeral_owner == zk.session_id:
                        return
                    await asyncio.sleep(0.01)
                except ConnectionLoss:
                    await zk.connected()
                else:
                    return

    async def go(self, *numbers: BrokerId) -> None:
        """Close the sessions of brokers, which removes their registrations."""
        for number in numbers:
            await self.sessions.pop(number).close()

    async def restart(self, down_s: float) -> None:
        """Restart ZooKeeper after `down_s` seconds; the sessions survive."""
        # Wait until all clients are connected: asyncio loses connections that it accepts while it
        # stops.
        clients = [self.zk, *self.sessions.values(), *(c.zk for c in self.contenders)]
        await asyncio.gather(*(zk.connected() for zk in clients), return_exceptions=True)
        await self.server.stop()
        self.server.disk.kill()
        await asyncio.sleep(down_s)
        await self.server.start()
        await self.zk.connected()

    async def expire(self, zk: ZooKeeper) -> None:
        """End a session on the server, unknown to the client that owns it."""
        same = ZooKeeper(self.server.address, session_timeout_ms=1000, rng=random.Random(1))
        same.session_id, same._password = zk.session_id, zk._password
        await same.start()
        await same.close()

    async def epoch(self, number: BrokerId) -> int:
        """The broker's epoch."""
        found = await self.zk.exists(zk_paths.broker(number))
        assert found is not None
        return found.czxid

    async def contend(
        self,
        number: BrokerId,
        *,
        through: Callable[[ZooKeeper], Any] = lambda zk: zk,
        failed: Mapping[BrokerId, list[TopicPartition]] | None = None,
        **settings: str,
    ) -> Contender:
        """Start a candidate for the broker, with the client that `through` returns.

        failed: the replicas on failed disks, by broker.
        """
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = configuration.parse(
            {
                "broker.id": str(number),
                "zookeeper.connect": self.server.address,
                "listeners": "CLIENT://127.0.0.1:0,R://127.0.0.1:0",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,R:PLAINTEXT",
                "inter.broker.listener.name": "R",
                "auto.leader.rebalance.enable": "false",
            }
            | given
        )
        zk = await self.session()
        peers = FakePeers()
        peers.failed.update(failed or {})
        runtime = ControllerRuntime(
            broker_id=number,
            zk=through(zk),
            peers=peers,
            config=ControllerConfig.of(config),
            wall_ms=lambda: WALL_MS,
            rng=random.Random(number),
            counts=Counts(),
        )
        contender = Contender(zk, runtime, peers)
        self.contenders.append(contender)
        await self.until(lambda: runtime.controller_id != -1)
        return contender

    async def topic(self, name: str, *partitions: list[BrokerId], **settings: str) -> None:
        """Write a topic to ZooKeeper as Kafka's tools would."""
        if settings:
            given = {key.replace("_", "."): value for key, value in settings.items()}
            config = zk_paths.encode(zk_paths.ConfigZnode(config=given))
            await self.zk.create(zk_paths.topic_config(name), config)
        znode = zk_paths.TopicZnode(
            partitions={str(number): replicas for number, replicas in enumerate(partitions)}
        )
        await self.zk.create(zk_paths.topic(name), zk_paths.encode(znode))

    async def state(self, tp: TopicPartition) -> zk_paths.StateZnode:
        """The partition's state as stored in ZooKeeper."""
        data, _ = await self.zk.get(zk_paths.state(tp))
        return zk_paths.decode(zk_paths.state(tp), data, zk_paths.StateZnode)

    async def led(self, tp: TopicPartition, leader: BrokerId, *isr: BrokerId) -> int:
        """Wait until the partition has this leader and ISR, and return its leader epoch."""
        async with asyncio.timeout(10):
            while True:
                if await self.zk.exists(zk_paths.state(tp)) is not None:
                    state = await self.state(tp)
                    if (state.leader, state.isr) == (leader, list(isr)):
                        return state.leader_epoch
                await asyncio.sleep(0.002)

    async def gone(self, path: str) -> None:
        """Wait until the znode does not exist."""
        async with asyncio.timeout(10):
            while await self.zk.exists(path) is not None:  # noqa: ASYNC110 - over the wire
                await asyncio.sleep(0.002)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the event loop run until the condition holds."""
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
                await asyncio.sleep(0.002)


@pytest.fixture
async def world(zookeeper: Any) -> AsyncIterator[World]:
    """A ZooKeeper server without brokers and candidates."""
    world = World(zookeeper)
    await world.begin()
    yield world
    await world.end()
