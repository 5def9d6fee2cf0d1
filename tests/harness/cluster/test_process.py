"""The process of a node: start, signals and supervision."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from harness.cluster.node import Exit, NodeError
from harness.cluster.polling import until
from harness.cluster.process import Process
from harness.cluster.registry import Registry

LISTENER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
os.write(1, b"up\\n")
time.sleep(60)
"""
"""Writes a whole line at once.

With ``PYTHONUNBUFFERED`` in the environment, ``print`` would write the end of the line by a second
call, before which a test that has read "up" may kill the process.
"""


class Nodes:
    """Make nodes and collect the ends that they report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = Registry("test", folder / "state", folder / "pids.json")
        self.exits: list[Exit] = []
        self.made: list[Process] = []

    def make(self, code: str = LISTENER) -> Process:
        argv = [sys.executable, "-c", code]
        node = Process("broker-1", argv, self.folder / "n", self.registry, self.exits.append)
        self.made.append(node)
        return node


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    made = Nodes(tmp_path)
    yield made
    for node in made.made:
        await node.kill()


async def up(node: Process) -> None:
    async def said() -> bool:
        return await node.last_line() == "up"

    async with asyncio.timeout(5):
        await node.start()
        await until(said, 0.01)


async def test_killed_node_is_gone_and_that_is_no_crash(nodes: Nodes) -> None:
    """After a kill the process has been waited for, and no crash is reported."""
    node = nodes.make()
    await up(node)
    assert node.pid is not None
    await node.kill()
    assert node.pid is None
    assert nodes.exits == []
    assert list((nodes.folder / "state").iterdir()) == []


async def test_clean_stop_has_exit_status_0(nodes: Nodes) -> None:
    """A node that obeys SIGTERM ends with its own status, also if it was paused."""
    node = nodes.make()
    await up(node)
    await node.pause()
    assert await node.stop(5) == 0


async def test_deaf_node_is_killed(nodes: Nodes) -> None:
    """A node that ignores SIGTERM is killed after the time-out, and the status says so."""
    node = nodes.make(LISTENER.replace("sys.exit(0)", "None"))
    await up(node)
    assert await node.stop(0.05) == -9


async def test_pause_is_measured(nodes: Nodes) -> None:
    """A paused process is stopped, as the system reports, until it is resumed."""
    node = nodes.make()
    await up(node)
    await node.pause()

    async def paused() -> bool:
        return await node.is_paused()

    async with asyncio.timeout(5):
        await until(paused, 0.001)
    await node.resume()
    assert not await node.is_paused()


async def test_crash_is_noticed_with_its_last_words(nodes: Nodes) -> None:
    """A node that ends by itself is reported with its status and last line."""
    node = nodes.make("import sys; print('first', flush=True); sys.exit('out of luck')")
    await node.start()

    async def ended() -> bool:
        return bool(nodes.exits)

    async with asyncio.timeout(5):
        await until(ended, 0.01)
    [end] = nodes.exits
    assert (end.node, end.status, end.last_line) == ("broker-1", 1, "out of luck")


async def test_crash_right_before_a_kill_is_a_crash(nodes: Nodes) -> None:
    """A node that had ended before its kill is reported as crashed, even if unnoticed before."""
    node = nodes.make("import sys; sys.exit(3)")
    await node.start()
    with contextlib.suppress(psutil.NoSuchProcess):
        while node.pid and psutil.Process(node.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)  # noqa: ASYNC251 - the loop must not notice the end before the kill
    await node.kill()
    assert [end.status for end in nodes.exits] == [3]


async def test_restart_keeps_the_log(nodes: Nodes) -> None:
    """The log of the first process is still there after the second has started."""
    node = nodes.make()
    await up(node)
    await node.kill()
    await node.start()

    async def said_again() -> bool:
        return node.log.read_text().splitlines() == ["up", "up"]

    async with asyncio.timeout(5):
        await until(said_again, 0.01)
    with pytest.raises(NodeError, match="already runs"):
        await node.start()


async def test_nodes_log_in_utc(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's log shows UTC whatever the time zone of this machine is."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    node = nodes.make("import time; print(time.strftime('%z'), flush=True); time.sleep(60)")
    await node.start()

    async def said() -> bool:
        return await node.last_line() != ""

    async with asyncio.timeout(5):
        await until(said, 0.01)
    assert await node.last_line() == "+0000"


async def test_nothing_to_signal(nodes: Nodes) -> None:
    """A node that does not run cannot be paused; killing or stopping it again is harmless."""
    node = nodes.make()
    with pytest.raises(NodeError, match="does not run"):
        await node.pause()
    await node.kill()
    assert await node.stop(1) == 0
    assert await node.last_line() == ""


async def test_a_script_starts_a_node_again(nodes: Nodes) -> None:
    """A user's script starts a node that has been killed, marked, and does nothing if it runs."""
    node = nodes.make()
    await up(node)
    node.write_script({"FAULTLINE_TEST_MARK": "it's one"})
    script, pid = node.folder / "start.sh", node.folder / "pid"
    assert int(pid.read_text()) == node.pid

    async def run() -> psutil.Process:
        shell = await asyncio.create_subprocess_exec(str(script))
        assert await shell.wait() == 0
        return psutil.Process(int(pid.read_text()))

    assert (await run()).pid == node.pid
    await node.kill()
    again = await run()

    async def is_marked() -> bool:  # once the shell's child has become the node
        return bool(again.environ().get("FAULTLINE_TEST_MARK") == "it's one")

    try:
        async with asyncio.timeout(5):
            await until(is_marked, 0.01)
        assert (await run()).pid == again.pid
    finally:
        again.kill()
