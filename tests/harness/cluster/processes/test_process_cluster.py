"""The cluster of processes, with stand-ins for broker and ZooKeeper behind a real Toxiproxy."""

import asyncio
import itertools
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import javaproperties
import psutil
import pytest

from harness.cluster import links
from harness.cluster.address import Address
from harness.cluster.base_cluster import CONTROLLER_FIRST
from harness.cluster.links import LinkSpec
from harness.cluster.mesh.toxiproxy import MeshError
from harness.cluster.node import ClusterError, NodeError
from harness.cluster.observe.metadata_view import MetadataView, Registration, ViewUnavailable
from harness.cluster.polling import until
from harness.cluster.process import Process
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.settings import PEER_LISTENER
from harness.cluster.system import Place, Program, System
from harness.systems.kafka.system import Kafka
from model import roles
from model.capabilities.control_plane import Partition
from model.layout import Layout, with_kraft
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("toxiproxy_server")]

FAKE = str(Path(__file__).with_name("fake_node.py"))
A, B = roles.broker(1), roles.broker(2)


class FakeKafka(Kafka):
    """This project's system with stand-ins on the ports of the real programs."""

    def program(self, place: Place, plan: Plan) -> Program:
        super().program(place, plan)
        protocol = "zookeeper" if place.node == ZOOKEEPER else "kafka"
        return Program([sys.executable, FAKE, protocol, *map(str, place.listens.values())])


class FakeQuorum(FakeKafka):
    """Stand-ins for two brokers that are controllers, too, and do not use ``SO_REUSEPORT``."""

    reuses_ports = False
    start_timeout_s = 30.0

    def __init__(self, first: str = "print('formatted')") -> None:
        self.first = first
        self.places: dict[NodeId, Place] = {}

    def layout(self, plan: Plan) -> Layout:
        return with_kraft(plan.brokers, plan.brokers, combined=True)

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        return (*links.listeners(()), "CONTROLLER")

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        for one, other in itertools.permutations((1, 2)):
            broker, peer = roles.broker(one), roles.broker(other)
            yield from links.of_clients(broker, ())
            yield LinkSpec(broker, peer, PEER_LISTENER, by_name=True)
            yield LinkSpec(broker, roles.controller(other), "CONTROLLER", by_name=True)

    def program(self, place: Place, plan: Plan) -> Program:
        self.places[place.node] = place
        argv = [sys.executable, FAKE, "kafka", *map(str, place.listens.values())]
        return Program(argv, first=[sys.executable, "-c", self.first])


class FakeView:
    """A view of ZooKeeper with fixed contents that a test sets."""

    def __init__(self) -> None:
        self.isr: tuple[NodeId, ...] = (A, B)
        self.internal: dict[str, tuple[NodeId, ...]] = {}
        """The leaders of the partitions of each internal topic."""
        self.blind = False

    async def close(self) -> None:
        self.blind = True

    async def controller(self) -> NodeId | None:
        if self.blind:
            raise ViewUnavailable("blind")
        return A

    async def live(self) -> tuple[NodeId, ...]:
        return (A, B)

    async def registration(self, broker: NodeId) -> Registration | None:
        if self.blind:
            raise ViewUnavailable("blind")
        return Registration(epoch=71, session_id=5) if broker == A else None

    async def partition(self, key: str) -> Partition | None:
        if self.blind:
            raise ViewUnavailable("blind")
        return Partition(key, replicas=(A, B), leader=B, leader_epoch=3, isr=self.isr)

    async def partitions(self) -> tuple[Partition, ...]:
        partition = await self.partition("x-0")
        assert partition is not None
        internal = (
            Partition(f"{topic}-{number}", (A, B), leader, 1, (A, B))
            for topic, leaders in self.internal.items()
            for number, leader in enumerate(leaders)
        )
        return (partition, *internal)


async def at_once(view: MetadataView, brokers: Mapping[NodeId, Address]) -> None:
    """Report ready without writing a record, which a stand-in could not store."""
    assert sorted(brokers) == [A, B]


