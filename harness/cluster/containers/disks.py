"""The volumes for the nodes' data; small ones, in memory, can be filled.

A small volume is a tmpfs: it exists as long as a running container mounts it. One container mounts
all of them; faults act on a volume through that container, whether its node runs or not.
"""

from collections.abc import Collection, Mapping
from typing import Any

from harness.cluster.containers.container import Container
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.helper_container import HelperContainers
from harness.cluster.node import NodeError
from model.roles import NodeId

DATA = "/data"
"""The path at which a node mounts its volume."""
_OPENED = "/volume"
"""The path of a volume that is not in the image: the engine copies nothing into the volume."""
_FILLER = ".faultline-fill"
_FILL = """
import os
file = os.open(FILLER, os.O_CREAT | os.O_WRONLY, 0o600)
end, size = os.fstat(file).st_size, 1 << 24
while size >= 1 << 12:
    try:
        os.posix_fallocate(file, end, size)
        end += size
    except OSError:
        size >>= 1
"""
_FREE = """
import contextlib, os
with contextlib.suppress(FileNotFoundError):
    os.unlink(FILLER)
"""
_LEFT = """
import os
left = os.statvfs(os.path.dirname(FILLER))
print(left.f_bavail * left.f_frsize)
"""


class Disks:
    """One volume for each node."""

    def __init__(
        self, engine: Engine, prefix: str, labels: Mapping[str, str], size_bytes: int
    ) -> None:
        """``size_bytes`` is the size of small volumes."""
        self._engine = engine
        self._prefix = prefix
        self._labels = labels
        self._size_bytes = size_bytes
        self._volumes: dict[NodeId, str] = {}
        self._small: set[NodeId] = set()

    @property
    def small(self) -> Collection[NodeId]:
        return self._small

    def mounts(self) -> dict[str, str]:
        """The mounts of the container that holds all small volumes: path to volume."""
        return {_seen(node): self._volumes[node] for node in sorted(self._small)}

    def volume(self, node: NodeId) -> str:
        return self._volumes[node]

    async def create(self, node: NodeId, *, small: bool) -> None:
        options: dict[str, Any] = {}
        if small:
            # Writable by every user: the engine may map the node's user to another one of the host.
            how = f"size={self._size_bytes},mode=1777"
            options = {"driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": how}}
            self._small.add(node)
        name = f"{self._prefix}-{node}"
        create = self._engine.client.api.create_volume
        await self._engine.call(create, name, driver="local", labels=dict(self._labels), **options)
        self._volumes[node] = name

    async def open_to_all(self, node: NodeId, helpers: HelperContainers) -> None:
        """Let every user write into a node's empty volume: nothing is known of the node's user."""
        if node not in self._small:  # those are open to all already
            await helpers.run(
                ["chmod", "1777", _OPENED],
                user="0:0",
                capabilities=["FOWNER"],
                volumes={_OPENED: self._volumes[node]},
            )

    async def fill(self, node: NodeId, holder: Container) -> None:
        """Fill a small volume to its last block.

        :class:`NodeError` for a node without a small volume, since its disk is this machine's own.
        """
        await self._run(node, holder, _FILL)

    async def free(self, node: NodeId, holder: Container) -> None:
        """Remove what filled the volume, if anything did."""
        await self._run(node, holder, _FREE)

    async def free_bytes(self, node: NodeId, holder: Container) -> int:
        return int(await self._run(node, holder, _LEFT))

    async def _run(self, node: NodeId, holder: Container, script: str) -> str:
        if node not in self._small:
            raise NodeError(
                f"{node} has no separate disk; it gets one only if the plan fills disks"
            )
        filler = f"FILLER = {f'{_seen(node)}/{_FILLER}'!r}"
        return await holder.run(["python3", "-c", filler + script])


def _seen(node: NodeId) -> str:
    """The path at which the container that holds all small volumes mounts this one."""
    return f"/disks/{node}"
