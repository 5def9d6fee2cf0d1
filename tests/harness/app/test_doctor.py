"""The diagnosis follows from what a cluster reports."""

from pathlib import Path

import msgspec
import pytest

from harness.app import catalogue, doctor
from harness.app.refused import Refused
from harness.cluster.address import Address
from harness.cluster.external import compose
from model.cluster_facts import BrokerFacts, ClusterFacts, TopicFacts
from tests.harness.cluster.external.conftest import surveyed
from tests.harness.cluster.external.fake_docker import FakeDocker, node
from workloads import needs

BROKERS = tuple(BrokerFacts(id=number, host="a", port=9090 + number) for number in (1, 2))
OLD = ClusterFacts(
    release="0.10.2",
    mode="zookeeper",
    brokers=BROKERS,
    controller="broker-1",
    apis={11: (0, 1), 19: (0, 1), 20: (0, 0)},
    unread=("a reason",),
)
NEW = ClusterFacts(
    release="4.1",
    mode="kraft",
    cluster_id="c",
    brokers=BROKERS,
    controller="broker-2",
    voters=(1, 2),
    apis={need.key: (0, need.version) for need in sorted(needs.ALL, key=lambda n: n.version)},
    features={"transaction.version": 2},
    broker={"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
    topics={"__consumer_offsets": TopicFacts(partitions=50, replication_factor=2)},
)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("a:1, b:65535", [Address("a", 1), Address("b", 65535)]),
        ("[::1]:9092", [Address("::1", 9092)]),
    ],
)
def test_addresses(text: str, addresses: list[Address]) -> None:
    """A list of bootstrap servers has a host and a port each."""
    assert list(doctor.addresses(text)) == addresses


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,", "a:-1"])
def test_bad_addresses_are_refused(text: str) -> None:
    """An address without a host or a valid port is refused."""
    with pytest.raises(Refused, match=r"--bootstrap .*: an address must be host:port"):
        doctor.addresses(text)


def test_all_workloads_are_judged() -> None:
    """A recent release can run every workload of brokers; an old one names what it lacks for
    each."""
    recent = doctor.diagnosis(NEW)
    assert [one.name for one in recent.workloads] == [
        name for name, each in catalogue.WORKLOADS.items() if each.service == "kafka"
    ]
    assert all(one.is_possible and one.missing == () for one in recent.workloads)
    old = {one.name: one for one in doctor.diagnosis(OLD).workloads}
    assert not old["transactions"].is_possible
    assert old["transactions"].missing == (
        "idempotent producers (KIP-98, InitProducerId v0)",
        "transactions (KIP-98, AddPartitionsToTxn v0)",
    )
    features = {one.name: one for one in doctor.diagnosis(OLD).features}
    assert features["topics deleted by clients"].is_possible
    assert features["static members"].missing == ("JoinGroup v5 (KIP-345)",)


def test_warnings() -> None:
    """Settings with which acknowledged records may be lost are warnings; others are none."""
    assert doctor.diagnosis(NEW).warnings == ()
    unclean = "unclean.leader.election.enable"
    weak = msgspec.structs.replace(
        NEW,
        broker={unclean: "true", "min.insync.replicas": "1", "default.replication.factor": "1"},
        differing={unclean: {1: "true", 2: "false"}},
        topics={
            "__consumer_offsets": TopicFacts(
                partitions=50, replication_factor=1, settings={unclean: "true"}
            )
        },
    )
    assert doctor.diagnosis(weak).warnings == (
        f"{unclean} is true: elections may lose acknowledged records",
        "min.insync.replicas is 1: an acknowledged record may be on one disk only",
        "default.replication.factor is 1: topics have no second replica by default",
        "__consumer_offsets has one replica: its coordinators end with their broker",
        f"__consumer_offsets: {unclean} is true",
        f"{unclean} differs (broker 1: true, broker 2: false)",
    )


def test_text() -> None:
    """The text has what is known, in tables, and leaves out tables without rows."""
    shown = "\n".join(doctor.lines(doctor.diagnosis(NEW)))
    assert "release     about Apache Kafka 4.1" in shown
    assert "controller  broker-2; voters 1, 2" in shown
    assert "  1  a:9091" in shown
    assert "  transaction.version  2" in shown
    assert "  __consumer_offsets  50 partitions, 2 replicas" in shown
    assert "warnings:" not in shown
    old = "\n".join(doctor.lines(doctor.diagnosis(OLD)))
    assert "mode        ZooKeeper\ncluster id  unknown" in old
    assert "deletion of records                   no: needs DeleteRecords v0 (KIP-107)" in old
    assert old.endswith("not readable:\n  a reason")
    nothing = "\n".join(doctor.lines(doctor.diagnosis(ClusterFacts())))
    assert nothing.startswith("release     unknown\nmode        unknown")


def test_no_broker_answers() -> None:
    """Without a broker there is no diagnosis."""
    assert doctor.examine([Address("127.0.0.1", 1)], timeout_s=1) is None


def test_a_cluster_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cluster file, the faults that it makes possible are listed, and what others lack."""
    text = '[hooks]\nkill = ["x"]\nstart = ["x"]'
    monkeypatch.setattr(doctor, "survey_of", lambda loaded: surveyed(tmp_path, text))
    file = tmp_path / "any.toml"
    file.write_text('bootstrap = ["h:1"]')
    diagnosed = doctor.examine_file(file)
    assert diagnosed is not None
    faults = {one.name: one for one in diagnosed.faults}
    assert faults["kill"].is_possible
    assert faults["pause"].missing == ("the cluster file has no hook for pause and resume",)
    lines = doctor.lines(diagnosed)
    assert "pause no: the cluster file has no hook for pause and resume" in [
        " ".join(line.split()) for line in lines
    ]


def test_a_compose_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes that were found by labels are listed, and a wrong label is refused."""
    listeners = {"faultline.address": "h:19092", "faultline.clients-port": "9092"}
    client = FakeDocker(node("broker-1", **listeners), node("zookeeper"))
    monkeypatch.setattr(compose, "connect", lambda user: client)
    text = '[compose]\nproject = "kafka"'
    monkeypatch.setattr(doctor, "survey_of", lambda loaded: surveyed(tmp_path, text))
    file = tmp_path / "any.toml"
    file.write_text(f'bootstrap = ["h:1"]\n{text}')
    diagnosed = doctor.examine_file(file)
    assert diagnosed is not None
    assert [one.node for one in diagnosed.containers] == ["broker-1", "zookeeper"]
    lines = doctor.lines(diagnosed)
    start = lines.index("nodes found by labels:")
    assert lines[start + 1 : start + 3] == [
        "  broker-1   container kafka_broker-1_1   h:19092     clients at port 9092",
        "  zookeeper  container kafka_zookeeper_1  no address",
    ]
    client.all["id-broker-1"]["Config"]["Labels"]["faultline.node"] = "one"
    with pytest.raises(
        Refused, match=r"kafka_broker-1_1: faultline.node = 'one': a node is called"
    ):
        doctor.examine_file(file)


def test_a_cluster_file_without_a_cluster(tmp_path: Path) -> None:
    """An unreachable cluster has no diagnosis, and a wrong file is refused."""
    file = tmp_path / "any.toml"
    file.write_text('bootstrap = ["127.0.0.1:1"]')
    assert doctor.examine_file(file) is None
    file.write_text("bootstrap = []")
    with pytest.raises(Refused, match=r"any\.toml: "):
        doctor.examine_file(file)
