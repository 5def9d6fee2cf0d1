"""A program sees the same in a simulated world as on real sockets: TCP as in Linux and asyncio.

Each program plays both ends in one loop, over the loopback, and returns what its protocols saw.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.simulation.world import World

Events = list[Any]
Program = Callable[[], Awaitable[Events]]


class Recorder(asyncio.Protocol):
    """A protocol that records the events of its end; data that came in pieces is joined."""

    def __init__(self, stays_open: bool = False) -> None:
        self.events: Events = []
        self.data = b""
        self.lost = asyncio.get_running_loop().create_future()
        self.made = asyncio.get_running_loop().create_future()
        self.eof = asyncio.get_running_loop().create_future()
        self._stays_open = stays_open

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.events.append("made")
        self.made.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> bool:
        self.events += [len(self.data), "eof"]
        self.eof.set_result(None)
        return self._stays_open

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(f"lost {type(exc).__name__}")
        self.lost.set_result(None)


async def ends(stays_open: bool = False) -> tuple[Recorder, Recorder]:
    """Connect a client to a server and return both protocols, the client's first."""
    loop = asyncio.get_running_loop()
    there = Recorder(stays_open)
    server = await loop.create_server(lambda: there, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    _, here = await loop.create_connection(lambda: Recorder(stays_open), *address)
    await there.made
    server.close()
    return here, there


async def graceful_close() -> Events:
    """All that was written before a close arrives, then the end of the stream."""
    here, there = await ends()
    here.transport.write(b"x" * 1_000_000)
    here.transport.close()
    await asyncio.gather(here.lost, there.lost)
    return [here.events[-1:], there.events]


async def close_with_unread_data() -> Events:
    """A process that closes a connection with unread data resets it."""
    here, there = await ends()
    there.transport.pause_reading()
    here.transport.write(b"unread")
    await asyncio.sleep(0.1)
    there.transport.close()
    await asyncio.gather(here.lost, there.lost)
    return [here.events, there.events]


async def half_close() -> Events:
    """After an end has closed its sending side, it still receives."""
    here, there = await ends(stays_open=True)
    here.transport.write(b"question")
    here.transport.write_eof()
    await there.eof
    there.transport.write(b"answer")
    await asyncio.sleep(0.1)
    there.transport.close()
    await there.lost
    await here.eof
    here.transport.close()
    await here.lost
    return [here.events, here.data, there.events, there.data]


async def write_after_the_peer_closed() -> Events:
    """The first write after the peer's close succeeds.

    Its answer is a RST, so a later one fails.
    """
    here, there = await ends(stays_open=True)
    there.transport.close()
    await there.lost
    await here.eof
    outcomes: Events = []
    for _ in range(3):
        outcomes.append(here.transport.is_closing())
        here.transport.write(b"anybody?")
        await asyncio.sleep(0.1)
    await here.lost
    return [outcomes, here.events]


async def reset_while_writing() -> Events:
    """A peer that aborts with unread data breaks the connection of a writer with data to send."""
    here, there = await ends()
    there.transport.pause_reading()
    here.transport.write(b"x" * 10_000_000)
    await asyncio.sleep(0.1)
    there.transport.abort()
    await asyncio.gather(here.lost, there.lost)
    return [here.events, there.events]


async def back_pressure() -> Events:
    """A peer that does not read pauses the writer; once it reads, everything arrives."""
    here, there = await ends()
    there.transport.pause_reading()
    here.transport.write(b"x" * 20_000_000)
    await asyncio.sleep(0.1)
    waits = here.transport.get_write_buffer_size() > 1_000_000
    there.transport.resume_reading()
    here.transport.close()
    await asyncio.gather(here.lost, there.lost)
    return [waits, here.events, there.events]


async def paused_reader_misses_the_reset() -> Events:
    """A process that has paused reading learns of a reset when it resumes."""
    here, there = await ends()
    here.transport.pause_reading()
    there.transport.pause_reading()
    here.transport.write(b"unread")
    await asyncio.sleep(0.1)
    there.transport.abort()
    await asyncio.sleep(0.1)
    before = list(here.events)
    here.transport.resume_reading()
    await here.lost
    return [before, here.events]


async def data_before_the_reset() -> Events:
    """Data that had arrived before a reset is read before the error."""
    here, there = await ends()
    here.transport.pause_reading()
    there.transport.pause_reading()
    there.transport.write(b"last words")
    here.transport.write(b"unread")
    await asyncio.sleep(0.1)
    there.transport.abort()
    await asyncio.sleep(0.1)
    here.transport.resume_reading()
    await here.lost
    return [here.events, here.data]


async def refused() -> Events:
    """A connect to a port without a listener is refused, and the error names the address."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    server.close()
    await server.wait_closed()
    try:
        await loop.create_connection(asyncio.Protocol, *address)
    except OSError as error:
        return [type(error).__name__, "Connect call failed ('127.0.0.1'," in str(error)]
    return []


async def names_of_ends() -> Events:
    """Each end knows its own address and that of its peer."""
    here, there = await ends()
    names = [end.transport.get_extra_info("sockname") for end in (here, there)]
    peers = [end.transport.get_extra_info("peername") for end in (here, there)]
    of_socket = here.transport.get_extra_info("socket").getsockname()
    here.transport.abort()
    await there.lost
    return [names == peers[::-1], names[0][0], of_socket == names[0]]


async def port_is_taken() -> Events:
    """Two servers cannot listen on one port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    try:
        await loop.create_server(asyncio.Protocol, *server.sockets[0].getsockname())
    except OSError as error:
        return [error.errno]
    finally:
        server.close()
    return []


class Small(asyncio.BufferedProtocol):
    """A protocol that reads into a buffer of three bytes."""

    def __init__(self) -> None:
        self.buffer = bytearray(3)
        self.data = b""
        self.lost = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.buffer[:nbytes]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


async def buffered() -> Events:
    """A buffered protocol receives all bytes, at most one buffer at a time."""
    loop = asyncio.get_running_loop()
    there = Small()
    server = await loop.create_server(lambda: there, "127.0.0.1", 0)
    transport, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
    transport.writelines([b"0123", memoryview(b"4567"), bytearray(b"89")])
    transport.close()
    await there.lost
    server.close()
    return [there.data]


class Fails(asyncio.Protocol):
    """A protocol that raises when data arrives."""

    def data_received(self, data: bytes) -> None:
        raise ValueError("cannot cope")


async def protocol_fails() -> Events:
    """A protocol that raises loses its connection, and the loop's exception handler is called."""
    loop = asyncio.get_running_loop()
    told: Events = []
    loop.set_exception_handler(lambda _, context: told.append(type(context["exception"]).__name__))
    server = await loop.create_server(Fails, "127.0.0.1", 0)
    _, here = await loop.create_connection(Recorder, *server.sockets[0].getsockname())
    here.transport.write(b"x")
    await here.lost
    server.close()
    return [told, here.events]


async def cancelled_connect() -> Events:
    """A cancelled connect leaves no connection behind."""
    here, there = await ends()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
    task = loop.create_task(loop.create_connection(Recorder, *server.sockets[0].getsockname()))
    await asyncio.sleep(0)
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    here.transport.close()
    await there.lost
    server.close()
    return [type(outcome).__name__]


@pytest.mark.parametrize(
    "program",
    [
        graceful_close,
        close_with_unread_data,
        half_close,
        write_after_the_peer_closed,
        reset_while_writing,
        back_pressure,
        paused_reader_misses_the_reset,
        data_before_the_reset,
        refused,
        names_of_ends,
        port_is_taken,
        buffered,
        protocol_fails,
        cancelled_connect,
    ],
)
def test_simulated_is_as_real(program: Any) -> None:
    """The protocols of a program see the same in a simulated world as on real sockets."""
    with World(7) as world:
        simulated = world.run(world.host("alpha").spawn(program), limit_s=60)
    assert simulated == asyncio.run(program())
