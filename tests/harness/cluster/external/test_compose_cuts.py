"""Links between containers stay cut when a container is started or connected again."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers import image
from harness.cluster.containers.engine import EngineError
from harness.cluster.external import cluster_file, compose, compose_cuts, kinds
from harness.cluster.external import survey as survey_
from harness.cluster.external.compose_cuts import ComposeCuts, NodesCuts
from harness.cluster.external.container_hooks import FAILED, NO, UNDECIDED
from harness.cluster.external.external_cluster import Cuts
from harness.cluster.external.hooks import Call, HookError, Outcome
from harness.cluster.external.undo_record import UndoRecord
from harness.cluster.observe import probe
from model.capabilities.network import CanCut, KeepsClients
from model.plan import Plan
from tests.harness.cluster.external.conftest import surveyed
from tests.harness.cluster.external.fake_docker import FakeDocker, node

PROJECT = '[compose]\nproject = "kafka"\n'
LISTENERS = {"faultline.address": "h:19092", "faultline.clients-port": "9092"}


class FakeRunner:
    """Runs no hook: records the calls, and returns chosen exit statuses."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.statuses: dict[str, int] = {}

    async def run(self, call: Call) -> Outcome:
        self.calls.append(call.what)
        status = self.statuses.get(call.what, 0)
        return Outcome(status=status, succeeded=status == 0, last_line="why")

    async def succeed(self, call: Call) -> Outcome:
        return await self.run(call)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Return an engine whose project has three brokers with listeners for clients."""
    client = FakeDocker(*(node(f"broker-{number}", **LISTENERS) for number in (1, 2, 3)))
    monkeypatch.setattr(compose, "connect", lambda user: client)
    return client


@pytest.fixture
def make(engine: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes the cluster of a file, and its recorded hooks."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def answers(*given: Any) -> bool:
        return True

    monkeypatch.setattr(probe, "answers", answers)

    def made(text: str = PROJECT, *nemesis: str) -> tuple[Any, FakeRunner]:
        cluster_file._loaded.cache_clear()
        found = surveyed(tmp_path, text)
        monkeypatch.setenv(cluster_file.SELECTED, str(found.loaded.path))
        monkeypatch.setattr(survey_, "_SURVEYS", {found.loaded.digest: found})
        kind, runner = kinds.kind_of(found), FakeRunner()
        monkeypatch.setattr(kind, "_runner", runner)
        cluster = kind(Plan(nemesis=nemesis), tmp_path, None)  # type: ignore[arg-type]
        cluster._record = UndoRecord(tmp_path / "hooks.log", (), cluster.prefix)
        return cluster, runner

    cluster_file._loaded.cache_clear()
    yield made
    cluster_file._loaded.cache_clear()


async def test_cut_again_after_a_start(make: Any) -> None:
    """All links of the node are cut again, and those of clients, whose rules name addresses."""
    cluster, runner = make()
    for link in (("broker-1", "broker-2"), ("broker-3", "broker-1"), ("broker-2", "broker-3")):
        await cluster.cut(*link)
    await cluster.cut("clients", "broker-2")
    await cluster.heal("broker-3", "broker-1")
    runner.calls.clear()
    await cluster.start_node("broker-1")
    assert runner.calls == ["start broker-1", "cut broker-1 broker-2", "cut clients broker-2"]
    runner.calls.clear()
    await cluster.disconnect("broker-3")
    await cluster.reconnect("broker-3")
    assert runner.calls[2:] == ["cut broker-2 broker-3", "cut clients broker-2"]


async def test_healed_while_it_is_cut_again(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that another fault heals in between is healed for good."""
    cluster, runner = make()
    await cluster.cut("broker-1", "broker-2")
    succeed: Callable[[Call], Awaitable[Outcome]] = runner.succeed

    async def heals(call: Call) -> Outcome:
        if call.what == "cut broker-1 broker-2" and cluster._cuts["broker-1", "broker-2"]:
            await cluster.heal("broker-1", "broker-2")
        return await succeed(call)

    runner.calls.clear()
    monkeypatch.setattr(runner, "succeed", heals)
    await cluster.start_node("broker-1")
    assert runner.calls[-2:] == ["cut broker-1 broker-2", "heal broker-1 broker-2"]


@pytest.mark.parametrize(("status", "is_cut"), [(0, False), (NO, True), (UNDECIDED, None)])
async def test_measured(make: Any, status: int, is_cut: bool | None) -> None:
    cluster, runner = make()
    runner.statuses["reach broker-1 broker-2"] = status
    assert await cluster.is_cut("broker-1", "broker-2") is is_cut


@pytest.mark.parametrize("status", [1, FAILED, -9])
async def test_a_hook_that_fails_proves_no_cut(make: Any, status: int) -> None:
    """Neither does one that Python or the kernel has ended."""
    cluster, runner = make()
    runner.statuses["reach broker-1 broker-2"] = status
    with pytest.raises(HookError, match="the hook reach broker-1 broker-2 failed: why"):
        await cluster.is_cut("broker-1", "broker-2")


async def test_without_a_port_clients_keep_their_links(make: Any, engine: FakeDocker) -> None:
    """One broker whose only listener serves the harness, too: clients are cut off from none."""
    del engine.all["id-broker-3"]["Config"]["Labels"]["faultline.clients-port"]
    cluster, runner = make()
    assert isinstance(cluster, NodesCuts)
    assert not cluster.has_link("clients", "broker-1")
    assert cluster.has_link("broker-1", "broker-2")
    assert await cluster.is_cut("clients", "broker-1") is False
    assert runner.calls == []
    assert "has the label faultline.clients-port" in cluster.why_clients_stay()
    await cluster.is_cut("broker-1", "broker-2")
    assert runner.calls == ["reach broker-1 broker-2"]


def test_classes(make: Any) -> None:
    """The user's own hooks for links are used as without a compose project."""
    default, _ = make()
    assert isinstance(default, ComposeCuts)
    assert isinstance(default, CanCut)
    assert not isinstance(default, KeepsClients)
    own, _ = make(f'{PROJECT}[hooks]\ncut = ["x"]\nheal = ["x"]\nreach = ["x"]\n')
    assert isinstance(own, Cuts)
    assert not isinstance(own, ComposeCuts)


@pytest.mark.parametrize(("nemesis", "builds"), [("partition", 1), ("apart", 1), ("kill", 0)])
async def test_the_image_is_built_before_the_run(
    make: Any,
    engine: FakeDocker,
    monkeypatch: pytest.MonkeyPatch,
    nemesis: str,
    builds: int,
) -> None:
    """Only plans that cut links need helper containers."""
    built: list[Any] = []
    monkeypatch.setattr(compose_cuts, "connect", lambda user: engine)
    monkeypatch.setattr(image, "ensure", lambda client, say: built.append(client))
    cluster, _ = make(PROJECT, nemesis)
    await cluster._connect()
    assert len(built) == builds


async def test_an_image_that_cannot_be_built(
    make: Any, engine: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(client: Any, say: Any) -> None:
        raise image.ImageError("no base image")

    monkeypatch.setattr(compose_cuts, "connect", lambda user: engine)
    monkeypatch.setattr(image, "ensure", ensure)
    cluster, _ = make(PROJECT, "partition")
    with pytest.raises(EngineError, match="no base image"):
        await cluster._connect()
