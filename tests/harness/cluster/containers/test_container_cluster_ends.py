"""How a cluster of containers ends if it could not start, or lost its watcher."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError

from harness.cluster.containers import container_cluster, container_spec, engine, image
from harness.cluster.containers.container_cluster import Containers, published
from harness.cluster.containers.image import Images
from harness.cluster.node import ClusterError
from harness.systems.kafka.system import Kafka
from model.plan import Plan

NEVER = "0001-01-01T00:00:00Z"


class FakeEngine:
    """An engine that makes and removes networks, volumes and containers, and refuses one kind."""

    def __init__(self) -> None:
        self.api = self
        self.things: dict[str, dict[str, str]] = {}
        """The labels of each object, by its name."""
        self.refuses = ""
        self.answers: Any = []
        """The answer to a request for the list of containers."""

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def _make(self, what: str, labels: dict[str, str]) -> dict[str, str]:
        if self.refuses == what:
            raise APIError(f"no {what} today")
        self.things[what] = labels
        return {"Id": what, "Name": what}

    def create_network(self, name: str, *, labels: dict[str, str], **_: Any) -> dict[str, str]:
        return self._make("network", labels)

    def inspect_network(self, _: str) -> dict[str, Any]:
        return {"IPAM": {"Config": [{"Subnet": "10.9.0.0/24", "Gateway": "10.9.0.1"}]}}

    def create_volume(self, name: str, *, labels: dict[str, str], **_: Any) -> dict[str, str]:
        return self._make("volume", labels)

    def inspect_container(self, _: str) -> dict[str, Any]:
        state = {"Running": False, "Paused": False, "ExitCode": 0, "OOMKilled": False}
        return {"State": {**state, "StartedAt": NEVER}}

    def start(self, _: str) -> None:
        raise APIError("cannot be started")

    def get_archive(self, identity: str, path: str) -> Any:
        raise RuntimeError("nobody expects this")

    def logs(self, _: str, **how: Any) -> Any:
        raise RuntimeError("nor this")

    def containers(self, **_: Any) -> Any:
        if "container" in self.things:
            return [{"Id": "container", "Labels": self.things["container"], "State": "exited"}]
        return self.answers

    def networks(self, **_: Any) -> Any:
        return [
            {"Id": name, "Name": name, "Labels": found}
            for name, found in self.things.items()
            if name == "network"
        ]

    def volumes(self, **_: Any) -> Any:
        found = self.things.get("volume")
        return {"Volumes": [{"Name": "volume", "Labels": found}] if found else None}

    def remove_container(self, name: str, **_: Any) -> None:
        del self.things[name]

    def remove_network(self, name: str) -> None:
        del self.things[name]

    def remove_volume(self, name: str) -> None:
        del self.things[name]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()

    def create(client: Any, name: str, made: Any, network: Any) -> str:
        return fake._make("container", made.labels)["Id"]

    monkeypatch.setattr(engine, "connect", lambda: fake)
    monkeypatch.setattr(container_spec, "create", create)
    monkeypatch.setattr(image, "ensure", lambda client, say: Images("node", "toxiproxy"))
    monkeypatch.setattr(container_cluster, "LOOK_S", 0.0)
    return fake


def cluster(folder: Path) -> Containers:
    return Containers(Plan(brokers=1), folder / "a-run", random.Random(1), system=Kafka())


@pytest.mark.parametrize(
    ("refuses", "told"),
    [
        ("network", "no network today"),
        ("volume", "no volume today"),
        ("container", "no container today"),
        ("", "cannot be started"),
    ],
)
async def test_the_first_reason_is_told_and_nothing_is_left(
    refuses: str, told: str, fake: FakeEngine, tmp_path: Path
) -> None:
    """A failed start raises the first error and removes all that was made before.

    This holds whatever cannot be made, and whatever cannot be collected afterwards.
    """
    fake.refuses = refuses
    with pytest.raises(ClusterError, match=told):
        await cluster(tmp_path).start()
    assert fake.things == {}


async def test_a_watcher_that_dies_fails_the_run(fake: FakeEngine, tmp_path: Path) -> None:
    """If the watcher fails, a crash could go unnoticed, so `stop` raises after it removed all."""
    watched = cluster(tmp_path)
    await watched._prepare()
    await watched._lay()
    fake.answers = [{"Id": "one without a state"}]
    watched._watcher = asyncio.create_task(watched._watch())
    with pytest.raises(KeyError):
        await asyncio.shield(watched._watcher)
    fake.answers = []
    with pytest.raises(ClusterError, match="failed: KeyError"):
        await watched.stop()
    assert fake.things == {}
    assert watched.unexpected_exits == []


def test_an_exposed_port_is_not_a_published_one() -> None:
    """A port that a base image exposes (EXPOSE) is not a published one."""
    binding = [{"HostIp": "127.0.0.1", "HostPort": "40001"}]
    assert published({"8474/tcp": binding, "5678/tcp": None, "9/tcp": []}) == {8474: 40001}
