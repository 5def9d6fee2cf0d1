"""The cluster of processes with this project's own broker and ZooKeeper."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.cluster.observe import cluster_config, readiness
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.polling import until
from harness.cluster.processes.process_cluster import Processes
from harness.systems.kafka.system import Kafka
from model import roles
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId
from nemesis import kill, partition, pause, restart, slow_link, zookeeper
from nemesis.package import Package

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("toxiproxy_server"),
]

KEY = f"{readiness.TOPIC}-0"
A, B, C = (roles.broker(number) for number in (1, 2, 3))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Processes]:
    processes = Processes(
        Plan(brokers=3),
        tmp_path / "run",
        random.Random(1),
        system=Kafka(),
        state=tmp_path / "state",
    )
    await processes.start()
    yield processes
    await processes.stop()


async def test_ready_means_led_and_replicated(cluster: Processes) -> None:
    """After start there is a controller, and a record is on all replicas."""
    assert await cluster.controller() in cluster.brokers
    assert await cluster.leader(KEY) in cluster.brokers
    assert sorted(await cluster.isr(KEY)) == [A, B, C]
    assert await cluster.recover(1.0), "nothing to recover from"


async def test_leader_that_dies_is_replaced_and_comes_back(cluster: Processes) -> None:
    """After a leader's death its session ends, another leads, and recovery restores the ISR."""
    old = await cluster.leader(KEY)
    assert old is not None
    await cluster.kill(old)

    async def replaced() -> bool:
        return await cluster.leader(KEY) not in (old, None)

    async with asyncio.timeout(20):
        await until(replaced)
    assert old not in await cluster.isr(KEY)
    assert await cluster.recover(30)
    assert sorted(await cluster.isr(KEY)) == [A, B, C]
    assert cluster.unexpected_exits == []


async def test_kafka_view_agrees_with_zookeeper(cluster: Processes) -> None:
    """What the brokers say by Kafka's protocol is what ZooKeeper has, also after an election."""
    view = KafkaView({name: cluster.direct(name) for name in cluster.brokers})
    assert await view.live() == cluster.brokers
    assert sorted(await view.partitions(), key=str) == sorted(
        await cluster.view.partitions(), key=str
    )
    old = await view.controller()
    assert old == await cluster.controller()
    assert old is not None
    await cluster.kill(old)

    async def replaced() -> bool:
        now = await view.controller()
        return now not in (old, None) and now == await cluster.controller()

    async with asyncio.timeout(20):
        await until(replaced)
    assert old not in await view.live()


async def test_own_brokers_report_their_settings(cluster: Processes) -> None:
    """Release and settings of this project's brokers can be read."""
    facts = await cluster_config.read([cluster.direct(A)], [readiness.TOPIC])
    assert facts.release == "3.2"
    assert facts.broker["min.insync.replicas"] == "2"
    assert facts.topics[readiness.TOPIC].replication_factor == 3
    assert facts.unread == ()


@pytest.mark.parametrize(
    ("package", "fault", "targets", "options"),
    [
        (kill.PACKAGE, "kill", f"leader:{KEY}", {}),
        (kill.PACKAGE, "kill", [A, B, C], {}),
        (pause.PACKAGE, "pause", "controller", {}),
        (restart.PACKAGE, "restart", "controller", {}),
        (restart.PACKAGE, "restart-rolling", [A, B, C], {}),
        (zookeeper.PACKAGE, "kill-zookeeper", [ZOOKEEPER], {}),
        (zookeeper.PACKAGE, "pause-zookeeper", [ZOOKEEPER], {}),
        (slow_link.PACKAGE, "slow", [A], {"latency_s": 0.05, "from": ["brokers"]}),
        (partition.PACKAGE, "partition-one", [A], {"from": ["brokers", "zookeeper", "clients"]}),
        (partition.PACKAGE, "partition-leader", f"leader:{KEY}", {"way": "down"}),
        (partition.PACKAGE, "partition-zookeeper", "controller", {}),
        (partition.PACKAGE, "partition-majorities-ring", [A, B, C], {}),
        (partition.PACKAGE, "partition-one-way", [B], {"direction": "in", "from": ["zookeeper"]}),
    ],
)
async def test_fault_is_proved_and_recovered_from(
    cluster: Processes,
    package: Package,
    fault: str,
    targets: str | list[NodeId],
    options: dict[str, object],
) -> None:
    """Each fault takes measured effect, and the cluster recovers completely after the heal."""
    assert package.fits(cluster)
    applied = await package.apply(
        cluster, fault, targets, package.typed(fault, options), random.Random(1)
    )
    assert applied.effect.proved, applied.effect.how
    healed = await package.heal(cluster, applied)
    assert healed.proved, healed.how
    assert await cluster.recover(30)
    assert cluster.unexpected_exits == []
