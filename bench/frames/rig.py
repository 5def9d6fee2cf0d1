"""A simulated broker with the listeners, users, topics and ACLs that the frames are about."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from bench.frames.client import Client, until
from broker_impl import config as configuration
from broker_impl.errors import ErrorCode
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.node.broker import Broker
from broker_impl.server import Server
from broker_impl.wire import batch
from broker_impl.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.server import Server as ZooKeeperServer
from broker_impl.zookeeper.store import Store
from harness.simulation.world import World

OPEN, DOOR, BROKERS = "OPEN", "DOOR", "BROKERS"
"""The listeners: without authentication, with SASL, and that of brokers."""
SECRET: Final = b"the-record-that-alice-must-not-read"
"""A record of the topic ``hidden``."""
RECEIVE_MAX: Final = 65_536
"""The largest request before the authentication, in bytes."""
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PASSWORD: Final = "a-password-that-no-mutation-guesses"
SETTINGS: Final = {
    "broker.id": "1",
    "zookeeper.connect": "zookeeper:2181",
    "listeners": f"{OPEN}://0.0.0.0:9092,{DOOR}://0.0.0.0:9093,{BROKERS}://0.0.0.0:9094",
    "advertised.listeners": f"{OPEN}://broker:9092,{DOOR}://broker:9093,{BROKERS}://broker:9094",
    "listener.security.protocol.map": f"{OPEN}:PLAINTEXT,{DOOR}:SASL_PLAINTEXT,{BROKERS}:PLAINTEXT",
    "inter.broker.listener.name": BROKERS,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.server.max.receive.size": str(RECEIVE_MAX),
    "connection.failed.authentication.delay.ms": "0",
    "listener.name.door.plain.sasl.jaas.config": f'{_PLAIN} user_alice="{_PASSWORD}";',
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "request.timeout.ms": "1000",
    "controlled.shutdown.enable": "false",
}
LEARNED: Final = ("member_id", "generation_id", "producer_id", "producer_epoch")
KNOWN_MAX: Final = 3
_TOPIC, _GROUP, _TRANSACTIONAL_ID = 2, 3, 5
_READ, _WRITE = 3, 4
_RIGHTS: Final = (
    (_TOPIC, "t", _READ),
    (_TOPIC, "t", _WRITE),
    (_GROUP, "t", _READ),
    (_TRANSACTIONAL_ID, "t", _WRITE),
)
_LITERAL, _ALLOW = 3, 3


class Rig:
    """The broker, and how cases reach it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.server: Server = broker._server
        self.known: dict[str, list[Any]] = {}
        """The latest values of some fields in responses, with which later requests may succeed."""
        self._ports = 1000

    def client(self, listener: str) -> Client:
        """Connect to a listener."""
        self._ports += 1
        return Client(self.server, listener, self._ports)

    def learn(self, answer: Any) -> None:
        """Keep what a response says about members of groups and about producers."""
        if getattr(answer, "error_code", 0) not in (0, ErrorCode.MEMBER_ID_REQUIRED):
            return
        for name in LEARNED:
            found = getattr(answer, name, None)
            if found not in (None, "", -1):
                self.known[name] = [*self.known.get(name, ()), found][-KNOWN_MAX:]

    async def authenticated(self) -> Client:
        """Connect as alice, who has few rights."""
        client = self.client(DOOR)
        await client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 17, 1)
        token = b"\0alice\0" + _PASSWORD.encode()
        answer = await client.ask(SaslAuthenticateRequest(auth_bytes=token), 36, 2)
        assert answer.error_code == 0, "the password is right"
        return client

    async def prepare(self) -> None:
        """Create the topics with their records, and the ACLs."""
        await until(lambda: self.server.serves(OPEN, 3))
        client = self.client(OPEN)
        topics = [
            CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            for name in ("t", "u", "hidden")
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=5000)
        while any(row.error_code for row in (await client.ask(request, 19, 5)).topics):
            await asyncio.sleep(0.05)
            request.topics = [each for each in topics if each.name not in self.broker.view.topics]
        await until(lambda: all(topic.name in self.broker.view.topics for topic in topics))
        rows = [
            AclCreation(kind, name, _LITERAL, "User:alice", "*", operation, _ALLOW)
            for kind, name, operation in _RIGHTS
        ]
        await client.ask(CreateAclsRequest(creations=rows), 30, 2)
        for topic, value in (("t", b"a record"), ("hidden", SECRET)):
            await self._produce(client, topic, value)
        await client.leave()

    async def _produce(self, client: Client, topic: str, value: bytes) -> None:
        records = batch.encode_batch([batch.Record(b"k", value, 1)])
        request = ProduceRequest(
            transactional_id=None,
            acks=1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(topic, [PartitionProduceData(0, records)])],
        )
        answer = await client.ask(request, 0, 8)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer


Play = Callable[[Rig], Awaitable[Any]]


def run(seed: str, play: Play) -> Any:
    """Start a broker and a ZooKeeper in a simulated world; return what ``play`` returns."""
    with World(random.Random(seed).getrandbits(32), busy_steps_max=5_000_000) as world:
        zookeeper, host = world.host("zookeeper"), world.host("broker")

        async def serve_zookeeper() -> None:
            store = Store(MemoryDisk(), snap_count=100_000)
            pipeline = standalone.pipeline(
                History(store),
                secret=store.secret(lambda count: bytes(range(count))),
                tick_ms=2000,
                wall_ms=lambda: int(zookeeper.clock.wall() * 1000),
                clock=asyncio.get_running_loop().time,
            )
            server = ZooKeeperServer(pipeline, connections_max=0)
            await server.start("0.0.0.0", 2181)
            await server.ended

        async def serve_broker() -> Any:
            broker = Broker(
                configuration.parse(SETTINGS),
                disks={"": MemoryDisk()},
                rng=random.Random(seed),
                wall_ms=lambda: int(host.clock.wall() * 1000),
            )
            await broker.start()
            rig = Rig(broker)
            await rig.prepare()
            return await play(rig)

        zookeeper.spawn(serve_zookeeper)
        try:
            return world.run(host.spawn(serve_broker))
        finally:
            world.take_failures()
