"""Run ZooKeeper and three brokers in a simulated world: ``three_brokers.py SEED [TEXT]``.

The clients create and write a topic. Its leader is killed, the next leader is written to, and the
killed broker is started again. The program prints the events and the trace's hash as JSON.
"""

import sys

from harness.simulation import determinism

if __name__ == "__main__":
    determinism.exec_pinned()
determinism.install()

import asyncio  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import random  # noqa: E402
from collections.abc import Awaitable, Callable  # noqa: E402
from typing import Any, TextIO  # noqa: E402

from broker_impl import config as configuration  # noqa: E402
from broker_impl.log.memory_disk import MemoryDisk  # noqa: E402
from broker_impl.node.broker import Broker  # noqa: E402
from broker_impl.wire.batch import Record, encode_batch  # noqa: E402
from broker_impl.wire.framing import (  # noqa: E402
    RequestHeader,
    decode_response,
    encode_request,
)
from broker_impl.wire.messages import request_module, response_module  # noqa: E402
from broker_impl.wire.messages.create_topics_request import (  # noqa: E402
    CreatableTopic,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.metadata_request import (  # noqa: E402
    MetadataRequest,
    MetadataRequestTopic,
)
from broker_impl.wire.messages.produce_request import (  # noqa: E402
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.zookeeper import standalone  # noqa: E402
from broker_impl.zookeeper.history import History  # noqa: E402
from broker_impl.zookeeper.server import Server as ZooKeeperServer  # noqa: E402
from broker_impl.zookeeper.store import Store  # noqa: E402
from harness.simulation.process import Process  # noqa: E402
from harness.simulation.world import World  # noqa: E402

TOPIC = "simulated"
_CORRELATION_IDS = itertools.count(1)


class Cluster:
    """A cluster on the hosts ``zookeeper``, ``broker-1`` to ``broker-3`` and ``clients``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clients = world.host("clients")
        self.zookeeper = world.host("zookeeper")
        self.hosts = {number: world.host(f"broker-{number}") for number in (1, 2, 3)}
        self.disks = {number: MemoryDisk() for number in self.hosts}
        self.brokers: dict[int, Process] = {}

    def start(self) -> None:
        self.zookeeper.spawn(self._zookeeper)
        for number in self.hosts:
            self.start_broker(number)

    def start_broker(self, number: int) -> None:
        self.brokers[number] = self.hosts[number].spawn(lambda: self._broker(number))

    async def _zookeeper(self) -> None:
        store = Store(MemoryDisk(), snap_count=100_000)
        clock = self.zookeeper.clock
        pipeline = standalone.pipeline(
            History(store),
            secret=store.secret(lambda count: bytes(range(count))),
            tick_ms=2000,
            wall_ms=lambda: int(clock.wall() * 1000),
            clock=asyncio.get_running_loop().time,
        )
        server = ZooKeeperServer(pipeline, connections_max=0)
        await server.start("0.0.0.0", 2181)
        await server.ended

    async def _broker(self, number: int) -> None:
        config = configuration.parse(
            {
                "broker.id": str(number),
                "zookeeper.connect": "zookeeper:2181",
                "listeners": "CLIENT://0.0.0.0:9092,REPLICATION://0.0.0.0:9093",
                "advertised.listeners": f"CLIENT://broker-{number}:9092,"
                f"REPLICATION://broker-{number}:9093",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
                "inter.broker.listener.name": "REPLICATION",
                "zookeeper.session.timeout.ms": "6000",
                "replica.lag.time.max.ms": "10000",
                "default.replication.factor": "3",
                "min.insync.replicas": "2",
            }
        )
        clock = self.hosts[number].clock
        broker = Broker(
            config,
            disks={"": self.disks[number]},
            rng=random.Random(f"{self.world.seed} broker {number}"),
            wall_ms=lambda: int(clock.wall() * 1000),
        )
        if await broker.start() is not None:
            await broker.run()


async def ask(number: int, key: int, version: int, request: Any) -> Any:
    """Return a broker's answer; raise OSError or IncompleteReadError if none comes."""
    header = RequestHeader(key, version, next(_CORRELATION_IDS), "three-brokers")
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(f"broker-{number}", 9092)
        try:
            writer.writelines(encode_request(header, request_module(key).encode(request, version)))
            size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
            frame = memoryview(await reader.readexactly(size))
        finally:
            writer.close()
    return response_module(key).decode(decode_response(frame, key, version)[1], version)


async def create(number: int) -> bool:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
    answer = await ask(number, 19, 4, CreateTopicsRequest(topics=[topic], timeout_ms=2000))
    return answer.topics[0].error_code in (0, 36)


async def leader_and_isr(number: int) -> tuple[int, list[int]]:
    answer = await ask(number, 3, 5, MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]))
    partition = answer.topics[0].partitions[0]
    return partition.leader_id, sorted(partition.isr_nodes)


async def produce(number: int, value: bytes) -> int | None:
    """Produce a record and return its offset, or None if the broker refused it."""
    batch = encode_batch([Record(value=value)])
    data = TopicProduceData(
        name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=2000, topic_data=[data])
    answer = (await ask(number, 0, 7, request)).responses[0].partition_responses[0]
    return answer.base_offset if answer.error_code == 0 else None


async def until(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat an attempt until it returns neither None nor False."""
    while True:
        try:
            found = await attempt()
            if found is not None and found is not False:
                return found
        except (OSError, asyncio.IncompleteReadError, IndexError):
            pass
        await asyncio.sleep(0.2)


def run(seed: int, text: TextIO | None = None, records: int = 20) -> dict[str, Any]:
    """Run the scenario and return its events, their times and the hash of the trace."""
    told: dict[str, Any] = {}
    with World(seed, trace_text=text) as world:
        cluster = Cluster(world)
        cluster.start()

        async def first_of(number: int) -> Any:
            for other in sorted(cluster.brokers):
                if other != number and await create(other):
                    return True
            return None

        async def main() -> None:
            await until(lambda: first_of(0))
            told["created_s"] = world.now

            async def whole() -> Any:
                leader, isr = await leader_and_isr(1)
                return leader if len(isr) == 3 else None

            leader = await until(whole)
            offsets = [await until(lambda: produce(leader, b"before")) for _ in range(records)]
            cluster.brokers[leader].kill()
            told["killed_s"] = world.now
            other = min(set(cluster.brokers) - {leader})

            async def elected() -> Any:
                found, _ = await leader_and_isr(other)
                return found if found not in (leader, -1) else None

            successor = await until(elected)
            told["elected_s"] = world.now
            offsets += [await until(lambda: produce(successor, b"after")) for _ in range(records)]
            cluster.disks[leader].kill()
            cluster.start_broker(leader)

            async def whole_again() -> Any:
                return len((await leader_and_isr(other))[1]) == 3 or None

            await until(whole_again)
            told["whole_s"] = world.now
            told.update(leader=leader, successor=successor, offsets=offsets)

        world.run(cluster.clients.spawn(main), limit_s=300)
        told["failures"] = [str(failure) for failure in world.take_failures()]
        told["steps"] = world.steps
        told["hash"] = world.trace.digest()
    return told


if __name__ == "__main__":
    import logging

    logging.disable(logging.WARNING)
    out = open(sys.argv[2], "w") if sys.argv[2:] else None  # noqa: SIM115, PTH123
    print(json.dumps(run(int(sys.argv[1]), out)))  # noqa: T201
