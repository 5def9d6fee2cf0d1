"""A container is connected again as it was, by whichever command does that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cluster.containers.engine import Engine
from harness.cluster.external import compose
from harness.cluster.external.endpoints import Endpoint, Endpoints
from tests.harness.cluster.external.fake_docker import FakeDocker, node

ID = "id-broker-1"
Records = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Records:
    """Return a function that lists the records of disconnected containers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "faultline" / "compose"
    return lambda: [path.name for path in folder.iterdir()]


def two_networks() -> FakeDocker:
    """Return an engine with a node in two networks, one of them with a fixed address."""
    inspected = node("broker-1")
    inspected["NetworkSettings"]["Networks"]["kafka_fixed"] = {
        "IPAddress": "10.9.0.5",
        "GlobalIPv6Address": "",
        "IPAMConfig": {"IPv4Address": "10.9.0.5"},
        "Aliases": ["kafka1", "leader"],
        "Links": ["zookeeper:zk"],
        "DriverOpts": {"mtu": "1400"},
    }
    return FakeDocker(inspected)


def endpoints(client: FakeDocker) -> Endpoints:
    """Return the endpoints of the node for a command that begins now."""
    return Endpoints(Engine(client), "kafka", compose.nodes(client, "kafka")["broker-1"])


async def test_disconnect_and_reconnect(records: Records) -> None:
    """The container leaves all networks, and gets its aliases and its fixed address back."""
    client = two_networks()
    await endpoints(client).disconnect()
    assert client.all[ID]["NetworkSettings"]["Networks"] == {}
    assert records() == ["kafka.broker-1.json"]
    await endpoints(client).reconnect()
    connected = {call[2]: call[3] for call in client.calls if call[0] == "connect"}
    nothing = dict.fromkeys(Endpoint.__struct_fields__)
    assert connected == {
        "kafka_default": {**nothing, "aliases": ["broker-1"]},
        "kafka_fixed": {
            **nothing,
            "ipv4_address": "10.9.0.5",
            "aliases": ["kafka1", "leader"],
            "links": [("zookeeper", "zk")],
            "driver_opt": {"mtu": "1400"},
        },
    }
    assert records() == []


async def test_a_command_that_was_killed_halfway() -> None:
    """What has been disconnected is in the record before; the next command does the rest."""
    client = two_networks()
    await endpoints(client).disconnect()
    client.connect_container_to_network(
        ID, "kafka_default", **{**dict.fromkeys(Endpoint.__struct_fields__), "aliases": ["other"]}
    )
    await endpoints(client).disconnect()
    client.calls.clear()
    await endpoints(client).reconnect()
    aliases = {call[2]: call[3]["aliases"] for call in client.calls}
    assert aliases == {"kafka_default": ["broker-1"], "kafka_fixed": ["kafka1", "leader"]}


async def test_what_is_connected_stays_so() -> None:
    """A network that someone else has connected again is not connected twice."""
    client = two_networks()
    await endpoints(client).reconnect()
    assert client.calls == []
    await endpoints(client).disconnect()
    client.connect_container_to_network(
        ID, "kafka_fixed", **dict.fromkeys(Endpoint.__struct_fields__)
    )
    client.calls.clear()
    await endpoints(client).reconnect()
    assert [call[2] for call in client.calls] == ["kafka_default"]


async def test_kept_out_after_a_start() -> None:
    """A disconnected container that its start connects is disconnected again, another one not."""
    client = two_networks()
    await endpoints(client).keep_out()
    assert len(client.all[ID]["NetworkSettings"]["Networks"]) == 2
    await endpoints(client).disconnect()
    client.connects_at_start = True
    client.start(ID)
    await endpoints(client).keep_out()
    assert client.all[ID]["NetworkSettings"]["Networks"] == {}
    await endpoints(client).reconnect()
    assert client.all[ID]["NetworkSettings"]["Networks"]["kafka_default"]["Aliases"] == ["broker-1"]


async def test_a_container_that_was_created_again(records: Records) -> None:
    """The record of the old container does not disconnect or connect the new one."""
    client = two_networks()
    await endpoints(client).disconnect()
    new = node("broker-1")
    new["Id"] = "id-new"
    client = FakeDocker(new)
    await endpoints(client).keep_out()
    await endpoints(client).reconnect()
    assert client.calls == []
    assert records() == []
