"""The nodes of a compose project are its labelled containers."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cluster.address import Address
from harness.cluster.containers.engine import EngineError
from harness.cluster.external import cluster_file, compose
from harness.cluster.external.compose import BadProject, Compose
from tests.harness.cluster.external.fake_docker import (
    FakeDocker,
    container,
    node,
    publishes,
)


@pytest.mark.parametrize(
    ("folder", "text", "name"),
    [
        ("My Kafka.test", "services: {}", "mykafkatest"),
        ("_x", "services: {}", "x"),
        ("x", "# a file\nname: other-1 # a comment\n", "other-1"),
        ("x", "name: 'quoted'\n", "quoted"),
        ("x", "services:\n  name: nested\n", "x"),
    ],
)
def test_name_of_a_project(tmp_path: Path, folder: str, text: str, name: str) -> None:
    """Compose takes the top-level name, or derives one from the folder of its file."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "compose.yml").write_text(text)
    assert compose.project_of(Compose(file=f"{folder}/compose.yml"), tmp_path) == name
    assert compose.project_of(Compose(project="p", file="none.yml"), tmp_path) == "p"


def test_without_file_the_folder_counts(tmp_path: Path) -> None:
    folder = tmp_path / "Kafka"
    folder.mkdir()
    assert compose.project_of(Compose(), folder) == "kafka"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (Compose(file="none.yml"), "none.yml: No such file"),
        (Compose(file="variable.yml"), "its name has variables; name the project"),
        (Compose(project="A B"), "project: 'A B' is not a name that compose accepts"),
    ],
)
def test_no_name(tmp_path: Path, table: Compose, why: str) -> None:
    (tmp_path / "variable.yml").write_text("name: kafka-${STAGE}\n")
    with pytest.raises(BadProject, match=why):
        compose.project_of(table, tmp_path)


def test_nodes() -> None:
    """Labelled containers are nodes, also those that do not run; others are not."""
    stopped = node("broker-2")
    stopped["NetworkSettings"]["Networks"]["kafka_default"]["IPAddress"] = ""
    client = FakeDocker(
        stopped,
        node("broker-1"),
        container("web"),
        node("broker-3", **{"com.docker.compose.oneoff": "True"}),
        node("broker-4", **{"com.docker.compose.project": "other"}),
    )
    found = compose.nodes(client, "kafka")
    assert list(found) == ["broker-1", "broker-2"]
    first = found["broker-1"]
    assert (first.container, first.identity) == ("kafka_broker-1_1", "id-broker-1")
    assert first.networks == {"kafka_default": ("172.20.0.1",)}
    assert first.addresses == ("172.20.0.1",)
    assert found["broker-2"].addresses == ()
    assert found["broker-2"].networks == {"kafka_default": ()}


@pytest.mark.parametrize(
    ("name", "labels", "ports", "address"),
    [
        ("broker-1", {}, {"9092/tcp": ("", "9092")}, None),  # as it advertises itself
        ("broker-1", {"faultline.address": "h:1"}, {}, Address("h", 1)),
        ("zookeeper", {}, {"2181/tcp": ("0.0.0.0", "2181")}, Address("127.0.0.1", 2181)),
        ("zookeeper", {}, {"2181/tcp": ("10.0.0.1", "22")}, Address("10.0.0.1", 22)),
        ("zookeeper", {}, {"8080/tcp": ("", "8080")}, None),  # its web server
        ("zookeeper", {}, {"2181/tcp": ("", "")}, None),  # another port after each start
        ("zookeeper", {}, {"2181/udp": ("", "2181")}, None),
        ("controller-1", {}, {"9093/tcp": ("", "1")}, Address("127.0.0.1", 1)),
        ("controller-1", {}, {"9093/tcp": ("", "1"), "9/tcp": ("", "2")}, None),  # ambiguous
    ],
)
def test_addresses(
    name: str, labels: dict[str, str], ports: dict[str, Any], address: Address | None
) -> None:
    """A node's address is that of the label, or of the only published port that can be its."""
    client = FakeDocker(publishes(node(name, **labels), ports))
    assert compose.nodes(client, "kafka")[name].address == address


def test_ports() -> None:
    """Exposed and published TCP ports are known, in order."""
    inspected = publishes(node("broker-1"), {"9092/tcp": ("", "1"), "53/udp": ("", "2")})
    inspected["Config"]["ExposedPorts"] = {"29092/tcp": {}, "9092/tcp": {}}
    assert compose.nodes(FakeDocker(inspected), "kafka")["broker-1"].ports == (9092, 29092)


@pytest.mark.parametrize("mode", ["hosting_default", "none-of-it", "bridge"])
def test_a_network_may_have_any_name(mode: str) -> None:
    """Only the engine's own words mean that a container has no network of its own."""
    inspected = node("broker-1")
    inspected["HostConfig"]["NetworkMode"] = mode
    assert compose.nodes(FakeDocker(inspected), "kafka")["broker-1"].has_network


