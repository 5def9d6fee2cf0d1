"""Small programs to run in a simulated world: an echo server and its client."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from harness.simulation.host import Host
from harness.simulation.process import Process
from harness.simulation.world import World

PORT = 9092


class Pair:
    """A world of two hosts, ``alpha`` (where servers run) and ``beta``."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.alpha = world.host("alpha")
        self.beta = world.host("beta")

    def echo(self) -> Process:
        """Start a server on alpha that sends back what it receives."""
        return self.alpha.spawn(echo)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server on alpha, from the host of the calling process."""
        return await asyncio.open_connection("alpha", PORT)

    async def ask(self, data: bytes) -> bytes:
        """Send data on a new connection and return the server's answer."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            return await reader.readexactly(len(data))
        finally:
            writer.close()

    def run(
        self,
        main: Callable[[], Coroutine[Any, Any, Any]],
        host: Host | None = None,
        limit_s: float = 600,
    ) -> Any:
        """Run a program to its end, by default on beta."""
        return self.world.run((host or self.beta).spawn(main), limit_s=limit_s)


async def echo() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", PORT)
    await server.serve_forever()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with World(7) as world:
        yield Pair(world)
