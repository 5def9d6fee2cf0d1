"""This project's own broker and ZooKeeper, as a system."""

import random
import sys
from pathlib import Path

import javaproperties
import pytest

from harness.cluster import links, mutants, settings
from harness.cluster.address import Address
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.system import Place
from harness.systems.kafka.configuration import broker_settings
from harness.systems.kafka.system import Kafka
from model import roles
from model.layout import with_zookeeper
from model.plan import Plan
from model.roles import ZOOKEEPER
from nemesis.catalogue import NEMESES

A, B = roles.broker(1), roles.broker(2)
PLAN = Plan(
    brokers=2,
    broker={"num.partitions": "7"},
    mutants=("one", "two"),
    options={"client_listeners": ["alice"]},
)
CLIENT, PROXY, PEER, LINK, KEEPER = (Address("127.0.0.1", port) for port in range(31, 36))


def broker_place(folder: Path) -> Place:
    return Place(
        node=A,
        folder=folder,
        data=folder / "data",
        listens={"CLIENT": CLIENT, "REPLICATION": PEER},
        advertised={"CLIENT": PROXY, "REPLICATION": PEER},
        links={B: LINK, ZOOKEEPER: KEEPER},
    )


def test_nodes_listeners_and_links() -> None:
    """Brokers and one ZooKeeper, with the listeners and the links that the plan asks for."""
    system = Kafka()
    assert system.layout(PLAN) == with_zookeeper(2)
    assert system.listeners(ZOOKEEPER, PLAN) == (ZOOKEEPER,)
    assert system.listeners(A, PLAN) == ("CLIENT", "CLIENT_ALICE", "REPLICATION")
    assert system.listeners(A, Plan()) == ("CLIENT", "REPLICATION")
    assert list(system.links(PLAN)) == list(links.between(with_zookeeper(2), ["alice"]))
    assert not any(link.by_name for link in system.links(PLAN))


def test_a_broker_s_program_has_its_settings_and_mutants(tmp_path: Path) -> None:
    """The command of a broker names the file of its settings, and plants the plan's bugs."""
    program = Kafka().program(broker_place(tmp_path), PLAN)
    path = tmp_path / "server.properties"
    assert list(program.argv) == [
        *(sys.executable, "-m", "broker_impl", str(path), "--reuse-port"),
        *("--mutant", "one", "--mutant", "two"),
    ]
    assert (program.environment, program.first) == ({}, ())
    written = javaproperties.loads(path.read_text())
    assert written == broker_settings(broker_place(tmp_path), PLAN)


def test_settings_of_a_broker(tmp_path: Path) -> None:
    """A broker binds its listeners, advertises proxies and connects to its links."""
    found = broker_settings(broker_place(tmp_path), PLAN)
    assert found["broker.id"] == "1"
    assert found["listeners"] == f"CLIENT://{CLIENT},REPLICATION://{PEER}"
    assert found["advertised.listeners"] == f"CLIENT://{PROXY},REPLICATION://{PEER}"
    assert found["zookeeper.connect"] == str(KEEPER)
    assert found["faultline.peer.2"] == str(LINK)
    assert found["log.dirs"] == str(tmp_path / "data")
    assert found["num.partitions"] == "7", "the plan's settings win"


def test_zookeeper_s_program(tmp_path: Path) -> None:
    """The command of ZooKeeper contains its address, its data and the tick."""
    place = Place(ZOOKEEPER, tmp_path, tmp_path / "data", {ZOOKEEPER: KEEPER}, {}, {})
    assert list(Kafka().program(place, PLAN).argv) == [
        *(sys.executable, "-m", "broker_impl.zookeeper", "--listen", str(KEEPER)),
        *("--data", str(tmp_path / "data"), "--tick-ms", str(settings.TICK_MS)),
        *("--connections-max", "0", "--reuse-port"),
    ]
    assert list(tmp_path.iterdir()) == [], "ZooKeeper has no file of settings"


async def test_its_state_is_read_from_zookeeper() -> None:
    """The view of the metadata is that of the ZooKeeper server."""
    view = Kafka().view({A: CLIENT, ZOOKEEPER: KEEPER}, random.Random(1))
    assert isinstance(view, View)
    await view.close()


@pytest.mark.parametrize(("name", "value"), [("log.dir", "/tmp/x"), ("num.partitions", "many")])
def test_settings_that_brokers_would_not_apply_are_refused(name: str, value: str) -> None:
    """A plan whose settings brokers would reject or ignore is refused, with their names."""
    refusal = Kafka().refusal(Plan(broker={name: value}))
    assert refusal is not None
    assert refusal.startswith(f"--set broker.{name}={value}: ")
    assert Kafka().refusal(PLAN) is None


def test_session_timeout_is_the_broker_s() -> None:
    """A broker's session lasts as long as its setting says."""
    broker = {"zookeeper.session.timeout.ms": "4500"}
    assert Kafka().session_timeout_s(Plan()) == 2.0
    assert Kafka().session_timeout_s(Plan(broker=broker)) == 4.5


async def test_all_its_bugs_and_faults_are_offered(tmp_path: Path) -> None:
    """Every mutant can be planted and every fault applied; it needs no preparation."""
    system, said = Kafka(), list[str]()
    assert dict(system.mutants()) == dict(mutants.catalogue("kafka"))
    assert system.mutants()
    assert all(system.offers(package) for package in NEMESES.values())
    assert (dict(system.options), system.versions) == (
        {"zookeepers": 1, "observers": 0, "security": "none"},
        {},
    )
    assert system.reuses_ports
    await system.prepare(PLAN, said.append)
    assert said == []
