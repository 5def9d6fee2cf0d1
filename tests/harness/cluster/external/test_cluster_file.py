"""A cluster file is checked completely before anything is started."""

from pathlib import Path

import pytest

from harness.cluster.address import Address
from harness.cluster.external import cluster_file, compose
from harness.cluster.external.cluster_file import BadClusterFile
from harness.cluster.external.hooks import Http
from tests.harness.cluster.external.fake_docker import FakeDocker, node, publishes

WHOLE = """
bootstrap = ["kafka-1:9092", "kafka-2:9092"]
observe = ["kafka-1:9192"]
toxiproxy = "http://127.0.0.1:8474/"
hook_timeout_s = 5

[client]
security.protocol = "SASL_SSL"
sasl.password = "secret"
socket.keepalive.enable = true

[hooks]
kill = ["./hooks.sh", "kill", "{node}", "{id}"]
cut = ["./hooks.sh", "cut", "{node}", "{peer}"]

[nodes.broker-1]
address = "127.0.0.1:9092"
hooks.kill = { url = "http://127.0.0.1:1/kill/{node}", method = "PUT" }
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    """A node's own hook replaces the one of all nodes; settings become text."""
    loaded = cluster_file.load(written(tmp_path, WHOLE))
    assert loaded.hook("broker-1", "kill") == Http(
        url="http://127.0.0.1:1/kill/{node}", method="PUT"
    )
    assert loaded.hook("broker-2", "kill") == ["./hooks.sh", "kill", "{node}", "{id}"]
    assert loaded.without("pause", ["broker-1"]) == ["broker-1"]
    assert loaded.properties == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "secret",
        "socket.keepalive.enable": "true",
    }
    assert loaded.masked_properties["sasl.password"] == "***"
    assert loaded.observed == (Address("kafka-1", 9192),)
    assert cluster_file.toxiproxy_address(loaded.content) == Address("127.0.0.1", 8474)
    assert (loaded.folder, len(loaded.digest)) == (tmp_path, 64)


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ('bootstrap = ["a:1"]', [Address("a", 1)]),
        ('bootstrap = ["a:1"]\n[nodes.broker-0]\naddress = "b:2"', [Address("b", 2)]),
    ],
)
def test_where_the_harness_looks(tmp_path: Path, text: str, observed: list[Address]) -> None:
    """Without ``observe`` the addresses of nodes count, and without these the bootstrap servers."""
    assert list(cluster_file.load(written(tmp_path, text)).observed) == observed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "missing required field `bootstrap`"),
        ("bootstrap = []", "length >= 1"),
        ('bootstrap = "a:1"', "Expected `array`"),
        ('bootstrap = ["a"]', "bootstrap: 'a' must be host:port"),
        ('bootstrap = ["a:99999"]', "must be host:port"),
        ('bootstrap = ["a:1"]\nhook = 1', "unknown field `hook`"),
        ('bootstrap = ["a:1"]\ntoxiproxy = "x"', "toxiproxy: 'x' must be http://host:port"),
        ('bootstrap = ["a:1"]\n[nodes.one]', "nodes.one: a node is called broker-ID"),
        ('bootstrap = ["a:1"]\n[hooks]\nexplode = ["x"]', "hooks.explode: there is no such hook"),
        ('bootstrap = ["a:1"]\n[hooks]\nkill = []', "length >= 1"),
        ('bootstrap = ["a:1"]\n[hooks]\nkill = ["{peer}"]', "{peer} is not replaced"),
        ('bootstrap = ["a:1"]\n[hooks]\nkill = ["{"]', "a single brace"),
        ('bootstrap = ["a:1"]\n[hooks]\nkill = { url = "file:///x" }', "must begin with http://"),
        ('bootstrap = ["a:1"]\n[client]\nx = [1]', "client.x: the value must be text"),
        (
            'bootstrap = ["a:1"]\n[client]\nsecurity.protocol = "SSL"',
            "name such listeners in observe",
        ),
        ("bootstrap = ", "Invalid value"),
    ],
)
def test_refused(tmp_path: Path, text: str, why: str) -> None:
    """Each mistake is one sentence that begins with the file."""
    with pytest.raises(BadClusterFile) as refused:
        cluster_file.load(written(tmp_path, text))
    assert why in str(refused.value)
    assert str(refused.value).startswith(f"--cluster {tmp_path}")
    assert "\n" not in str(refused.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadClusterFile, match="No such file"):
        cluster_file.load(tmp_path / "none.toml")


