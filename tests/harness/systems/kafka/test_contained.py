"""The commands of nodes in containers contain all their settings."""

from pathlib import Path, PurePosixPath

import javaproperties

from harness.cluster.address import Address
from harness.cluster.system import Place
from harness.systems.kafka.system import Kafka
from model.plan import Plan
from model.roles import ZOOKEEPER

DATA = PurePosixPath("/data")


def test_zookeeper_listens_and_keeps_its_data(tmp_path: Path) -> None:
    """ZooKeeper's command contains its address, its data and the tick."""
    place = Place(ZOOKEEPER, tmp_path, DATA, {ZOOKEEPER: Address("0.0.0.0", 2181)}, {}, {})
    assert Kafka().contained(place, Plan()).command == [
        *("python3", "-m", "broker_impl.zookeeper", "--listen", "0.0.0.0:2181"),
        *("--data", "/data", "--tick-ms", "500", "--connections-max", "0"),
    ]


def test_a_broker_s_settings_are_words_of_its_command(tmp_path: Path) -> None:
    """The command contains the settings and mutants; a file on this machine has the same."""
    client = {"CLIENT": Address("0.0.0.0", 9091)}
    links = {ZOOKEEPER: Address("toxiproxy", 20005), "broker-2": Address("toxiproxy", 20006)}
    place = Place("broker-1", tmp_path, DATA, client, client, links)
    plan = Plan(brokers=2, broker={"num.partitions": "7"}, mutants=("one",))
    command = Kafka().contained(place, plan).command
    assert command is not None
    assert Kafka().image(place.node, plan) is None
    assert command[:3] == ["python3", "-m", "broker_impl"]
    assert command[-2:] == ["--mutant", "one"]
    words = command[3:-2]
    assert set(words[::2]) == {"--set"}
    named = dict(word.split("=", 1) for word in words[1::2])
    assert named == javaproperties.loads((tmp_path / "server.properties").read_text())
    assert named["listeners"] == "CLIENT://0.0.0.0:9091"
    assert named["zookeeper.connect"] == "toxiproxy:20005"
    assert named["faultline.peer.2"] == "toxiproxy:20006"
    assert (named["log.dirs"], named["num.partitions"]) == ("/data", "7")