@pytest.mark.parametrize("mode", ["host", "none", "container:abc"])
def test_a_shared_network(mode: str) -> None:
    inspected = node("broker-1")
    inspected["HostConfig"]["NetworkMode"] = mode
    assert not compose.nodes(FakeDocker(inspected), "kafka")["broker-1"].has_network


LISTENERS = {"9092/tcp": ("", "39092"), "19092/tcp": ("", "39192")}


def test_clients_have_another_listener() -> None:
    labels = {"faultline.address": "127.0.0.1:39192", "faultline.clients-port": "9092"}
    client = FakeDocker(publishes(node("broker-1", **labels), LISTENERS))
    assert compose.nodes(client, "kafka")["broker-1"].clients_port == 9092


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({"faultline.node": "kafka1"}, "faultline.node = 'kafka1': a node is called broker-ID"),
        ({"faultline.address": "x"}, "faultline.address = 'x' must be host:port"),
        ({"faultline.clients-port": "x"}, "faultline.clients-port = 'x' must be a port"),
        ({"faultline.clients-port": "9092"}, "needs faultline.address, the address of another"),
        (
            {"faultline.clients-port": "9092", "faultline.address": "127.0.0.1:39092"},
            "name the same listener, so a broker that clients do not reach could not be observed",
        ),
        (
            {"faultline.clients-port": "9092", "faultline.address": "172.20.0.1:9092"},
            "name the same listener",
        ),
    ],
)
def test_wrong_labels(labels: dict[str, str], why: str) -> None:
    """Each mistake is one sentence that begins with the container."""
    client = FakeDocker(publishes(node("broker-1", **labels), LISTENERS))
    with pytest.raises(BadProject) as refused:
        compose.nodes(client, "kafka")
    assert str(refused.value).startswith("the container kafka_broker-1_1: ")
    assert why in str(refused.value)


def test_two_containers_with_one_name() -> None:
    client = FakeDocker(node("broker-1"), container("b", **{"faultline.node": "broker-1"}))
    with pytest.raises(
        BadProject, match=r"broker-1: the containers kafka_broker-1_1 and kafka_b_1 have the same"
    ):
        compose.nodes(client, "kafka")


@pytest.mark.parametrize(
    ("project", "why"),
    [
        ("kafka", "none of the 1 containers of the project kafka has the label faultline.node"),
        ("other", "no containers of a project other; it has those of kafka"),
    ],
)
def test_no_nodes(project: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project without nodes is refused, and the engine's client is closed."""
    client = FakeDocker(container("web"))
    monkeypatch.setattr(compose, "connect", lambda user: client)
    with pytest.raises(BadProject, match=why):
        compose.read(project)
    assert client.is_closed


def test_an_engine_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from docker.errors import DockerException

    client = FakeDocker()

    def fail(**how: Any) -> Any:
        raise DockerException("out of order")

    monkeypatch.setattr(client, "containers", fail)
    monkeypatch.setattr(compose, "connect", lambda user: client)
    with pytest.raises(EngineError, match="the container engine: out of order"):
        compose.read("kafka")


EXAMPLES = Path(__file__).parents[4] / "examples" / "external"


def test_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The labels of the example name three brokers, whose links of clients can be cut."""
    services = yaml.safe_load((EXAMPLES / "docker-compose.yml").read_text())["services"]
    containers = []
    for service in services.values():
        inspected = node(service["labels"]["faultline.node"])
        inspected["Config"]["Labels"] |= {
            **service["labels"],
            "com.docker.compose.project": "external",
        }
        bindings = [each.split(":") for each in service["ports"]]
        containers.append(
            publishes(inspected, {f"{inside}/tcp": (host, at) for host, at, inside in bindings})
        )
        advertised = service["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
        own = [f"OBSERVER://{service['labels']['faultline.address']}"]
        assert [each for each in advertised if each.startswith("OBSERVER")] == own
        number = service["environment"]["KAFKA_NODE_ID"]
        assert service["labels"]["faultline.node"] == f"broker-{number}"
    monkeypatch.setattr(compose, "connect", lambda user: FakeDocker(*containers))
    loaded = cluster_file.load(EXAMPLES / "compose.toml")
    assert list(loaded.containers) == ["broker-1", "broker-2", "broker-3"]
    assert {each.clients_port for each in loaded.containers.values()} == {9092}
    bootstrap = [f"127.0.0.1:{each['ports'][0].split(':')[1]}" for each in services.values()]
    assert loaded.content.bootstrap == bootstrap
    assert loaded.observed == tuple(Address("127.0.0.1", 29192 + more) for more in range(3))