def test_confirmed_by_file_or_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are confirmed by the file or by the command line, which also selects the file."""
    for name in (cluster_file.SELECTED, cluster_file.CONFIRMED):
        monkeypatch.setenv(name, "")
    assert cluster_file.selected() is None
    path = written(tmp_path, 'bootstrap = ["a:1"]')
    cluster_file.select(path, confirmed=False)
    chosen = cluster_file.selected()
    assert chosen is not None
    assert not chosen.is_confirmed
    cluster_file.select(path, confirmed=True)
    assert chosen.is_confirmed
    other = tmp_path / "other.toml"
    other.write_text('bootstrap = ["a:1"]\nconfirm = true')
    cluster_file.select(other, confirmed=False)
    found = cluster_file.selected()
    assert found is not None
    assert found.is_confirmed


PROJECT = 'bootstrap = ["a:1"]\n[compose]\nproject = "kafka"\n'


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeDocker:
    """Return an engine with a project of a broker and ZooKeeper."""
    zookeeper = publishes(node("zookeeper"), {"2181/tcp": ("", "2181")})
    client = FakeDocker(node("broker-1", **{"faultline.address": "h:1"}), zookeeper)
    monkeypatch.setattr(compose, "connect", lambda user: client)
    return client


def test_nodes_of_a_compose_project(tmp_path: Path, engine: FakeDocker) -> None:
    """Labelled containers are nodes with a default hook for every verb; the file may replace it."""
    text = f'{PROJECT}[hooks]\nkill = ["all"]\n[nodes.broker-1.hooks]\npause = ["one"]\n'
    loaded = cluster_file.load(written(tmp_path, text))
    assert list(loaded.containers) == ["broker-1", "zookeeper"]
    assert loaded.content.nodes["zookeeper"].address == "127.0.0.1:2181"
    assert loaded.hook("broker-1", "kill") == loaded.hook("zookeeper", "kill") == ["all"]
    assert loaded.hook("broker-1", "pause") == ["one"]
    for verb in set(cluster_file.VERBS) - {"kill", "pause"}:
        assert cluster_file.is_default(loaded.hook("broker-1", verb))
    assert not cluster_file.is_default(loaded.hook("broker-1", "kill"))
    cut = loaded.hook("broker-1", "cut")
    assert isinstance(cut, list)
    assert cut[1:] == [
        *("-P", "-m", "harness.cluster.external.container_hooks"),
        *("cut", "kafka", "{node}", "{peer}", "--limit-s", "20"),
    ]
    assert loaded.hook("broker-2", "status") is None


def test_the_file_replaces_addresses_of_labels(tmp_path: Path, engine: FakeDocker) -> None:
    text = f'{PROJECT}[nodes.broker-1]\naddress = "other:2"\n'
    loaded = cluster_file.load(written(tmp_path, text))
    assert loaded.observed == (Address("other", 2),)


def test_a_container_without_a_network_of_its_own(tmp_path: Path, engine: FakeDocker) -> None:
    """It can be killed and paused, but neither cut off nor disconnected."""
    engine.all["id-broker-1"]["HostConfig"]["NetworkMode"] = "host"
    loaded = cluster_file.load(written(tmp_path, PROJECT))
    missing = [verb for verb in cluster_file.VERBS if loaded.hook("broker-1", verb) is None]
    assert missing == ["cut", "heal", "reach", "disconnect", "reconnect"]


def test_the_cluster_is_asked_at_brokers_only(tmp_path: Path) -> None:
    """The address of ZooKeeper is none for metadata of brokers."""
    text = 'bootstrap = ["a:1"]\n[nodes.zookeeper]\naddress = "z:2181"\n'
    assert cluster_file.load(written(tmp_path, text)).observed == (Address("a", 1),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('bootstrap = ["a:1"]\n[compose]\nproject = "none"', "engine has no containers of a"),
        ('bootstrap = ["a:1"]\n[compose]\nfile = "none.yml"', "none.yml: No such file"),
        ('bootstrap = ["a:1"]\n[compose]\nfiles = "x"', "unknown field `files`"),
    ],
)
def test_a_wrong_project(tmp_path: Path, engine: FakeDocker, text: str, why: str) -> None:
    with pytest.raises(BadClusterFile) as refused:
        cluster_file.load(written(tmp_path, text))
    assert why in str(refused.value)
    assert str(refused.value).startswith(f"--cluster {tmp_path}")


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names what needs the engine."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BadClusterFile, match=r"\[compose\]: no container engine answers at unix:"):
        cluster_file.load(written(tmp_path, PROJECT))
