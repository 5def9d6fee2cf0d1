"""A tap sees each byte of a connection once, in order, and may hold it back or kill."""

import asyncio
from typing import Any

import pytest

from harness.simulation.interceptors import Deliver, Hold, Kill, Run, Verdict


class Watch:
    """A tap that records its runs, and returns `verdict` for those that contain `on`."""

    def __init__(self, on: bytes = b"\0", verdict: Verdict | None = None) -> None:
        self.runs: list[Run] = []
        self.on = on
        self.verdict = verdict or Deliver()

    def __call__(self, run: Run) -> Verdict:
        self.runs.append(run)
        if self.on in run.data:
            found = self.verdict
            return Hold(run.data.index(self.on)) if found == Hold() else found
        return Deliver()

    @property
    def data(self) -> bytes:
        return b"".join(run.data for run in self.runs)


def test_tap_sees_all(pair: Any) -> None:
    """Taps see both directions of a connection under one name, each with its end."""
    pair.echo()
    there, back = Watch(), Watch()
    pair.world.network.link("beta", "alpha").taps.append(there)
    pair.world.network.link("alpha", "beta").taps.append(back)

    async def main() -> None:
        assert await pair.ask(b"x" * 300_000) == b"x" * 300_000
        await asyncio.sleep(1)

    pair.run(main)
    assert len(there.data) == len(back.data) == 300_000
    assert {run.connection for run in there.runs} == {run.connection for run in back.runs}
    assert there.runs[0].connection.server == (pair.alpha.ip, 9092)
    assert there.runs[0].to_server
    assert not back.runs[0].to_server
    assert there.runs[-1].data == back.runs[-1].data == b"", "the end is seen, too"
    assert there.runs[0].source == back.runs[0].target == "beta"


def test_other_bytes_in_their_place(pair: Any) -> None:
    """Bytes that a tap delivers in place of others are what the next tap and the receiver see."""
    pair.echo()
    first, second = Watch(b"w", Deliver(b"that was")), Watch()
    pair.world.network.link("beta", "alpha").taps.extend((first, second))

    async def main() -> None:
        assert await pair.ask(b"what was") == b"that was"

    pair.run(main)
    assert (first.data, second.data) == (b"that was", b"that was")


def test_what_a_server_receives_and_sends(pair: Any) -> None:
    """The watcher of a network sees what taps have left of requests, and responses before taps."""
    pair.echo()
    pair.world.network.link("beta", "alpha").taps.append(Watch(b"w", Deliver(b"that was")))
    pair.world.network.link("alpha", "beta").taps.append(Watch(b"t", Deliver(b"something")))
    seen: list[tuple[bool, bytes]] = []
    pair.world.network.watch = lambda run: seen.append((run.to_server, run.data))

    async def main() -> None:
        assert await pair.ask(b"what was") == b"somethin"
        await asyncio.sleep(1)

    pair.run(main)
    assert seen == [(True, b"that was"), (False, b"that was"), (True, b"")], "with the end"


def test_held_bytes_come_later_in_order(pair: Any) -> None:
    """Held bytes and all behind them wait for the release; bytes before them do not."""
    pair.echo()
    watch = Watch(b"h", Hold())
    pair.world.network.link("beta", "alpha").taps.append(watch)

    async def main() -> None:
        reader, writer = await pair.connect()
        writer.write(b"before-hold")
        assert await reader.readexactly(7) == b"before-"
        writer.write(b"-behind")
        await asyncio.sleep(60)
        assert not writer.is_closing(), "what is held is acknowledged: nobody times out"
        assert watch.data == b"before-hold", "what is behind is not judged yet"
        watch.on = b"\0"
        watch.runs[0].release()
        assert await reader.readexactly(11) == b"hold-behind"
        writer.write(b"on")
        assert await reader.readexactly(2) == b"on"
        writer.close()

    pair.run(main)


def test_held_request_outlives_its_sender(pair: Any) -> None:
    """A held request is delivered after its sender has ended, and then the end of the stream."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read())
        writer.close()

    async def server() -> None:
        await (await asyncio.start_server(serve, None, 9092)).serve_forever()

    pair.alpha.spawn(server)
    watch = Watch(b"h", Hold())
    pair.world.network.link("beta", "alpha").taps.append(watch)

    async def sender() -> None:
        _, writer = await pair.connect()
        writer.write(b"held")
        await asyncio.sleep(1)

    process = pair.beta.spawn(sender)

    async def main() -> None:
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5)
        assert got == []
        watch.runs[0].release()
        await asyncio.sleep(0.1)
        assert got == [b"held"]

    pair.run(main)


def test_killed_connection_loses_the_answer(pair: Any) -> None:
    """A tap that kills a connection at the answer resets both ends; the request was handled."""
    handled: list[bytes] = []
    ends: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handled.append(await reader.readexactly(8))
        writer.write(b"answer")
        try:
            await reader.read()
        except OSError as error:
            ends.append(type(error).__name__)
        writer.close()

    async def server() -> None:
        await (await asyncio.start_server(serve, None, 9092)).serve_forever()

    pair.alpha.spawn(server)
    pair.world.network.link("alpha", "beta").taps.append(Watch(b"answer"[:1], Kill()))

    async def main() -> None:
        reader, writer = await pair.connect()
        writer.write(b"question")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        await asyncio.sleep(1)

    pair.run(main)
    assert handled == [b"question"]
    assert ends == ["ConnectionResetError"]


def test_reset_is_the_end_of_what_a_tap_sees(pair: Any) -> None:
    """When a connection is reset, its taps see its end, so that they can forget it."""
    pair.echo()
    watch = Watch()
    pair.world.network.link("alpha", "beta").taps.append(watch)

    async def main() -> None:
        reader, writer = await pair.connect()
        writer.write(b"x")
        await reader.readexactly(1)
        pair.world.network.reset("alpha", "beta")
        writer.close()

    pair.run(main)
    assert [run.data for run in watch.runs] == [b"x", b""]
