"""The default hooks of a compose project: each is a command that applies, heals or measures."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.cluster.containers import image
from harness.cluster.containers.container_spec import Recipe
from harness.cluster.external import container_hooks
from harness.cluster.external.container_hooks import FAILED, NO, NOT_RUNNING, UNDECIDED
from harness.cluster.external.hooks import STATUS_DISCONNECTED, STATUS_PAUSED
from tests.harness.cluster.external.fake_docker import FakeDocker, node

Run = Callable[..., int]


class Helper:
    """Stands for the helper containers: records commands, and prints what it was given."""

    def __init__(self) -> None:
        self.made: list[Recipe] = []
        self.prints = ""

    async def run(self, command: Any, *, user: str, network: str, capabilities: Any) -> str:
        self.made.append(
            Recipe(
                image="",
                command=command,
                labels={},
                user=user,
                capabilities=capabilities,
                network_mode=network,
            )
        )
        return self.prints


def words(made: Recipe) -> list[str]:
    """Return the command of a helper container."""
    assert made.command is not None
    return list(made.command)


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Helper:
    made = Helper()
    monkeypatch.setattr(container_hooks, "HelperContainers", lambda *given: made)
    monkeypatch.setattr(container_hooks, "_image", lambda engine: "image")
    return made


@pytest.fixture
def client() -> FakeDocker:
    listeners = {"faultline.address": "h:19092", "faultline.clients-port": "9092"}
    return FakeDocker(node("broker-1", **listeners), node("broker-2"), node("zookeeper"))


@pytest.fixture
def run(client: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: Helper) -> Run:
    """Return a function that runs one hook, and returns its exit status."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(container_hooks, "connect", lambda user: client)

    def ran(verb: str, *ends: str) -> int:
        return container_hooks.main([verb, "kafka", *ends])

    return ran


ID = "id-broker-1"


def test_kill_and_start(run: Run, client: FakeDocker) -> None:
    """A start succeeds for a container that runs, paused or not."""
    assert run("status", "broker-1") == 0
    assert run("kill", "broker-1") == 0
    assert run("status", "broker-1") == NOT_RUNNING
    assert run("start", "broker-1") == run("start", "broker-1") == 0
    assert client.calls == [("kill", ID, "SIGKILL"), ("start", ID)]


