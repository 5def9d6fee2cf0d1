"""The system of Apache ZooKeeper's servers, and of mixed ensembles."""

from pathlib import Path

import pytest

from harness.cluster.address import Address
from harness.cluster.system import Place
from harness.systems.apache_zookeeper.releases import PRODUCT, Release
from harness.systems.apache_zookeeper.system import ApacheZooKeeper
from harness.systems.java.lockfile import load, pinned
from model.plan import Plan

PLAN = Plan(brokers=0, options={"zookeepers": 3, "ours": 2})


def place(node: str, folder: Path) -> Place:
    ends = [f"zookeeper-{n}.{port}" for n in (1, 2, 3) for port in ("quorum", "election")]
    return Place(
        node=node,
        folder=folder,
        data=folder / "data",
        listens={
            name: Address("127.1.0.3", port)
            for name, port in (("zookeeper", 9092), ("QUORUM", 9093), ("ELECTION", 9094))
        },
        advertised={},
        links={end: Address("127.1.1.2", 9093 + end.endswith("n")) for end in ends},
        names={"zookeeper-1": "127.1.1.1", "zookeeper-2": "127.1.1.2", "zookeeper-3": "127.1.1.3"},
    )


def test_the_first_servers_of_a_mixed_ensemble_are_ours(tmp_path: Path) -> None:
    """Two of three servers run this project's program, the third runs Java with its files."""
    system = ApacheZooKeeper(Release.parse("3.9.3"))
    for node in ("zookeeper-1", "zookeeper-2"):
        assert "broker_impl.zookeeper" in system.program(place(node, tmp_path), PLAN).argv
    assert not (tmp_path / "zoo.cfg").exists()
    program = system.program(place("zookeeper-3", tmp_path), PLAN)
    assert "org.apache.zookeeper.server.quorum.QuorumPeerMain" in program.argv
    assert program.first, "the id of the server is written before its first start"
    text = (tmp_path / "zoo.cfg").read_text()
    assert "server.1=zookeeper-1:9093:9094" in text
    assert {"tickTime=500", "snapCount=2000", "commitLogCount=500"} <= {*text.splitlines()}
    assert "127.1.1.2 zookeeper-2" in (tmp_path / "hosts").read_text()


def test_servers_reach_each_other_by_name() -> None:
    """Java's servers know each other by name: each name leads to the proxy of the opener's link."""
    found = list(ApacheZooKeeper(Release.parse("3.9.3")).links(PLAN))
    between = [link for link in found if link.opener != "clients"]
    assert len(between) == 12
    assert all(link.by_name for link in between)


def test_one_of_ours_knows_the_others_by_address(tmp_path: Path) -> None:
    """This project's server reaches each other server at the address that its name has for it."""
    words = list(ApacheZooKeeper(Release.parse("3.9.3")).program(place("zookeeper-1", tmp_path),
                                                                 PLAN).argv)  # fmt: skip
    members = [words[at + 1] for at, word in enumerate(words) if word == "--server"]
    assert members[1:] == ["2=127.1.1.2:9093:9094", "3=127.1.1.3:9093:9094"]


def test_more_servers_of_ours_than_servers_are_refused() -> None:
    """The refusal names the option and the number of servers."""
    refusal = ApacheZooKeeper(Release.parse("3.9.3")).refusal(
        Plan(brokers=0, options={"zookeepers": 3, "ours": 4})
    )
    assert refusal == "options: ours=4: there are 3 servers"


@pytest.mark.parametrize("version", pinned(PRODUCT))
def test_pinned_release_has_what_its_server_needs(version: str) -> None:
    """A lock has the server of that version, and one binding of slf4j."""
    artifacts = {jar.artifact: jar.version for jar in load(version, PRODUCT).sha256}
    assert artifacts["zookeeper"] == version
    assert len({"slf4j-log4j12", "slf4j-reload4j", "logback-classic"} & artifacts.keys()) == 1
