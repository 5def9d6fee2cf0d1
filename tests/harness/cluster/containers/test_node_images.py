"""Which image each node has: this project's own, one that is built, or one that the user names."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from harness.cluster.containers import base_image, build, image, node_images
from harness.cluster.containers.engine import EngineError
from harness.cluster.containers.image import Images
from harness.cluster.system import Image, ImageSource
from harness.systems.apache_kafka import contained
from harness.systems.kafka.system import Kafka
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId

OWN = Images("faultline-node:1", "faultline-toxiproxy:1")
JAVA = base_image.JAVA.made


class Engine:
    """An engine's local images, without a registry."""

    def __init__(self, *local: str) -> None:
        self.local = list(local)
        self.api = self
        self.built: list[tuple[str, dict[str, str]]] = []

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in self.local:
            raise ImageNotFound(f"no {name}")
        return {}

    def pull(self, repository: str, **_: Any) -> None:
        raise APIError("500", SimpleNamespace(reason="x", status_code=500), "no such host")

    def build(self, *, tag: str, buildargs: dict[str, str], **_: Any) -> list[dict[str, str]]:
        self.built.append((tag, buildargs))
        self.local.append(tag)
        return [{"stream": "Step 1"}]


class Mixed(Kafka):
    """A system whose brokers have other images than its ZooKeeper."""

    def __init__(self, of_brokers: Image) -> None:
        self._of_brokers = of_brokers

    def image(self, node: NodeId, plan: Plan) -> Image:
        return None if node == ZOOKEEPER else self._of_brokers


@pytest.fixture(autouse=True)
def own_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(image, "ensure", lambda client, say: OWN)
    monkeypatch.setattr(build, "WORK", tmp_path / "work")
    monkeypatch.delenv(base_image.JAVA.variable, raising=False)


def ensured(engine: Engine, of_brokers: Image, said: list[str]) -> node_images.NodeImages:
    return node_images.ensure(engine, Mixed(of_brokers), Plan(brokers=2), said.append)


def source(folder: Path, content: bytes) -> ImageSource:
    (folder / "kafka.jar").write_bytes(content)
    return contained.source([folder / "kafka.jar"])


def test_this_projects_nodes_have_its_own_image() -> None:
    """Nothing is pulled or built for the system ``kafka``."""
    said: list[str] = []
    found = ensured(Engine(), None, said)
    assert set(found.of_nodes.values()) == {OWN.node}
    assert (found.named, said) == (frozenset(), [])


def test_an_image_from_jars_is_built_once(tmp_path: Path) -> None:
    """Its tag depends on the jars and the base; an image that is there is not built again."""
    engine, said = Engine(JAVA), list[str]()
    found = ensured(engine, source(tmp_path, b"1"), said)
    name = found.of_nodes["broker-1"]
    assert name.startswith("faultline-apache-kafka:")
    assert found.of_nodes == {"broker-1": name, "broker-2": name, ZOOKEEPER: OWN.node}
    assert engine.built == [(name, {"BASE": JAVA})]
    assert said == [f"building {name} on {JAVA}"]
    assert ensured(engine, source(tmp_path, b"1"), said) == found
    other = ensured(engine, source(tmp_path, b"2"), said).of_nodes["broker-1"]
    assert [tag for tag, _ in engine.built] == [name, other]
    assert name != other


def test_the_context_has_the_dockerfile_and_the_jars(tmp_path: Path) -> None:
    """The Dockerfile copies the folder in which the jars are."""
    wanted = source(tmp_path, b"1")
    assert list(wanted.files) == ["opt/kafka/libs/kafka.jar"]
    assert "COPY opt/kafka/libs/ /opt/kafka/libs/" in wanted.dockerfile
    files = {"Dockerfile": wanted.dockerfile.encode()}
    assert build.digest(files, JAVA) != build.digest(files, "eclipse-temurin:17")


def test_an_image_that_the_user_names_is_used_as_it_is() -> None:
    """It is not built, and its nodes are remembered, because nothing is known of its user."""
    engine = Engine("apache/kafka:3.9.1")
    found = ensured(engine, "apache/kafka:3.9.1", [])
    assert found.of_nodes["broker-2"] == "apache/kafka:3.9.1"
    assert found.named == {"broker-1", "broker-2"}
    assert engine.built == []


def test_an_image_that_cannot_be_had_is_one_sentence() -> None:
    """The sentence names the image and the registry's reason."""
    said: list[str] = []
    with pytest.raises(EngineError, match=r"mine:1 is not on this machine .* no such host$"):
        ensured(Engine(), "mine:1", said)
    assert said == ["pulling mine:1"]