def test_a_hook_that_crashes_gives_no_answer(
    run: Run, helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a defect of the hook nor Python's own status 1 looks like "no" or "not running"."""
    assert 1 not in (NO, NOT_RUNNING, UNDECIDED)

    async def crash(*given: Any, **named: Any) -> str:
        raise KeyError("NetworkSettings")

    monkeypatch.setattr(helper, "run", crash)
    assert run("reach", "broker-1", "broker-2") == FAILED


def test_pause_and_resume(run: Run) -> None:
    """A second pause fails, and a second resume does not: it heals."""
    assert run("pause", "broker-1") == 0
    assert run("status", "broker-1") == STATUS_PAUSED
    assert run("start", "broker-1") == 0
    assert run("pause", "broker-1") == FAILED
    assert run("resume", "broker-1") == run("resume", "broker-1") == 0
    assert run("status", "broker-1") == 0


def test_stop(run: Run, client: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    """A stop is orderly only if the process ends by itself, well within the hook's time limit."""
    assert run("stop", "broker-1", "--limit-s", "20") == 0
    assert run("stop", "broker-1") == 0
    assert client.calls == [("stop", ID, 15)]
    run("start", "broker-1")
    client.obeys_stop = False
    assert run("stop", "broker-1", "--limit-s", "12") == FAILED
    assert "broker-1 did not end within 7 s, and was killed" in capsys.readouterr().out


def test_disconnected_over_a_restart(run: Run, client: FakeDocker) -> None:
    """A start does not connect a container that is to stay disconnected."""
    client.connects_at_start = True
    assert run("disconnect", "broker-1") == 0
    assert run("status", "broker-1") == STATUS_DISCONNECTED
    run("kill", "broker-1")
    run("start", "broker-1")
    assert run("status", "broker-1") == STATUS_DISCONNECTED
    assert run("reconnect", "broker-1") == 0
    assert run("status", "broker-1") == 0


@pytest.mark.parametrize(
    ("ends", "beside", "rule"),
    [
        (("broker-1", "broker-2"), "broker-1", "ip daddr { 172.20.0.2 } counter drop"),
        (("broker-2", "broker-1"), "broker-2", "ip daddr { 172.20.0.1 } counter drop"),
        (("broker-1", "clients"), "broker-1", "tcp sport 9092 counter drop"),
        (("clients", "broker-1"), "broker-1", "tcp dport 9092 counter drop"),
    ],
)
def test_cut_and_heal(
    run: Run, helper: Helper, ends: tuple[str, str], beside: str, rule: str
) -> None:
    """Rules are in the namespace of the sender, or of the node that clients send to."""
    assert run("cut", *ends) == run("heal", *ends) == 0
    cut, heal = helper.made
    assert cut.network_mode == heal.network_mode == f"container:id-{beside}"
    assert words(cut)[0] == words(heal)[0] == "nft"
    assert (cut.user, cut.capabilities) == ("0:0", ["NET_ADMIN"])
    assert rule in words(cut)[1]
    assert words(cut)[1].startswith(words(heal)[1])
    assert "drop" not in words(heal)[1]


def test_nodes_are_no_clients(run: Run, helper: Helper) -> None:
    """What the other nodes send to the listener for clients passes."""
    run("cut", "clients", "broker-1")
    assert "ip saddr != { 172.20.0.1, 172.20.0.2, 172.20.0.9 }" in words(helper.made[0])[1]


def test_a_node_that_does_not_run_is_not_cut(run: Run, helper: Helper) -> None:
    """It has no namespace; the harness cuts again after the start."""
    run("kill", "broker-1")
    assert run("cut", "broker-1", "broker-2") == run("heal", "broker-1", "broker-2") == 0
    assert helper.made == []


def test_reach(run: Run, helper: Helper, client: FakeDocker) -> None:
    """The probe starts in the node's namespace, and lists the rules that dropped its packets."""
    client.all["id-broker-2"]["Config"]["ExposedPorts"] = {"9092/tcp": {}}
    helper.prints = '[true]\n{"nftables": []}'
    assert run("reach", "broker-1", "broker-2") == 0
    helper.prints = '[false]\n{"nftables": []}'
    assert run("reach", "broker-1", "zookeeper") == NO
    first, second = helper.made
    assert first.network_mode == f"container:{ID}"
    assert words(first)[-2:] == ["9092", "172.20.0.2"]
    assert words(second)[-2:] == ["9", "172.20.0.9"]


def test_clients_are_probed_from_the_host(run: Run, helper: Helper) -> None:
    helper.prints = "[false]"
    assert run("reach", "broker-1", "clients") == NO
    [probe] = helper.made
    assert (probe.network_mode, probe.capabilities) == ("host", [])
    assert words(probe)[-2:] == ["9092", "172.20.0.1"]


def test_reach_that_cannot_be_decided(
    run: Run, client: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container without an address proves nothing, nor do two without a network in common."""
    run("disconnect", "broker-2")
    assert run("reach", "broker-1", "broker-2") == UNDECIDED
    assert run("reach", "broker-2", "clients") == UNDECIDED
    networks = client.all["id-zookeeper"]["NetworkSettings"]["Networks"]
    networks["other"] = networks.pop("kafka_default")
    assert run("reach", "broker-1", "zookeeper") == FAILED
    assert run("cut", "broker-1", "zookeeper") == FAILED
    assert "broker-1 and zookeeper have no network in common" in capsys.readouterr().out


def test_clients_without_a_port(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cut", "clients", "broker-2") == FAILED
    assert "broker-2 has no label faultline.clients-port" in capsys.readouterr().out


def test_a_container_that_is_gone(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to heal any more, but the other hooks fail."""
    for verb in ("start", "resume", "reconnect"):
        assert run(verb, "broker-9") == 0
    assert run("heal", "broker-9", "broker-1") == 0
    for verb in ("kill", "status"):
        assert run(verb, "broker-9") == FAILED
    assert "kafka has the label faultline.node = broker-9" in capsys.readouterr().out


@pytest.fixture(scope="module")
def project() -> Iterator[str]:
    """Yield a project of two nodes with a process that listens, in a network with fixed ones."""
    name = f"faultlinetest{os.getpid()}"
    engine = docker.from_env()
    tag = image.ensure(engine).node
    made: list[Any] = []
    pool = docker.types.IPAMPool(subnet=f"10.211.{os.getpid() % 256}.0/24")
    network = engine.networks.create(name, ipam=docker.types.IPAMConfig(pool_configs=[pool]))
    try:
        for number in (1, 2):
            labels = {"com.docker.compose.project": name, "faultline.node": f"broker-{number}"}
            listener = {"faultline.clients-port": "2181", "faultline.address": "127.0.0.1:1"}
            address = f"10.211.{os.getpid() % 256}.{number + 10}"
            endpoint = engine.api.create_endpoint_config(
                aliases=[f"kafka{number}"], ipv4_address=address
            )
            container = engine.api.create_container(
                tag,
                ["python3", "-m", "broker_impl.zookeeper", "--listen=0.0.0.0:2181", "--data=/data"],
                name=f"{name}-{number}",
                labels=labels | listener,
                host_config=engine.api.create_host_config(network_mode=name),
                networking_config=engine.api.create_networking_config({name: endpoint}),
            )
            made.append(container["Id"])
            engine.api.start(container["Id"])
        yield name
    finally:
        for identity in made:
            engine.api.remove_container(identity, force=True, v=True)
        network.remove()
        engine.close()


@pytest.fixture
def real(project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a hook on real containers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return lambda verb, *ends: container_hooks.main([verb, project, *ends])


@pytest.mark.docker
@pytest.mark.slow
def test_links_of_real_containers(real: Run, project: str) -> None:
    """A cut link is silent and its rules count, until it is healed; a restart ends the rules."""
    there = ("broker-1", "broker-2")
    assert real("reach", *there) == 0
    assert real("cut", *there) == real("cut", *there) == 0
    assert real("reach", *there) == NO
    assert real("heal", *there) == real("heal", *there) == 0
    assert real("reach", *there) == 0
    assert real("cut", *there) == 0
    assert real("kill", "broker-1") == 0
    assert real("reach", *there) == UNDECIDED
    assert real("start", "broker-1") == 0
    assert real("reach", *there) == 0
    for cut in (("clients", "broker-1"), ("broker-1", "clients")):
        assert real("reach", "broker-1", "clients") == 0
        assert real("cut", *cut) == 0
        assert real("reach", "broker-1", "clients") == NO
        assert real("reach", "broker-2", "broker-1") == 0
        assert real("heal", *cut) == 0
    with contextlib.closing(docker.from_env()) as client:
        mine = {"label": f"faultline=compose-{project}"}
        assert client.api.containers(all=True, filters=mine) == []


@pytest.mark.docker
@pytest.mark.slow
def test_a_real_container_is_connected_as_it_was(
    real: Run, project: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Alias and fixed address survive a disconnection, which survives a restart."""
    with contextlib.closing(docker.from_env()) as client:
        name = f"{project}-2"

        def endpoint() -> Any:
            networks = client.api.inspect_container(name)["NetworkSettings"]["Networks"]
            return networks.get(project)

        before = endpoint()
        assert real("disconnect", "broker-2") == 0
        assert endpoint() is None
        assert real("kill", "broker-2") == real("start", "broker-2") == 0
        assert real("status", "broker-2") == STATUS_DISCONNECTED
        assert real("reach", "broker-1", "broker-2") == UNDECIDED
        assert real("reconnect", "broker-2") == 0
        after = endpoint()
        assert "kafka2" in after["Aliases"]
        assert (after["IPAddress"], after["Aliases"]) == (before["IPAddress"], before["Aliases"])
    assert real("reach", "broker-1", "broker-2") == 0
