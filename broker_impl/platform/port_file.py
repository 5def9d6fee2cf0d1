"""The file in which a server publishes its port numbers: written completely or not at all."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


def publish(path: Path, ports: Mapping[str, int]) -> None:
    """Write the port of each listener, by listener name, as JSON."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(msgspec.json.encode(ports))
    draft.replace(path)