def cluster_of(
    folder: Path,
    fake_view: FakeView,
    *,
    options: Mapping[str, object] | None = None,
    system: System | None = None,
) -> Processes:
    return Processes(
        Plan(brokers=2, broker={"num.partitions": "7"}, options=dict(options or {})),
        folder / "run",
        random.Random(1),
        system=system or FakeKafka(),
        make_view=lambda _: fake_view,
        ready=at_once,
        state=folder / "state",
    )


@pytest.fixture
def fake_view() -> FakeView:
    return FakeView()


@pytest.fixture
async def cluster(tmp_path: Path, fake_view: FakeView) -> AsyncIterator[Processes]:
    processes = cluster_of(tmp_path, fake_view, options={"client_listeners": ["alice"]})
    await processes.start()
    yield processes
    await processes.stop()


def properties(tmp_path: Path, node: NodeId) -> dict[str, str]:
    path = tmp_path / "run" / "nodes" / node / "server.properties"
    return dict(javaproperties.loads(path.read_text()))


async def test_every_link_has_its_own_proxy(cluster: Processes, tmp_path: Path) -> None:
    """Clients, peers and ZooKeeper are reached through one proxy per link, as the settings say."""
    towards = {(link.opener, link.acceptor): link for link in cluster.mesh.links}
    assert sorted(towards) == sorted(
        [
            *((client, broker) for client in (CLIENTS, "clients-alice") for broker in (A, B)),
            *((broker, ZOOKEEPER) for broker in (A, B)),
            *((A, B), (B, A)),
        ]
    )
    settings = properties(tmp_path, A)
    assert settings["faultline.peer.2"] == str(towards[A, B].listens)
    assert settings["zookeeper.connect"] == str(towards[A, ZOOKEEPER].listens)
    assert settings["num.partitions"] == "7", "the plan's settings win"
    advertised = dict(
        endpoint.split("://") for endpoint in settings["advertised.listeners"].split(",")
    )
    assert advertised["CLIENT"] == str(towards[CLIENTS, A].listens)
    assert advertised["CLIENT_ALICE"] == str(towards["clients-alice", A].listens)
    assert advertised["REPLICATION"] == str(towards[B, A].upstream)
    assert cluster.bootstrap() == ",".join(
        str(towards[CLIENTS, broker].listens) for broker in (A, B)
    )
    assert cluster.bootstrap("alice").startswith(str(towards["clients-alice", A].listens))


async def test_kill_and_start_on_the_same_ports(cluster: Processes) -> None:
    """A killed node refuses connections; when it is started again, it has the same ports."""
    port = cluster.direct(A)
    await cluster.kill(A)
    assert not await cluster.is_running(A)
    await cluster.start_node(A)
    assert await cluster.is_running(A)
    assert cluster.direct(A) == port
    assert cluster.unexpected_exits == []


