"""TCP when processes, hosts and links fail, which a test on one real machine cannot show."""

import asyncio
import errno
import socket
from contextlib import suppress
from typing import Any

import pytest

from harness.simulation.segment import TcpOptions

BUFFERS = TcpOptions().send_buffer_bytes + TcpOptions().receive_buffer_bytes


async def sink(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accept a connection and read nothing from it."""
    await asyncio.sleep(100_000)


async def serve_sink() -> None:
    server = await asyncio.start_server(sink, None, 9092)
    await server.serve_forever()


async def hello(pair: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection and exchange data over it."""
    reader, writer = await pair.connect()
    writer.write(b"hello")
    await reader.readexactly(5)
    return reader, writer


# Processes.


def test_killed_with_unread_data_resets(pair: Any) -> None:
    """When a process is killed with unread bytes, its kernel sends a RST."""
    server = pair.alpha.spawn(serve_sink)

    async def main() -> None:
        reader, writer = await pair.connect()
        server.pause()
        writer.write(b"unread")
        await asyncio.sleep(0.1)
        server.kill()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()

    pair.run(main)


def test_what_the_kernel_took_survives_a_kill(pair: Any) -> None:
    """Bytes that a killed process had handed to its kernel arrive; then comes the end."""

    async def talker() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x" * 1_000_000)
            await asyncio.sleep(1000)

        server = await asyncio.start_server(talk, None, 9092)
        await server.serve_forever()

    process = pair.alpha.spawn(talker)

    async def main() -> int:
        reader, writer = await asyncio.open_connection("alpha", 9092, limit=1000)
        await asyncio.sleep(1)
        process.kill()
        data = await reader.read(2_000_000)
        while more := await reader.read(2_000_000):
            data += more
        writer.close()
        return len(data)

    received = pair.run(main)
    assert received < 1_000_000, "what waited in the process itself is lost"
    assert BUFFERS <= received <= BUFFERS + 100_000


def test_paused_process_has_a_living_kernel(pair: Any) -> None:
    """Peers can connect to a stopped process up to its backlog, and send up to its window."""

    async def serve() -> None:
        server = await asyncio.start_server(sink, None, 9092, backlog=3)
        await server.serve_forever()

    server = pair.alpha.spawn(serve)

    async def main() -> None:
        await asyncio.sleep(0.01)
        server.pause()
        writers = [(await pair.connect())[1] for _ in range(4)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await pair.connect()
        writers[0].write(b"x" * 1_000_000)
        await asyncio.sleep(60)
        unsent = writers[0].transport.get_write_buffer_size()
        assert 1_000_000 - BUFFERS <= unsent <= 1_000_000 - BUFFERS * 5 / 6, "a third may be free"
        assert not writers[0].is_closing(), "a window that stays shut is no failure"
        server.resume()
        await asyncio.sleep(10)
        (await pair.connect())[1].close()
        for writer in writers:
            writer.close()

    pair.run(main)


def test_clients_of_a_closed_listener_are_reset(pair: Any) -> None:
    """Connections that a process has not accepted are reset when it closes its listener."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, None, 9092, start_serving=False
        )
        await asyncio.sleep(1)
        server.close()
        await server.wait_closed()

    pair.alpha.spawn(serve)

    async def main() -> None:
        await asyncio.sleep(0.1)
        reader, writer = await pair.connect()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()

    pair.run(main)


# Hosts.


def test_power_loss_is_silent(pair: Any) -> None:
    """Peers of a host that loses power notice it only when their own bytes stay unacknowledged."""
    pair.echo()

    async def main() -> None:
        reader, writer = await hello(pair)
        idle_reader, idle_writer = await hello(pair)
        pair.alpha.power_off()
        with suppress(TimeoutError):
            async with asyncio.timeout(100):
                await idle_reader.read()
        assert not idle_writer.is_closing(), "half-open: nobody has told it"
        began = pair.world.now
        writer.write(b"anybody?")
        with pytest.raises(TimeoutError) as told:
            await reader.read()
        assert told.value.errno == errno.ETIMEDOUT
        assert 20 < pair.world.now - began < 30
        idle_writer.close()
        writer.close()

    pair.run(main)


def test_connect_to_nobody_times_out(pair: Any) -> None:
    """A connect to a host without power, or to an unused address, times out after 31 s."""
    pair.alpha.power_off()

    async def main() -> None:
        for host in ("alpha", "10.9.9.9"):
            began = pair.world.now
            with pytest.raises(TimeoutError, match="Connect call failed") as told:
                await asyncio.open_connection(host, 9092)
            assert told.value.errno == errno.ETIMEDOUT
            assert 31 <= pair.world.now - began < 32

    pair.run(main)


def test_rebooted_host_resets(pair: Any) -> None:
    """A rebooted host has forgotten its connections and resets a peer that sends on one."""
    pair.echo()

    async def main() -> None:
        reader, writer = await hello(pair)
        pair.alpha.power_off()
        await asyncio.sleep(5)
        pair.alpha.power_on()
        await asyncio.sleep(5)
        writer.write(b"still there?")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()
        pair.echo()
        await asyncio.sleep(0.1)
        assert await pair.ask(b"anew") == b"anew"
        writer.close()

    pair.run(main)


def test_a_listener_of_a_process_without_power_does_not_close_its_successor(pair: Any) -> None:
    """The coroutines of a process that lost power may be closed late, and close its listener."""
    address = (None, 9092, 10, lambda: None)
    lost = pair.alpha.stack.listen(*address, owner="lost")
    pair.alpha.power_off()
    pair.alpha.power_on()
    later = pair.alpha.stack.listen(*address, owner="later")
    lost.close()
    with pytest.raises(OSError, match="already in use"):
        pair.alpha.stack.listen(*address, owner="third")
    later.close()
    pair.alpha.stack.listen(*address, owner="third")


def test_refused_after_a_round_trip(pair: Any) -> None:
    """A host without a listener on the port refuses a connect after one round trip."""

    async def main() -> float:
        began = pair.world.now
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()
        return float(pair.world.now - began)

    assert 0.0004 < pair.run(main) < 0.003


def test_names(pair: Any) -> None:
    """Host names, addresses and the loopback lead to their hosts; other names are not resolved."""
    pair.echo()

    async def main() -> None:
        await asyncio.sleep(0.1)
        for host in ("alpha", pair.alpha.ip):
            _, writer = await asyncio.open_connection(host, 9092)
            assert writer.get_extra_info("peername") == (pair.alpha.ip, 9092)
            assert writer.get_extra_info("sockname")[0] == pair.beta.ip
            writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("localhost", 9092)
        with pytest.raises(socket.gaierror):
            await asyncio.open_connection("gamma", 9092)
        found = await asyncio.get_running_loop().getaddrinfo("alpha", 9092)
        assert [entry[4] for entry in found] == [(pair.alpha.ip, 9092)]
        with pytest.raises(OSError, match="Cannot assign"):
            await asyncio.start_server(sink, "alpha", 1)

    pair.run(main)


# Links.


@pytest.mark.parametrize("direction", [("beta", "alpha"), ("alpha", "beta")])
def test_one_way_cut_stalls_both_ways(pair: Any, direction: tuple[str, str]) -> None:
    """If one direction is cut, no answer comes; after the heal it does.

    It is late by up to the last back-off.
    """
    pair.echo()
    network = pair.world.network

    async def main() -> None:
        reader, writer = await hello(pair)
        network.cut(*direction)
        writer.write(b"once")
        healed_at = None
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await reader.readexactly(4)
                raise AssertionError("nothing comes over a cut")
        network.heal(*direction)
        healed_at = pair.world.now
        assert await reader.readexactly(4) == b"once", "and only once"
        assert pair.world.now - healed_at < 6.5
        writer.write(b"again")
        assert await reader.readexactly(5) == b"again"
        writer.close()

    pair.run(main)
    lost = [network.link(*pair_of).lost for pair_of in (direction, direction[::-1])]
    assert lost[0] > 0, "a cut leaves a proof behind"
    assert lost[1] == 0


def test_data_under_way_is_lost_in_a_cut(pair: Any) -> None:
    """A cut also drops the data that is already on the wire."""
    pair.echo()
    link = pair.world.network.link("beta", "alpha")

    async def main() -> None:
        _, writer = await hello(pair)
        link.latency_s = 1
        writer.write(b"under way")
        await asyncio.sleep(0.5)
        pair.world.network.cut("beta", "alpha")
        await asyncio.sleep(1)
        assert link.lost > 0
        writer.close()

    pair.run(main)


def test_cut_for_too_long_ends_the_connection(pair: Any) -> None:
    """Both ends of a connection whose bytes stay unacknowledged give it up (ETIMEDOUT)."""
    ends: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(100):
                writer.write(data)
        except OSError as error:
            ends.append(error)
        writer.close()

    async def server() -> None:
        await (await asyncio.start_server(serve, None, 9092)).serve_forever()

    pair.alpha.spawn(server)

    async def main() -> None:
        reader, writer = await hello(pair)
        writer.write(b"one more")
        await asyncio.sleep(0.0003)
        pair.world.network.cut("alpha", "beta")
        with pytest.raises(TimeoutError):
            await reader.read()
        writer.close()
        await asyncio.sleep(30)

    pair.run(main)
    assert [type(error) for error in ends] == [TimeoutError]


def test_reset_ends_both_ends(pair: Any) -> None:
    """A reset between two hosts is an error at either end; new connections succeed."""
    pair.echo()

    async def main() -> None:
        reader, writer = await hello(pair)
        assert pair.world.network.reset("alpha", "beta") == 2
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert await pair.ask(b"anew") == b"anew"

    pair.run(main)


def test_refuse_spares_what_exists(pair: Any) -> None:
    """While a link refuses, connects fail at once and existing connections stay usable."""
    pair.echo()
    network = pair.world.network

    async def main() -> None:
        reader, writer = await hello(pair)
        network.refuse("beta", "alpha")
        with pytest.raises(ConnectionRefusedError):
            await pair.connect()
        writer.write(b"still")
        assert await reader.readexactly(5) == b"still"
        network.admit("beta", "alpha")
        assert await pair.ask(b"x") == b"x"
        writer.close()

    pair.run(main)


def test_latency_and_bandwidth(pair: Any) -> None:
    """A link's latency and bandwidth apply to its own direction."""
    pair.echo()
    there = pair.world.network.link("beta", "alpha")

    async def main() -> tuple[float, float]:
        reader, writer = await hello(pair)
        there.latency_s, there.jitter_s = 0.5, 0.25
        began = pair.world.now
        writer.write(b"x")
        await reader.readexactly(1)
        slow = pair.world.now - began
        there.latency_s, there.jitter_s, there.bytes_per_s = 0.0002, 0, 100_000
        began = pair.world.now
        writer.write(b"x" * 200_000)
        await reader.readexactly(200_000)
        writer.close()
        return slow, pair.world.now - began

    slow, narrow = pair.run(main)
    assert 0.5 < slow < 0.76
    assert 2 <= narrow < 2.1


def test_bytes_keep_their_order(pair: Any) -> None:
    """Jitter, torn segments and repeated cuts do not change the stream of bytes."""
    pair.echo()
    link = pair.world.network.link("beta", "alpha")
    link.jitter_s = 0.05
    data = bytes(range(256)) * 2000

    async def main() -> bytes:
        reader, writer = await pair.connect()

        async def write() -> None:
            for at in range(0, len(data), 5000):
                writer.write(data[at : at + 5000])
                await asyncio.sleep(0.01)

        async def disturb() -> None:
            for number in range(10):
                await asyncio.sleep(0.1)
                link.is_cut = number % 2 == 0

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            group.create_task(disturb())
            reading = group.create_task(reader.readexactly(len(data)))
        writer.close()
        received: bytes = reading.result()
        return received

    assert pair.run(main) == data
    assert link.lost > 10
