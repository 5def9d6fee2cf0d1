"""The cluster of containers on a real engine: faults take effect, heal and leave nothing."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import pytest_asyncio

from harness.cluster.containers import container_cleanup, labels
from harness.cluster.containers.container_cluster import Containers
from harness.cluster.observe import probe, readiness
from harness.cluster.polling import until
from harness.systems.kafka.system import Kafka
from model import roles
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId
from nemesis import (
    disconnect,
    disk,
    kill,
    packets,
    partition,
    pause,
    resource_limits,
    restart,
    slow_link,
    zookeeper,
)
from nemesis.package import Package

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

KEY = f"{readiness.TOPIC}-0"
A, B, C = (roles.broker(number) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Containers]:
    """A cluster for all tests that leave it intact, because its start takes seconds."""
    folder = tmp_path_factory.mktemp("containers") / "test-containers"
    containers = Containers(
        Plan(brokers=3, nemesis=("disk",)), folder, random.Random(1), system=Kafka()
    )
    await containers.start()
    yield containers
    await containers.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def started(tmp_path: Path) -> AsyncIterator[Callable[[str, int], Awaitable[Containers]]]:
    """Start clusters for one test, given the run's name and the number of brokers."""
    clusters: list[Containers] = []

    async def start(run: str, brokers: int) -> Containers:
        cluster = Containers(
            Plan(brokers=brokers), tmp_path / run, random.Random(2), system=Kafka()
        )
        clusters.append(cluster)
        await cluster.start()
        return cluster

    yield start
    for cluster in clusters:
        await cluster.stop()


Started = Callable[[str, int], Awaitable[Containers]]


def things(client: Any, run: str) -> list[str]:
    """Return the engine's containers, networks and volumes of a run."""
    mine = {"label": f"{labels.RUN}={run}"}
    return [
        *(found["Id"] for found in client.api.containers(all=True, filters=mine)),
        *(found["Id"] for found in client.api.networks(filters=mine)),
        *(found["Name"] for found in client.api.volumes(filters=mine)["Volumes"] or ()),
    ]


async def test_ready_means_led_and_replicated(cluster: Containers) -> None:
    """After start there is a controller, and a record is on all replicas."""
    assert await cluster.controller() in cluster.brokers
    assert await cluster.leader(KEY) in cluster.brokers
    assert sorted(await cluster.isr(KEY)) == [A, B, C]
    assert await cluster.recover(5.0), "nothing to recover from"


async def test_nodes_have_no_rights_and_no_open_door(cluster: Containers, client: Any) -> None:
    """No node runs as root or with a capability, and ports are published on loopback only."""
    mine = {
        "label": [f"{name}={value}" for name, value in labels.of_run("test-containers").items()]
    }
    found = client.api.containers(filters=mine)
    assert len(found) == 5
    for each in found:
        told = client.api.inspect_container(each["Id"])
        assert not told["HostConfig"]["Privileged"]
        assert told["HostConfig"]["CapDrop"] == ["ALL"]
        assert told["HostConfig"]["RestartPolicy"]["Name"] in ("", "no")
        assert told["Config"]["User"].split(":")[0] not in ("", "0", "root")
        bindings = [each for each in told["NetworkSettings"]["Ports"].values() if each]
        assert {binding["HostIp"] for group in bindings for binding in group} <= {"127.0.0.1"}
        assert bool(bindings) is (told["Config"]["Hostname"] == "toxiproxy")


