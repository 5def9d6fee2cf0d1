"""The file by which a server tells which ports it took: complete or not there."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


def publish(path: Path, ports: Mapping[str, int]) -> None:
    """Write the port of each listener, by its name, as JSON."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(msgspec.json.encode(ports))
    draft.replace(path)
