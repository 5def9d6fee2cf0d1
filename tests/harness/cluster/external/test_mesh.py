"""Links that the user's Toxiproxy carries."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.address import Address
from harness.cluster.external import cluster_file, mesh
from harness.cluster.external import survey as survey_
from harness.cluster.external.mesh import Proxied
from harness.cluster.external.undo_record import UndoRecord
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.toxiproxy import Mesh, MeshError
from harness.cluster.node import ClusterError
from harness.cluster.process import Process
from harness.cluster.registry import Registry
from model.layout import Layout
from model.plan import Plan
from tests.harness.cluster.external.conftest import surveyed

LAYOUT = Layout(("broker-1", "broker-2"), zookeepers=("zookeeper",))


def test_names_of_links() -> None:
    """Every node may open links to every other; those between brokers and clients are needed."""
    assert ("broker-1", "zookeeper") in mesh.pairs(LAYOUT)
    assert ("clients", "broker-2") in mesh.pairs(LAYOUT)
    assert ("broker-1", "broker-1") not in mesh.pairs(LAYOUT)
    assert set(mesh.needed(LAYOUT)) == {
        ("clients", "broker-1"),
        ("clients", "broker-2"),
        ("broker-1", "broker-2"),
        ("broker-2", "broker-1"),
    }


def test_roles_of_brokers_have_links_of_their_own() -> None:
    layout = Layout(("broker-1", "broker-2"), controllers=("controller-1",), combined=True)
    assert ("broker-2", "controller-1") in mesh.pairs(layout)
    assert ("broker-1", "controller-1") not in mesh.pairs(layout)
    assert not [pair for pair in mesh.pairs(layout) if pair[0] == "controller-1"]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Address]:
    """Yield the address of a real Toxiproxy."""
    try:
        command = toxiproxy.command()
    except MeshError as error:
        pytest.skip(str(error))
    registry = Registry("mesh", tmp_path / "state")
    process = Process("toxiproxy", command, tmp_path / "toxiproxy", registry, lambda end: None)
    yield await toxiproxy.serve(process)
    await process.kill()


@pytest.mark.cluster
@pytest.mark.slow
async def test_faults_of_links(
    server: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Existing proxies become links, and the record undoes each fault without the harness."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    addresses = "".join(f"[nodes.broker-{n}]\naddress = '127.0.0.1:{n}'\n" for n in (1, 2, 3))
    found = surveyed(tmp_path, f"toxiproxy = '{server}'\n{addresses}")
    monkeypatch.setenv(cluster_file.SELECTED, str(found.loaded.path))
    monkeypatch.setattr(survey_, "_SURVEYS", {found.loaded.digest: found})
    cluster_file._loaded.cache_clear()
    cluster: Any = Proxied(Plan(), tmp_path, None)  # type: ignore[arg-type]
    cluster._record = record = UndoRecord(tmp_path / "hooks.log", (), cluster.prefix)
    with pytest.raises(ClusterError, match=r"has no proxy clients\.broker-1, clients\.broker-2"):
        await cluster._connect()
    users = Mesh()
    users.connect(server)
    for pair in mesh.needed(found.layout):
        await users.add(*pair, Address("127.0.0.1", 9), Address("127.0.0.1", 9), None)
    await cluster._connect()
    link = ("broker-1", "broker-2")
    assert not cluster.has_link("broker-1", "zookeeper")
    assert not cluster.link_faults("broker-1", "zookeeper").cut
    await cluster.cut(*link)
    await cluster.slow(*link, 0.1)
    await cluster.refuse("clients", "broker-3")
    faults = cluster.link_faults(*link)
    assert (faults.cut, faults.slowness_s) == (True, 0.1)
    [closed] = users.between("clients", "broker-3")
    assert await users.is_closed(closed)
    assert {what for (what, _), _ in record.left} == {"toxic", "proxy"}
    assert await cluster.undo_all() == []
    assert not await users.is_closed(closed)
    proxies = users._client.proxies()
    assert [toxic for proxy in proxies.values() for toxic in proxy.toxics()] == []
    assert record.left == ()
    record.close()