@pytest.mark.parametrize(
    ("package", "fault", "targets", "options"),
    [
        (kill.PACKAGE, "kill", f"leader:{KEY}", {}),
        (kill.PACKAGE, "kill", [A, B, C], {}),
        (pause.PACKAGE, "pause", "controller", {}),
        (restart.PACKAGE, "restart", "controller", {}),
        (zookeeper.PACKAGE, "kill-zookeeper", [ZOOKEEPER], {}),
        (zookeeper.PACKAGE, "pause-zookeeper", [ZOOKEEPER], {}),
        (slow_link.PACKAGE, "slow", [A], {"latency_s": 0.05, "from": ["brokers"]}),
        (partition.PACKAGE, "partition-one", [A], {"from": ["brokers", "zookeeper", "clients"]}),
        (partition.PACKAGE, "partition-leader", f"leader:{KEY}", {"way": "down"}),
        (partition.PACKAGE, "partition-majorities-ring", [A, B, C], {}),
        (partition.PACKAGE, "partition-one-way", [B], {"direction": "in", "from": ["zookeeper"]}),
        (disconnect.PACKAGE, "disconnect", f"leader:{KEY}", {}),
        (disconnect.PACKAGE, "disconnect", [ZOOKEEPER], {}),
        (disk.PACKAGE, "disk-full", [B], {}),
        (packets.PACKAGE, "drop-packets", [C], {"share": 0.3}),
    ],
)
async def test_fault_is_proved_and_recovered_from(
    cluster: Containers,
    package: Package,
    fault: str,
    targets: str | list[NodeId],
    options: dict[str, object],
) -> None:
    """Each fault takes measured effect, and the cluster recovers completely after the heal."""
    assert package.fits(cluster)
    await bites_and_is_mended(cluster, package, fault, targets, options)


async def bites_and_is_mended(
    cluster: Containers,
    package: Package,
    fault: str,
    targets: str | list[NodeId],
    options: dict[str, object],
) -> None:
    applied = await package.apply(
        cluster, fault, targets, package.typed(fault, options), random.Random(1)
    )
    assert applied.effect.proved, applied.effect.how
    healed = await package.heal(cluster, applied)
    assert healed.proved, healed.how
    assert await cluster.recover(60)
    assert cluster.unexpected_exits == []


async def under(load: Callable[[], Awaitable[None]], of: Awaitable[None]) -> None:
    """Wait for `of` while the load runs."""
    loading = [asyncio.create_task(again(load)) for _ in range(4)]
    try:
        await of
    finally:
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)


