"""A cluster file is checked completely before anything is started."""

from pathlib import Path

import pytest

from harness.cluster.address import Address
from harness.cluster.external import cluster_file
from harness.cluster.external.cluster_file import BadClusterFile
from harness.cluster.external.hooks import Http

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
