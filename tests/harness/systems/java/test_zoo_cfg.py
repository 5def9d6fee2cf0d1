"""The configuration files of Apache ZooKeeper's servers."""

from pathlib import Path, PurePath

from harness.cluster.address import Address
from harness.cluster.system import Place
from harness.systems.java import zoo_cfg
from model.layout import with_zookeeper
from model.roles import NodeId


def zookeeper(node: NodeId, servers: int, observers: int = 0) -> list[str]:
    listens = {"zookeeper": 2181, "QUORUM": 2888, "ELECTION": 3888}
    names = list(listens) if servers > 1 else ["zookeeper"]
    place = Place(
        node=node,
        folder=Path("/run"),
        data=PurePath("/data"),
        listens={name: Address("127.8.0.4", listens[name]) for name in names},
        advertised={},
        links={},
    )
    text = zoo_cfg.settings_of(place, with_zookeeper(3, servers, observers), 500)
    assert text.endswith("\n")
    return text.splitlines()


def test_zookeeper_alone_is_no_member_of_a_quorum() -> None:
    """The only server has its address, data and tick, and lists no servers."""
    lines = zookeeper("zookeeper", 1)
    assert {
        *("tickTime=500", "dataDir=/data", "clientPort=2181", "clientPortAddress=127.8.0.4"),
        *("4lw.commands.whitelist=*", "admin.enableServer=false"),
    } <= set(lines)
    assert not any(line.startswith(("server.", "initLimit", "syncLimit")) for line in lines)


def test_servers_of_an_ensemble_know_each_other_by_name() -> None:
    """Each of three servers lists all three with the same ports, and itself among them."""
    lines = zookeeper("zookeeper-2", 3)
    assert [line for line in lines if line.startswith("server.")] == [
        f"server.{number}=zookeeper-{number}:2888:3888" for number in (1, 2, 3)
    ]
    assert any(line.startswith("initLimit=") for line in lines)
    assert any(line.startswith("syncLimit=") for line in lines)
    assert "quorumListenOnAllIPs=false" in lines


def test_an_observer_says_so_in_its_own_file_and_in_all_lists() -> None:
    """The last server observes: its file names its kind, and every file lists it as an observer."""
    observer = zookeeper("zookeeper-3", 3, observers=1)
    assert "peerType=observer" in observer
    assert "server.3=zookeeper-3:2888:3888:observer" in observer
    voter = zookeeper("zookeeper-1", 3, observers=1)
    assert not any(line.startswith("peerType") for line in voter)
    assert "server.3=zookeeper-3:2888:3888:observer" in voter