async def test_a_node_starts_when_its_system_says_so(
    cluster: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start waits, but not for longer than a session lasts."""
    answers = [False, False, True]

    async def may_start_again(system: Kafka, node: NodeId, view: object) -> bool:
        assert not await cluster.is_running(node)
        return answers.pop(0)

    monkeypatch.setattr(Kafka, "may_start_again", may_start_again)
    await cluster.kill(A)
    await cluster.start_node(A)
    assert answers == []
    assert await cluster.is_running(A)


async def test_clean_stop(cluster: Processes) -> None:
    """A clean stop returns the exit status."""
    assert await cluster.stop_node(A) == 0
    assert not await cluster.is_running(A)


async def test_pause_and_resume(cluster: Processes) -> None:
    """A paused node is stopped but still running."""
    await cluster.pause(A)

    async def paused() -> bool:
        return await cluster.is_paused(A)

    async with asyncio.timeout(5):
        await until(paused, 0.001)
    assert await cluster.is_running(A)
    await cluster.resume(A)
    assert not await cluster.is_paused(A)


@pytest.mark.parametrize(
    ("source", "target"), [(A, B), (CLIENTS, A), (A, CLIENTS), (A, ZOOKEEPER), (ZOOKEEPER, A)]
)
async def test_cut_is_measured(cluster: Processes, source: NodeId, target: NodeId) -> None:
    """A probe over a cut link gets no answer until the heal; probes over other links do."""
    assert await cluster.is_cut(source, target) is False
    await cluster.cut(source, target)
    assert await cluster.is_cut(source, target) is True
    assert await cluster.is_cut(CLIENTS, B) is False
    await cluster.heal(source, target)
    assert await cluster.is_cut(source, target) is False


async def test_cut_towards_the_dead_cannot_be_told(cluster: Processes) -> None:
    """A node that is down answers no probe, which proves nothing about the link."""
    await cluster.kill(A)
    assert await cluster.is_cut(CLIENTS, A) is None
    await cluster.cut(A, B)
    assert await cluster.is_cut(A, B) is True, "the link the other way tells"
    await cluster.heal_all()


async def test_a_slow_link_is_not_taken_for_a_cut_one(cluster: Processes) -> None:
    """A probe waits for a slow link; beyond a limit it is unknown whether the link is cut."""
    await cluster.slow(A, B, 0.4)
    assert await cluster.is_cut(A, B) is False
    await cluster.slow(B, A, 6.0)
    assert await cluster.is_cut(A, B) is None
    await cluster.heal_all()
    assert await cluster.is_cut(A, B) is False


async def test_refusal_is_measured(cluster: Processes) -> None:
    """A refused link accepts no connection."""
    await cluster.refuse(A, B)
    assert await cluster.is_refused(B, A)
    assert not await cluster.is_refused(CLIENTS, A)
    await cluster.accept(A, B)
    assert not await cluster.is_refused(A, B)


async def test_slowness_is_measured(cluster: Processes) -> None:
    """The round trip over a slow link is longer by the latency; a dead node has none."""
    await cluster.slow(A, B, 0.1)
    slow = await cluster.round_trip_s(A, B)
    assert slow is not None
    assert slow >= 0.1
    await cluster.quicken(A, B, 0.1)
    quick = await cluster.round_trip_s(A, B)
    assert quick is not None
    assert quick < 0.1
    await cluster.kill(A)
    assert await cluster.round_trip_s(CLIENTS, A) is None


async def test_crash_is_evidence(cluster: Processes) -> None:
    """A node that ends by a signal that Faultline did not send is recorded."""
    node = cluster._nodes[A]
    assert isinstance(node, Process)
    pid = node.pid
    assert pid is not None
    psutil.Process(pid).send_signal(signal.SIGSEGV)

    async def noticed() -> bool:
        return bool(cluster.unexpected_exits)

    async with asyncio.timeout(5):
        await until(noticed, 0.01)
    [end] = cluster.unexpected_exits
    assert (end.node, end.status, end.last_line) == (A, -signal.SIGSEGV, "listening")


async def test_a_node_that_runs_and_closed_its_ports_is_unresponsive(cluster: Processes) -> None:
    """A paused node and one that has ended are not: there is a reason for their silence."""
    assert await cluster.unresponsive(5.0) == ()
    for name, signal_ in ((A, signal.SIGUSR1), (B, signal.SIGSTOP)):
        node = cluster._nodes[name]
        assert isinstance(node, Process)
        assert node.pid is not None
        psutil.Process(node.pid).send_signal(signal_)
    await cluster.kill(ZOOKEEPER)
    assert await cluster.unresponsive(0.3) == (A,)


async def test_recovery_waits_for_every_replica(cluster: Processes, fake_view: FakeView) -> None:
    """Recovery waits until every node runs, has leaders and full ISRs; else it returns False."""
    fake_view.isr = (B,)
    await cluster.kill(A)
    assert not await cluster.recover(0.5)
    assert await cluster.is_running(A), "recovery starts what is down"
    fake_view.isr = (B, A)
    assert await cluster.recover(0.5)


async def test_roles_are_those_of_zookeeper(cluster: Processes, fake_view: FakeView) -> None:
    """Leader, ISR and controller come from ZooKeeper's view; without a view they are unknown."""
    assert await cluster.controller() == A
    assert await cluster.leader("x-0") == B
    assert await cluster.coordinator("group", "g") is None
    fake_view.internal = {"__consumer_offsets": (A, B), "__transaction_state": (B,)}
    assert await cluster.coordinator("group", "g") == B  # the hash of "g" is 103
    assert await cluster.coordinator("group", "h") == A
    assert await cluster.coordinator("transaction", "h") == B
    assert await cluster.isr("x-0") == (A, B)
    fake_view.blind = True
    assert await cluster.controller() is None
    assert await cluster.leader("x-0") is None
    assert await cluster.coordinator("group", "g") is None
    assert await cluster.isr("x-0") == ()
    assert not await cluster.recover(0.1)


async def test_data_can_be_dropped_and_logs_stay(cluster: Processes, tmp_path: Path) -> None:
    """After a green run the data of the nodes is removed and their logs stay."""
    await cluster.stop()
    cluster.settle_data(keep=False)
    nodes = tmp_path / "run" / "nodes"
    assert sorted(path.name for path in nodes.iterdir()) == [
        *(A, B, "pids.json", "toxiproxy", ZOOKEEPER)
    ]
    assert sorted(path.name for path in (nodes / A).iterdir()) == ["log.txt", "server.properties"]


async def test_stop_leaves_nothing(tmp_path: Path, fake_view: FakeView) -> None:
    """After stop no process is left, paused or not, and no process is registered."""
    cluster = cluster_of(tmp_path, fake_view)
    others = set(psutil.pids())
    await cluster.start()
    pids = [process.pid for process in psutil.Process().children() if process.pid not in others]
    await cluster.pause(A)
    await cluster.stop()
    assert len(pids) >= 4
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert list((tmp_path / "state").iterdir()) == []


async def test_node_that_cannot_start_fails_the_start(tmp_path: Path, fake_view: FakeView) -> None:
    """The error names the node that ended and its last line, and no process is left behind."""

    class Dying(FakeKafka):
        def program(self, place: Place, plan: Plan) -> Program:
            if place.node == ZOOKEEPER:
                return super().program(place, plan)
            return Program([sys.executable, "-c", "import sys; sys.exit('bad setting')"])

    cluster = cluster_of(tmp_path, fake_view, system=Dying())
    with pytest.raises(ClusterError, match=r"broker-. exited while it started: bad setting"):
        await cluster.start()
    assert list((tmp_path / "state").iterdir()) == []
    with pytest.raises(NodeError):
        await cluster.pause(A)


@pytest.fixture
async def quorum(tmp_path: Path, fake_view: FakeView) -> AsyncIterator[Processes]:
    processes = cluster_of(tmp_path, fake_view, system=FakeQuorum())
    await processes.start()
    yield processes
    await processes.stop()


async def test_a_cut_between_two_brokers_cuts_their_controllers_too(quorum: Processes) -> None:
    """Faults between two nodes affect the links to their controllers, and no client's link."""
    mesh = quorum.mesh
    between = [(A, B), (B, A), (A, "controller-2"), (B, "controller-1")]
    assert {(each.opener, each.acceptor) for each in mesh.links} == {
        *between,
        *((CLIENTS, broker) for broker in (A, B)),
    }
    assert await quorum.is_cut(A, B) is False
    await quorum.cut(A, B)
    assert all(mesh.faults(*pair).cut for pair in between)
    assert await quorum.is_cut(A, B) is True
    assert await quorum.is_cut(CLIENTS, A) is False
    await mesh.heal(A, "controller-2")
    assert await quorum.is_cut(A, B) is False, "one of the links still passes bytes"
    await quorum.heal(A, B)
    assert not any(mesh.faults(*pair).cut for pair in between)


async def test_refusal_and_slowness_affect_controllers_too(quorum: Processes) -> None:
    """Two brokers refuse each other at all listeners; the slowest of their links counts."""
    await quorum.refuse(A, B)
    assert await quorum.is_refused(A, B)
    await quorum.mesh.accept(A, "controller-2")
    assert not await quorum.is_refused(A, B), "one of the links still accepts"
    assert quorum.link_faults(A, B).refused
    await quorum.accept(A, B)
    assert not quorum.link_faults(A, B).refused
    await quorum.slow(A, B, 0.1)
    assert quorum.mesh.faults(A, "controller-2").slowness_s == pytest.approx(0.1)
    await quorum.quicken(A, B, 0.1)
    assert quorum.link_faults(A, B).slowness_s == 0


async def test_nodes_without_a_link_cannot_be_cut(quorum: Processes) -> None:
    """A cut between nodes that no link connects is an error that names them."""
    with pytest.raises(MeshError, match="there is no link between broker-1 and zookeeper"):
        await quorum.cut(A, ZOOKEEPER)


async def test_names_have_an_address_for_each_opener(tmp_path: Path, fake_view: FakeView) -> None:
    """Every node listens at one port of its own address, and reaches others by names of its own.

    A name leads to a proxy at the port of the acceptor's listener; a node's own names lead to
    itself.
    """
    system = FakeQuorum()
    cluster = cluster_of(tmp_path, fake_view, system=system)
    await cluster.start()
    try:
        one, other = system.places[A], system.places[B]
        for listener, address in one.listens.items():
            assert address.port == other.listens[listener].port
            assert address.host != other.listens[listener].host
        assert one.names[A] == one.names["controller-1"] == one.listens["CLIENT"].host
        for end, listener in ((B, PEER_LISTENER), ("controller-2", "CONTROLLER")):
            [link] = [
                each for each in cluster.mesh.links if (each.opener, each.acceptor) == (A, end)
            ]
            assert link.listens == Address(one.names[end], other.listens[listener].port)
            assert link.upstream == other.listens[listener]
        assert one.names[B] != other.names[A]
        assert "formatted" in (tmp_path / "run" / "nodes" / A / "log.txt").read_text()
        assert cluster.unexpected_exits == []
    finally:
        await cluster.stop()


async def test_a_first_command_that_fails_fails_the_start(
    tmp_path: Path, fake_view: FakeView
) -> None:
    """The error names the node, the status and the last line of the command."""
    system = FakeQuorum(first="import sys; sys.exit('bad storage')")
    with pytest.raises(NodeError, match=r"broker-1 could not be set up \(status 1\): bad storage"):
        await cluster_of(tmp_path, fake_view, system=system).start()
    assert list((tmp_path / "state").iterdir()) == []


async def test_a_first_command_that_hangs_is_killed(tmp_path: Path, fake_view: FakeView) -> None:
    """A first command that has not ended at the time limit of the start is killed."""
    system = FakeQuorum(first="import signal; signal.pause()")
    system.start_timeout_s = 0.5
    with pytest.raises(ClusterError, match="not ready after"):
        await cluster_of(tmp_path, fake_view, system=system).start()
    assert list((tmp_path / "state").iterdir()) == []


async def test_the_first_broker_can_be_the_controller(tmp_path: Path, fake_view: FakeView) -> None:
    """With ``controller_first`` no other broker is started before the first is the controller."""
    cluster = cluster_of(tmp_path, fake_view, options={CONTROLLER_FIRST: True})
    seen: list[tuple[bool, bool]] = []

    class ElectingView(FakeView):
        async def controller(self) -> NodeId | None:
            seen.append((await cluster.is_running(A), await cluster.is_running(B)))
            return A if len(seen) >= 3 else None

    electing = ElectingView()
    cluster._make_view = lambda _: electing
    await cluster.start()
    try:
        assert seen == [(True, False)] * 3
        assert await cluster.is_running(B)
    finally:
        await cluster.stop()
