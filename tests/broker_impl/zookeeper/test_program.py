"""A server from start to end: what it refuses, what operators see, and how it stops."""

import asyncio
import json

import pytest

from broker_impl.errors import ConfigError, StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.four_letter_words import reply
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from broker_impl.zookeeper.tree import CONFIG

ALONE = Settings("127.0.0.1", 0)


def program(settings: Settings, disk: MemoryDisk | None = None) -> Program:
    return Program(settings, disk or MemoryDisk(), wall_ms=lambda: 5, entropy=bytes)


async def test_a_server_must_be_a_member() -> None:
    """An id that is not in the list of servers is refused."""
    members = (Member(1, "127.0.0.1", 1, 2),)
    with pytest.raises(ConfigError, match="id 2"):
        program(Settings("127.0.0.1", 0, me=2, members=members))


async def test_a_server_that_is_alone() -> None:
    """It serves at once, stops when that is requested, and frees its directory."""
    disk = MemoryDisk()
    server = program(Settings("127.0.0.1", 0, folder="/data"), disk)
    port = await server.start()
    run = asyncio.ensure_future(server.run())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"conf")
    text = (await reader.read()).decode()
    writer.close()
    assert text.startswith(
        f"clientPort={port}\ndataDir=/data/version-2\ndataLogDir=/data/version-2\ntickTime=2000\n"
    )
    assert "initLimit" not in text
    server.stop()
    await run
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    assert program(ALONE, disk).history.database.nodes[CONFIG].data == b""


async def test_a_directory_is_used_once() -> None:
    """A second server on the same directory is refused."""
    disk = MemoryDisk()
    first = program(ALONE, disk)
    with pytest.raises(StorageError):
        program(ALONE, disk)
    await first.start()
    first.stop()
    await first.run()


async def test_an_ensemble_of_one(unused_tcp_port_factory: object) -> None:
    """The only voter leads at once; operators see its settings, by words and over HTTP."""
    assert callable(unused_tcp_port_factory)
    quorum, election = unused_tcp_port_factory(), unused_tcp_port_factory()
    members = (Member(3, "127.0.0.1", quorum, election),)
    server = program(
        Settings("127.0.0.1", 0, me=3, members=members, admin=("127.0.0.1", 0), init_limit=7)
    )
    await server.start()
    run = asyncio.ensure_future(server.run())
    async with asyncio.timeout(10):
        while server.server.pipeline is None:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0)
    membership = f"server.3=127.0.0.1:{quorum}:{election}:participant\nversion=0"
    text = reply("conf", server.server.facts())
    assert "initLimit=7\nsyncLimit=5\nelectionAlg=3\n" in text
    assert text.endswith(f"peerType=0\nmembership: \n{membership}\n")
    assert server.history.database.nodes[CONFIG].data == membership.encode()
    assert "Mode: leader\nProposal sizes last/min/max: -1/-1/-1\n" in reply(
        "srvr", server.server.facts()
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", server.admin_port)
    writer.write(b"GET /commands/leader HTTP/1.1\r\n\r\n")
    body = (await reader.read()).decode().partition("\r\n\r\n")[2]
    writer.close()
    assert json.loads(body) == {
        "is_leader": True, "leader_id": 3, "leader_ip": "127.0.0.1", "command": "leader",
        "error": None,
    }  # fmt: skip
    server.stop()
    await run
