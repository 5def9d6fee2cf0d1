"""Containers are created with few rights, limited resources and ports on loopback only."""

import dataclasses
from typing import Any

import docker
import pytest

from harness.cluster.containers import container_spec
from harness.cluster.containers.container_spec import Recipe
from harness.cluster.containers.network import Network

NETWORK = Network("net", {"toxiproxy": "172.18.0.2", "broker-1": "172.18.0.4"})


class Api(docker.APIClient):  # type: ignore[misc]
    """The SDK's client, except that it records the request to create a container."""

    def __init__(self) -> None:
        super().__init__(base_url="http://127.0.0.1:1", version="1.41")
        self.asked: dict[str, Any] = {}

    def create_container_from_config(self, config: Any, name: Any, platform: Any = None) -> Any:
        self.asked = dict(config)
        return {"Id": "made"}


class Client:
    def __init__(self) -> None:
        self.api = Api()


def asked(made: Recipe, network: Network | None = NETWORK) -> dict[str, Any]:
    client = Client()
    assert container_spec.create(client, "name", made, network) == "made"
    client.api.close()
    return client.api.asked


BROKER = Recipe(
    image="faultline-node:1",
    command=["python3"],
    labels={"faultline": "run"},
    host="broker-1",
    names={"toxiproxy": "172.18.0.2"},
    volumes={"/data": "volume"},
    publishes=[20001],
    memory_bytes=64 << 20,
    cpus=0.5,
)


def test_no_rights_and_no_return() -> None:
    """A container has no capabilities, cannot gain any, and is not restarted."""
    host = asked(BROKER)["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert not host.get("CapAdd")
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert not host.get("Privileged")
    assert "RestartPolicy" not in host


def test_limits_can_be_changed_later() -> None:
    """CPU is limited by period and quota, and memory without swap."""
    host = asked(BROKER)["HostConfig"]
    assert (host["CpuPeriod"], host["CpuQuota"]) == (100_000, 50_000)
    assert "NanoCpus" not in host
    assert host["Memory"] == host["MemorySwap"] == 64 << 20
    assert host["PidsLimit"] == container_spec.PIDS_MAX


def test_ports_are_for_this_machine_alone() -> None:
    """Ports are published on loopback, each on a port that the engine chooses."""
    told = asked(BROKER)
    [binding] = told["HostConfig"]["PortBindings"]["20001/tcp"]
    assert binding["HostIp"] == "127.0.0.1"
    assert not binding["HostPort"]
    assert "20001/tcp" in told["ExposedPorts"]


def test_it_has_its_place_and_knows_the_others() -> None:
    """A container has a fixed address, its host name, and the names that it uses."""
    told = asked(BROKER)
    endpoint = told["NetworkingConfig"]["EndpointsConfig"]["net"]
    assert endpoint["IPAMConfig"]["IPv4Address"] == "172.18.0.4"
    assert endpoint["Aliases"] == ["broker-1"]
    assert told["HostConfig"]["ExtraHosts"] == ["toxiproxy:172.18.0.2"]
    assert told["Labels"] == {"faultline": "run"}
    assert told["Healthcheck"]["Test"] == ["NONE"]


def test_an_image_keeps_its_own_command() -> None:
    """Without a command, the request names none, so the image's entry point and command apply."""
    told = asked(dataclasses.replace(BROKER, command=None))
    assert told.get("Cmd") is None
    assert asked(BROKER)["Cmd"] == list(BROKER.command or ())


@pytest.mark.parametrize("mode", ["none", "container:abc"])
def test_an_errand_has_no_place_of_its_own(mode: str) -> None:
    """A helper container shares another's network or has none, and has the one given capability."""
    errand = Recipe(
        image="i", command=["nft"], labels={}, network_mode=mode, capabilities=["NET_ADMIN"]
    )
    host = asked(errand, None)["HostConfig"]
    assert host["NetworkMode"] == mode
    assert host["CapAdd"] == ["NET_ADMIN"]
    assert host["CapDrop"] == ["ALL"]
