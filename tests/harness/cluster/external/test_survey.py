"""The nodes of a cluster follow from what it reports and from the cluster file."""

import asyncio
from pathlib import Path

import pytest

from harness.cluster.address import Address
from harness.cluster.external import compose
from harness.cluster.external import survey as survey_
from harness.cluster.external.cluster_file import BadClusterFile
from harness.cluster.external.survey import Unreachable, survey
from model.layout import Layout
from tests.harness.cluster.external.conftest import FakeCluster, loaded, surveyed
from tests.harness.cluster.external.fake_docker import FakeDocker, node

BROKERS = ("broker-1", "broker-2", "broker-3")


def test_zookeeper_counts_if_the_file_names_it(tmp_path: Path) -> None:
    assert surveyed(tmp_path, "").layout == Layout(BROKERS)
    found = surveyed(tmp_path, "[nodes.zookeeper]\naddress = 'z:2181'\n[nodes.broker-2]")
    assert found.layout == Layout(BROKERS, zookeepers=("zookeeper",))
    assert found.address("zookeeper") == Address("z", 2181)
    assert found.address("broker-2") == Address("h", 9002)
    assert found.address("controller-4") is None


def test_controllers(tmp_path: Path) -> None:
    """Voters that are brokers are roles of these; others count if the file names them."""
    combined = surveyed(tmp_path, "", mode="kraft", voters=(1, 2))
    assert combined.layout == Layout(
        BROKERS, controllers=("controller-1", "controller-2"), combined=True
    )
    separate = surveyed(tmp_path, "[nodes.controller-9]", mode="kraft", voters=(8, 9))
    assert separate.layout == Layout(BROKERS, controllers=("controller-9",))


def test_a_broker_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(BadClusterFile, match=r"nodes\.broker-4: the cluster has broker-1, "):
        surveyed(tmp_path, "[nodes.broker-4]")


def test_a_label_of_a_broker_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = FakeDocker(node("broker-1"), node("broker-4"))
    monkeypatch.setattr(compose, "connect", lambda user: client)
    with pytest.raises(
        BadClusterFile, match=r"faultline.node = broker-4 of the container kafka_broker-4_1: the"
    ):
        surveyed(tmp_path, '[compose]\nproject = "kafka"')
    client.state("id-broker-4")["Running"] = False
    with pytest.raises(BadClusterFile, match="kafka_broker-4_1 of broker-4 does not run"):
        surveyed(tmp_path, '[compose]\nproject = "kafka"')


@pytest.mark.parametrize(
    ("mode", "broker", "seconds"),
    [
        ("kraft", {"broker.session.timeout.ms": "3000"}, 3.0),
        ("kraft", {"zookeeper.session.timeout.ms": "3000"}, 9.0),
        ("zookeeper", {"zookeeper.session.timeout.ms": "6000"}, 6.0),
        ("zookeeper", {}, 18.0),
    ],
)
def test_session_timeout(tmp_path: Path, mode: str, broker: dict[str, str], seconds: float) -> None:
    """The reported timeout counts, and otherwise Kafka's default in this mode."""
    assert surveyed(tmp_path, "", mode=mode, broker=broker).session_timeout_s == seconds


async def test_a_cluster_is_asked_once(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A survey works inside an event loop, too, and is kept for the same file."""
    monkeypatch.setattr(survey_, "_SURVEYS", {})
    asked = survey_.survey
    file = loaded(tmp_path, f"bootstrap = {cluster.bootstrap}")
    found = await asyncio.to_thread(asked, file)
    assert found.layout.brokers == ("broker-1", "broker-2")
    monkeypatch.setattr(survey_, "survey", lambda loaded: found)
    assert survey_.surveyed(file) is found
    monkeypatch.setattr(survey_, "survey", lambda loaded: None)
    assert survey_.surveyed(file) is found


async def test_no_broker_answers(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.close()
    file = loaded(tmp_path, f"bootstrap = {cluster.bootstrap}")
    with pytest.raises(Unreachable, match="no broker answers at 127"):
        survey(file)
