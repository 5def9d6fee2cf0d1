"""The configuration of Apache Kafka's nodes, in ZooKeeper mode and in both modes of KRaft."""

from pathlib import Path, PurePath

import pytest

from harness.cluster.address import Address
from harness.cluster.system import Place
from harness.systems.apache_kafka import configuration
from model.layout import Layout, with_kraft, with_zookeeper
from model.plan import Plan
from model.roles import NodeId

PLAN = Plan(brokers=3, broker={"num.partitions": "7"})
COMBINED, SEPARATE = with_kraft(3, 2, combined=True), with_kraft(3, 2, combined=False)
CLIENT, PEER, CONTROLLER = 9092, 9093, 9094


def place_of(node: NodeId, *listeners: str, links: dict[NodeId, Address] | None = None) -> Place:
    """Return a place whose listeners have the ports of this module, behind proxies at 127.9.*."""
    ports = {"CLIENT": CLIENT, "REPLICATION": PEER, "CONTROLLER": CONTROLLER, "CLIENT_ALICE": 9095}
    return Place(
        node=node,
        folder=Path("/run") / node,
        data=PurePath("/data") / node,
        listens={name: Address("127.8.0.1", ports[name]) for name in listeners},
        advertised={name: Address("127.9.0.1", 100 + ports[name]) for name in listeners},
        links=links or {},
    )


def broker(
    layout: Layout, *more: str, plan: Plan = PLAN, node: NodeId = "broker-2"
) -> dict[str, str]:
    links = {
        **{name: Address("127.0.0.1", 21 + at) for at, name in enumerate(layout.zookeepers)},
        **{name: Address("127.8.2.4", CONTROLLER) for name in layout.controllers},
    }
    place = place_of(node, "CLIENT", "REPLICATION", *more, links=links)
    return configuration.of_broker(place, plan, layout)


def test_a_broker_binds_its_address_and_advertises_proxies() -> None:
    """Clients reach a broker through its proxies, and brokers reach each other by name."""
    settings = broker(with_zookeeper(3), "CLIENT_ALICE")
    assert settings["listeners"] == (
        "CLIENT://127.8.0.1:9092,REPLICATION://127.8.0.1:9093,CLIENT_ALICE://127.8.0.1:9095"
    )
    assert set(settings["advertised.listeners"].split(",")) == {
        "CLIENT://127.9.0.1:9192",
        "CLIENT_ALICE://127.9.0.1:9195",
        "REPLICATION://broker-2:9093",
    }
    assert settings["listener.security.protocol.map"] == (
        "CLIENT:PLAINTEXT,CLIENT_ALICE:PLAINTEXT,REPLICATION:PLAINTEXT"
    )
    assert settings["inter.broker.listener.name"] == "REPLICATION"
    assert settings["log.dirs"] == "/data/broker-2"


def test_a_broker_with_zookeeper() -> None:
    """In ZooKeeper mode a broker has the links to all servers, and no setting of KRaft."""
    settings = broker(with_zookeeper(3, 3))
    assert settings["broker.id"] == "2"
    assert settings["zookeeper.connect"] == "127.0.0.1:21,127.0.0.1:22,127.0.0.1:23"
    assert not {"node.id", "process.roles", "controller.quorum.voters"} & set(settings)


def test_the_settings_of_the_plan_win() -> None:
    """A plan overrides defaults, and what the run would set."""
    plan = Plan(brokers=3, broker={"min.insync.replicas": "1", "zookeeper.connect": "x"})
    settings = broker(with_zookeeper(3), plan=plan)
    assert (settings["min.insync.replicas"], settings["zookeeper.connect"]) == ("1", "x")


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 2), (5, 3, 2)])
def test_topics_have_as_many_replicas_as_brokers_allow(
    brokers: int, replicas: int, in_sync: int
) -> None:
    """Topics, also the internal ones, have up to three replicas, two of them in sync."""
    settings = broker(with_zookeeper(brokers), plan=Plan(brokers=brokers), node="broker-1")
    for name in (
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
    ):
        assert settings[name] == str(replicas)
    for name in ("min.insync.replicas", "transaction.state.log.min.isr"):
        assert settings[name] == str(in_sync)


def test_a_broker_that_is_a_controller() -> None:
    """A combined node binds the controller's listener and does not advertise it."""
    settings = broker(COMBINED, "CONTROLLER")
    assert settings["node.id"] == "2"
    assert settings["process.roles"] == "broker,controller"
    assert settings["controller.listener.names"] == "CONTROLLER"
    assert settings["controller.quorum.voters"] == "1@controller-1:9094,2@controller-2:9094"
    assert "CONTROLLER://127.8.0.1:9094" in settings["listeners"]
    assert "CONTROLLER" not in settings["advertised.listeners"]
    assert "CONTROLLER:PLAINTEXT" in settings["listener.security.protocol.map"]
    assert settings["num.partitions"] == "7"
    assert not {"broker.id", "zookeeper.connect"} & set(settings)


def test_a_broker_beside_combined_nodes() -> None:
    """A broker without a controller knows the quorum by the port of its links to it."""
    settings = broker(COMBINED, node="broker-3")
    assert (settings["node.id"], settings["process.roles"]) == ("3", "broker")
    assert settings["controller.quorum.voters"] == "1@controller-1:9094,2@controller-2:9094"
    assert "CONTROLLER" not in settings["listeners"]
    assert "CONTROLLER:PLAINTEXT" in settings["listener.security.protocol.map"]


def test_a_broker_with_separate_controllers() -> None:
    """Separate controllers have node ids that no broker has."""
    settings = broker(SEPARATE)
    assert (settings["node.id"], settings["process.roles"]) == ("2", "broker")
    assert settings["controller.quorum.voters"] == "1001@controller-1:9094,1002@controller-2:9094"


def test_a_separate_controller() -> None:
    """A controller has its own listener only, and no setting of a broker's listeners."""
    settings = configuration.of_controller(place_of("controller-2", "CONTROLLER"), PLAN, SEPARATE)
    assert settings == {
        "listeners": "CONTROLLER://127.8.0.1:9094",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": "/data/controller-2",
        "node.id": "1002",
        "process.roles": "controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1001@controller-1:9094,1002@controller-2:9094",
        "num.partitions": "7",
    }
