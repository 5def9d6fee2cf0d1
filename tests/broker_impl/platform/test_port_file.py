"""The file in which a server publishes its ports."""

from pathlib import Path

import msgspec

from broker_impl.platform.port_file import publish


def test_the_port_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """The port file is renamed into place, over an earlier one, so that it is always whole."""
    for ports in ({"A": 1}, {"A": 3, "B": 2}):
        publish(tmp_path / "ports", ports)
        assert msgspec.json.decode((tmp_path / "ports").read_bytes()) == ports
        assert [path.name for path in tmp_path.iterdir()] == ["ports"]
