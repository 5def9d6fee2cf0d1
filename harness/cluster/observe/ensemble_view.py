"""The roles of ZooKeeper's servers, as each of them answers a four-letter word.

A server of an ensemble says itself whether it leads, follows or observes, or that it serves no
requests. This module asks them past the mesh. A cluster without brokers has no other metadata.
"""

import asyncio
import re
from collections.abc import Mapping

from harness.cluster.address import Address
from harness.cluster.observe.metadata_view import Registration
from model.capabilities.control_plane import EnsembleRole, Partition
from model.layout import Layout
from model.roles import NodeId

WORD = b"srvr"
TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 4096
_MODE = re.compile(r"^Mode: (leader|follower|observer|standalone)$", re.MULTILINE)


async def role_of(server: Address) -> EnsembleRole | None:
    """Return a server's role; ``None`` if it does not answer, or serves no requests."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*server)
            try:
                writer.write(WORD)
                answer = await _until_end(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    found = _MODE.search(answer.decode(errors="replace"))
    if found is None:
        return None
    mode = found[1]
    return (
        "leader"
        if mode in ("leader", "standalone")
        else ("follower" if mode == "follower" else "observer")
    )


async def _until_end(reader: asyncio.StreamReader) -> bytes:
    answer = b""
    while len(answer) < ANSWER_BYTES_MAX and (more := await reader.read(ANSWER_BYTES_MAX)):
        answer += more
    return answer


async def roles_of(servers: Mapping[NodeId, Address]) -> dict[NodeId, EnsembleRole]:
    """Return the roles of the servers that have one."""
    found = await asyncio.gather(*map(role_of, servers.values()))
    return {node: role for node, role in zip(servers, found, strict=True) if role is not None}


def is_whole(layout: Layout, roles: Mapping[NodeId, EnsembleRole]) -> bool:
    """Return whether every server has a role, and exactly one of them leads."""
    return {*roles} == {*layout.zookeepers} and [*roles.values()].count("leader") == 1


class NoMetadata:
    """The metadata of a cluster without brokers: there is none."""

    async def close(self) -> None:
        return

    async def controller(self) -> NodeId | None:
        return None

    async def live(self) -> tuple[NodeId, ...]:
        return ()

    async def registration(self, broker: NodeId) -> Registration | None:
        return None

    async def partition(self, key: str) -> Partition | None:
        return None

    async def partitions(self) -> tuple[Partition, ...]:
        return ()
