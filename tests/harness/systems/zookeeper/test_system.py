"""The system of this project's ZooKeeper servers."""

from pathlib import Path

import pytest

from broker_impl.zookeeper.__main__ import parser
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.system import Place
from harness.systems.zookeeper.system import ZooKeeper
from model.plan import Plan
from model.roles import CLIENTS

PLAN = Plan(brokers=0, options={"zookeepers": 3, "observers": 1})


def test_clients_and_servers_have_links() -> None:
    """Clients reach every server, and the servers each other at two ports."""
    found = list(ZooKeeper().links(PLAN))
    servers = ZooKeeper().layout(PLAN).zookeepers
    assert [link for link in found if link.opener == CLIENTS] == [
        LinkSpec(CLIENTS, server, "zookeeper") for server in servers
    ]
    assert sum(link.opener == "zookeeper-1" for link in found) == 4


def test_a_server_knows_the_others_by_its_links(tmp_path: Path) -> None:
    """The command names each other server at the proxies of its links, and which one observes."""
    link = {
        end: Address("127.0.0.1", port)
        for end, port in {
            "zookeeper-1.quorum": 31, "zookeeper-1.election": 32,
            "zookeeper-3.quorum": 33, "zookeeper-3.election": 34,
        }.items()
    }  # fmt: skip
    own = {"zookeeper": 1, "QUORUM": 2, "ELECTION": 3}
    listens = {name: Address("127.0.0.1", port) for name, port in own.items()}
    place = Place("zookeeper-2", tmp_path, tmp_path / "data", listens, {}, link)
    words = list(ZooKeeper().program(place, PLAN).argv)
    assert words[words.index("--id") + 1] == "2"
    assert [words[at + 1] for at, word in enumerate(words) if word == "--server"] == [
        "1=127.0.0.1:31:32",
        "2=zookeeper-2:2:3",
        "3=127.0.0.1:33:34:observer",
    ]


def test_its_servers_can_have_planted_bugs(tmp_path: Path) -> None:
    """Each bug of ZooKeeper can be planted, none of a broker; a server's command names it."""
    system = ZooKeeper()
    assert "zk-quorum-of-half" in system.mutants()
    assert all(name.startswith("zk-") for name in system.mutants())
    place = Place("zookeeper", tmp_path, tmp_path, {"zookeeper": Address("h", 1)}, {}, {})
    plan = Plan(brokers=0, options={"zookeepers": 1}, mutants=("zk-partial-multi",))
    assert list(system.program(place, plan).argv)[-2:] == ["--mutant", "zk-partial-multi"]
    command = system.contained(place, plan).command
    assert command is not None
    assert list(command)[-2:] == ["--mutant", "zk-partial-multi"]


def test_its_servers_have_the_settings_of_the_plan(tmp_path: Path) -> None:
    """Each setting is an argument, the one that the plan chooses or the default."""
    place = Place("zookeeper", tmp_path, tmp_path, {"zookeeper": Address("h", 1)}, {}, {})
    plan = Plan(brokers=0, options={"zookeepers": 1, "tick_ms": 100, "snap_count": 7})
    arguments = parser().parse_args(list(ZooKeeper().program(place, plan).argv)[3:])
    assert (arguments.tick_ms, arguments.snap_count, arguments.commit_log_count) == (100, 7, 500)
    command = ZooKeeper().contained(place, plan).command
    assert command is not None
    assert parser().parse_args(list(command)[3:]).snap_count == 7


def test_faults_are_drawn_for_the_sessions_of_the_plan() -> None:
    """The timeout is that of the workload's clients."""
    assert ZooKeeper().session_timeout_s(PLAN) == 4.0
    assert ZooKeeper().session_timeout_s(Plan(options={"session_timeout_s": 0.5})) == 0.5


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"zookeepers": 10}, "zookeepers=10: must be at most 9"),
        ({"zookeepers": 3, "observers": 3}, "at least one server must vote"),
        ({"zookeepers": 0}, "must be a whole number of at least 1"),
        ({"tick_ms": 0.5}, "tick_ms=0.5: must be a whole number of at least 20"),
        ({"snap_count": 1}, "snap_count=1: must be a whole number of at least 2"),
    ],
)
def test_impossible_ensembles_are_refused(options: dict[str, int], why: str) -> None:
    """The refusal names the option, and what it may be."""
    refusal = ZooKeeper().refusal(Plan(brokers=0, options=options))
    assert refusal is not None
    assert why in refusal
    assert ZooKeeper().refusal(PLAN) is None
