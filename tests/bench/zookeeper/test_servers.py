"""Both ensembles have the same ticks, limits and members."""

from pathlib import Path

from bench.nodes import TICK_MS
from bench.zookeeper.servers import INIT_LIMIT, SYNC_LIMIT, Ports, apache, ours
from broker_impl.zookeeper.__main__ import parser

PORTS = [Ports(n, n + 10, n + 20) for n in (1, 2, 3)]


def test_the_settings_are_the_same(tmp_path: Path) -> None:
    """The command of ours and the file of Apache's say the same."""
    command = ours(2, PORTS, tmp_path)
    options = parser().parse_args(command[command.index("broker_impl.zookeeper") + 1 :])
    apache([Path("zookeeper.jar")])(2, PORTS, tmp_path)
    lines = (tmp_path / "zoo.cfg").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    assert settings["tickTime"] == str(options.tick_ms) == str(TICK_MS)
    assert settings["initLimit"] == str(options.init_limit) == str(INIT_LIMIT)
    assert settings["syncLimit"] == str(options.sync_limit) == str(SYNC_LIMIT)
    assert settings["clientPort"] == str(options.listen[1])
    assert (tmp_path / "data" / "myid").read_text() == str(options.id)
    assert [settings[f"server.{member.id}"] for member in options.server] == [
        f"{member.host}:{member.quorum_port}:{member.election_port}" for member in options.server
    ]