async def again(load: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await load()
        except OSError:  # the broker is down
            await asyncio.sleep(0.1)


async def test_who_has_something_to_do_feels_a_lack_of_cpu(cluster: Containers) -> None:
    """A broker under load is throttled by a small CPU limit; an idle one might not be."""

    async def ask() -> None:
        await probe.answers(cluster.direct(A), "kafka", 1.0)

    squeezed = bites_and_is_mended(
        cluster, resource_limits.PACKAGE, "squeeze-cpu", [A], {"cpus": 0.02}
    )
    await under(ask, squeezed)


async def test_who_grows_feels_a_lack_of_memory(cluster: Containers) -> None:
    """A broker with a growing number of clients meets its memory limit; an idle one might not."""
    writers: list[asyncio.StreamWriter] = []

    async def come() -> None:
        _, writer = await asyncio.open_connection(*cluster.direct(A))
        writers.append(writer)
        await asyncio.sleep(0.02)

    options: dict[str, object] = {"headroom_bytes": 4 << 20}
    squeezed = bites_and_is_mended(cluster, resource_limits.PACKAGE, "squeeze-memory", [A], options)
    try:
        await under(come, squeezed)
    finally:
        for writer in writers:
            writer.close()


async def test_a_pulled_cable_stays_out_over_a_restart(cluster: Containers) -> None:
    """A disconnected node that is killed and started stays disconnected until it is reconnected."""
    await cluster.disconnect(A)
    await cluster.kill(A)
    await cluster.start_node(A)
    assert await cluster.is_running(A)
    assert await cluster.is_disconnected(A)
    await cluster.reconnect(A)
    assert not await cluster.is_disconnected(A)
    assert await cluster.recover(60)


async def test_mending_what_was_not_broken_changes_nothing(cluster: Containers) -> None:
    """Healing without an active fault changes nothing, as before the final reads."""
    before = await cluster.resource_usage(A)
    await cluster.reconnect(A)
    await cluster.free_disk(A)
    await cluster.lift_limits(A)
    await cluster.pass_packets(A)
    after = await cluster.resource_usage(A)
    assert (before.cpus, before.memory_bytes) == (after.cpus, after.memory_bytes)
    assert await cluster.packets_dropped(A) is None
    assert await cluster.recover(5)


async def test_links_to_a_dead_node_can_be_closed(cluster: Containers) -> None:
    """Refusing links to a dead node does not hang, though clients keep trying to connect."""
    await cluster.kill(A)
    clock = asyncio.get_running_loop().time
    trying = [asyncio.open_connection(*link.reached) for link in cluster.mesh.between(CLIENTS, A)]
    writers = [writer for _, writer in await asyncio.gather(*trying)]
    began = clock()
    await cluster.refuse(CLIENTS, A)
    assert clock() - began < 5
    assert await cluster.is_refused(CLIENTS, A)
    await cluster.accept(CLIENTS, A)
    for writer in writers:
        writer.close()
    await cluster.start_node(A)
    assert await cluster.recover(60)


async def test_no_rule_is_told_of_a_node_that_is_down(cluster: Containers) -> None:
    """The packet rules of a killed node are gone with its network; removing them is harmless."""
    await cluster.drop_packets(B, 0.1)
    assert await cluster.packets_dropped(B) is not None
    await cluster.kill(B)
    assert await cluster.packets_dropped(B) is None
    await cluster.pass_packets(B)
    await cluster.start_node(B)
    assert await cluster.packets_dropped(B) is None
    assert await cluster.recover(60)


async def test_another_cluster_beside_it(
    cluster: Containers, client: Any, started: Started
) -> None:
    """A second cluster does not disturb the first, and removes only its own objects."""
    before = things(client, "test-containers")
    other = await started("test-other", 1)
    assert await cluster.recover(30)
    await other.stop()
    assert things(client, "test-other") == []
    assert sorted(things(client, "test-containers")) == sorted(before)
    assert await cluster.recover(30)


async def test_crash_is_evidence_and_stop_leaves_nothing(
    client: Any, started: Started, tmp_path: Path
) -> None:
    """A node that ends by itself is reported, and a stopped cluster leaves nothing in the engine.

    The logs and data are then in the folder. This holds although one node is paused and one has no
    network.
    """
    cluster = await started("test-crash", 2)
    await cluster.kill(A)
    await cluster.start_node(A)
    victim = cluster._containers[B].identity
    client.api.kill(victim, "SIGKILL")

    async def noticed() -> bool:
        return bool(cluster.unexpected_exits)

    async with asyncio.timeout(10):
        await until(noticed, 0.1)
    [end] = cluster.unexpected_exits
    assert (end.node, end.status) == (B, -9)
    await cluster.pause(A)
    await cluster.disconnect(ZOOKEEPER)
    assert things(client, "test-crash") != []
    await cluster.stop()
    assert things(client, "test-crash") == []
    nodes = tmp_path / "test-crash" / "nodes"
    for node in (A, B, ZOOKEEPER, "toxiproxy"):
        assert (nodes / node / "log.txt").exists(), node
    assert (nodes / A / "log.txt").read_text().count("session: CONNECTED") >= 2, "both lives of it"
    [segment] = (nodes / A / "data" / KEY).glob("*.log")
    assert segment.stat().st_size > 0, "the record was kept over the kill"
    cluster.settle_data(keep=False)
    assert sorted(path.name for path in (nodes / A).iterdir()) == ["log.txt", "server.properties"]


STARTS = """
import asyncio, random, sys
from pathlib import Path
from harness.cluster.containers.container_cluster import Containers
from harness.systems.kafka.system import Kafka
from model.plan import Plan

async def main():
    plan = Plan(brokers=1, nemesis=("disk",))
    await Containers(plan, Path(sys.argv[1]), random.Random(1), system=Kafka()).start()

asyncio.run(main())
"""


@pytest.mark.parametrize("kinds", [1, 2, 3], ids=["network", "volumes", "containers"])
async def test_what_a_killed_harness_leaves_is_reaped(
    kinds: int, client: Any, tmp_path: Path
) -> None:
    """The next start removes what a killed harness has left in the engine.

    The harness is killed as soon as it has made its first network, volume or container.
    """
    run = f"test-killed-{kinds}"
    mine = {"label": f"{labels.RUN}={run}"}
    looks = [
        lambda: client.api.networks(filters=mine),
        lambda: client.api.volumes(filters=mine)["Volumes"],
        lambda: client.api.containers(all=True, filters=mine),
    ]
    harness = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTS, str(tmp_path / run)
    )
    while not looks[kinds - 1]():
        await asyncio.sleep(0.01)
        assert harness.returncode is None
    harness.kill()
    await harness.wait()
    await asyncio.sleep(0.5)  # the engine may still complete calls in flight
    assert container_cleanup.reap(client) == []
    assert things(client, run) == []
