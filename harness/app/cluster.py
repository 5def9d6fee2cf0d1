"""A cluster for experiments, which a detached keeper process runs after the command has ended.

The keeper is this module as a program. It owns the nodes, so that no run takes them for strays
while the keeper lives; SIGTERM ends the keeper and its nodes. ``cluster up`` writes to the keeper's
standard input once it has seen that the cluster is up. If that input closes earlier, the keeper
ends: an ``up`` that is interrupted or killed leaves no cluster.
"""

import asyncio
import contextlib
import fcntl
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from harness.app import catalogue, files, leftovers, private, signals
from harness.app.refused import Refused
from harness.cluster.mesh.proxied_cluster import ProxiedCluster
from harness.cluster.node import ClusterError
from harness.cluster.ports import HOST
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.registry import Known, known, state_folder
from model.plan import Plan

START_MARGIN_S = 75.0
"""How much longer than the slowest node a cluster may take to start."""
STOP_TIMEOUT_S = 90.0
"""Longer than any target needs: the nodes of a killed keeper remain until the next start."""
MARK = "FAULTLINE_KEEPS"
"""The environment variable, set for a keeper and its children, that names the cluster's folder."""
KEEP = b"keep\n"
"""What ``up`` writes to the keeper once it has seen that the cluster is up."""
PORT_MAX = 65_535


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster that is up."""

    bootstrap: str
    folder: str
    """The folder with the nodes' logs and data."""
    nodes: dict[str, str] = {}
    """The address of each node past the proxies."""
    toxiproxy: str | None = None
    """The URL of the Toxiproxy whose proxies carry the links."""
    keeper: Known


class CannotStart(Exception):
    """The cluster did not come up; the message says why."""


def folder() -> Path:
    """Return the folder of this user's one cluster."""
    return state_folder().parent / "cluster"


def status() -> Up | None:
    """Return the cluster that is up; ``None`` if none is."""
    try:
        up = msgspec.json.decode((folder() / "up.json").read_bytes(), type=Up)
    except (OSError, msgspec.MsgspecError):
        return None
    return up if up.keeper.alive() else None


def up(plan: Plan, say: Callable[[str], None], port: int | None = None) -> Up:
    """Start the cluster of a resolved plan; long steps are reported through ``say``.

    Clients reach the first broker at ``port``, the second at the next port, and so on. Raises
    :class:`Refused` if a cluster is up, or is being started or stopped by another command, and
    :class:`CannotStart` if the cluster does not come up. Whatever ends this call early also ends
    the cluster.
    """
    with _locked() as is_ours:
        if not is_ours:
            raise Refused(
                "cluster up: another command is starting or stopping the cluster;"
                " cluster status shows when it is up, cluster down stops it"
            )
        if (there := status()) is not None:
            raise Refused(
                f"cluster up: a cluster is already up at {there.bootstrap}; cluster down stops it"
            )
        if port is not None:
            _refuse_ports(plan, port)
        _end_keepers()  # a cluster whose files are lost may still have one
        try:
            asyncio.run(_prepare(plan, say))
        except ClusterError as error:
            raise CannotStart(str(error)) from error
        home = folder()
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True, mode=0o700)
        try:
            return _kept(plan, home, port)
        except BaseException:
            with signals.ignored():
                _end_keepers()
                shutil.rmtree(home, ignore_errors=True)
            raise


def down() -> bool:
    """Stop the cluster, even if :func:`status` does not see it, and remove its data.

    Returns whether there was one. An ``up`` in progress ends, too.
    """
    found = _end_keepers()
    with _locked(STOP_TIMEOUT_S) as is_ours:
        if not is_ours:
            raise CannotStart("cluster down: another command is still using the cluster")
        found = _end_keepers() or found
        found = leftovers.remove().is_any or found
        found = folder().exists() or found
        shutil.rmtree(folder(), ignore_errors=True)
    return found


def remove_leftovers() -> list[Path]:
    """Remove the folder of a cluster whose keeper has ended, and return the removed folders.

    Removes nothing while the cluster is up or a command starts or stops it.
    """
    with _locked() as is_ours:
        home = folder()
        if not is_ours or not home.exists() or _keepers():
            return []
        shutil.rmtree(home, ignore_errors=True)
        return [home]


def _kept(plan: Plan, home: Path, port: int | None) -> Up:
    """Start a keeper, and hand the cluster over to it once it is up."""
    (home / "plan.json").write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "harness.app.cluster", str(home)]
    with (home / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            [*command, *([] if port is None else [str(port)])],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, MARK: str(home)},
            start_new_session=True,
        )
    assert keeper.stdin is not None, "the keeper was started with a pipe"
    with keeper.stdin as handle:
        is_over = lambda: status() is not None or keeper.poll() is not None  # noqa: E731
        _within(patience_s(plan), is_over)
        if (there := status()) is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(handle.fileno(), KEEP)
                return there
    lines = (home / "keeper.log").read_text(errors="replace").strip().splitlines()
    raise CannotStart(lines[-1] if lines else "the cluster was not ready in time")


def patience_s(plan: Plan) -> float:
    """Return how long to wait for the cluster of a plan."""
    return START_MARGIN_S + catalogue.system_of(plan).start_timeout_s


def _refuse_ports(plan: Plan, first: int) -> None:
    count = len(catalogue.system_of(plan).layout(plan).members)
    last = first + count - 1
    if first < 1 or last > PORT_MAX:
        raise Refused(f"--port {first}: all {count} ports must be from 1 to {PORT_MAX}")
    for port in range(first, last + 1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError as error:
                raise Refused(
                    f"--port {first}: port {port} cannot be used: {error.strerror}"
                ) from None


@contextlib.contextmanager
def _locked(patience_s: float = 0.0) -> Iterator[bool]:
    """Try to take the lock for starting or stopping the cluster; yield whether this succeeded."""
    path = folder().parent / "cluster.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def take() -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    try:
        yield _within(patience_s, take)
    finally:
        os.close(descriptor)


def _keepers() -> list[psutil.Process]:
    """Return the keepers of this user's cluster, found by their environment.

    Their files may be lost. The children of a keeper have the same environment, but run another
    program.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_ours = process.uids().real == os.getuid()
            if is_ours and process.environ().get(MARK) == str(folder()):
                words = process.cmdline()
                if words[1:4] == ["-m", "harness.app.cluster", str(folder())]:
                    found.append(process)
    return found


def _end_keepers() -> bool:
    """End every keeper and remove what killed keepers left; return whether there was one."""
    keepers = _keepers()
    for keeper in keepers:
        with contextlib.suppress(psutil.NoSuchProcess):
            keeper.terminate()
    _, slow = psutil.wait_procs(keepers, STOP_TIMEOUT_S)
    for keeper in slow:
        with contextlib.suppress(psutil.NoSuchProcess):
            keeper.kill()
    psutil.wait_procs(slow)
    leftovers.remove()
    _end_restarted()
    return bool(keepers)


def _end_restarted() -> None:
    """End the nodes that a ``start.sh`` has started, which no keeper owns."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_ours = process.uids().real == os.getuid() and process.pid != os.getpid()
            if is_ours and process.environ().get(MARK) == str(folder()):
                process.kill()
                left.append(process)
    psutil.wait_procs(left, STOP_TIMEOUT_S)


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True


async def _prepare(plan: Plan, say: Callable[[str], None]) -> None:
    system = catalogue.system_of(plan)
    await system.prepare(plan, say)
    await catalogue.TARGETS[plan.target].prepare(plan, system, say)


async def _keep(home: Path, port: int | None) -> None:
    """Run the keeper: start the cluster, record that it is up, wait for SIGTERM, stop the cluster.

    While the cluster starts, a signal also ends the keeper, and so does the end of its standard
    input before :data:`KEEP` arrives.
    """
    plan = msgspec.json.decode((home / "plan.json").read_bytes(), type=Plan)
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None, "this coroutine runs in a task"
    for number in signals.ending():
        loop.add_signal_handler(number, this.cancel)
    loop.add_reader(0, _heard, loop, this)
    await catalogue.system_of(plan).prepare(plan, lambda line: None)  # in this process, too
    cluster: Any = catalogue.maker_of(plan)(plan, home, random.Random(f"{plan.seed}:cluster"))
    if port is not None:
        assert isinstance(cluster, ProxiedCluster), "a virtual cluster has no keeper"
        members = cluster.layout.members
        cluster.client_ports = {node: port + n for n, node in enumerate(members)}
    try:
        await cluster.start()
        keeper = known(os.getpid(), "keeper")
        assert keeper is not None, "the running process exists"
        if isinstance(cluster, Processes):
            cluster.write_scripts({MARK: str(home)})
        there = Up(
            bootstrap=cluster.bootstrap(),
            folder=str(home),
            nodes={node: str(cluster.direct(node)) for node in cluster.nodes},
            toxiproxy=f"http://{cluster.mesh.api}",
            keeper=keeper,
        )
        files.replace(home / "up.json", msgspec.json.encode(there))
        await asyncio.Event().wait()
    finally:
        for number in signals.ending():  # a second signal must not interrupt the stop
            loop.add_signal_handler(number, lambda: None)
        loop.remove_reader(0)
        await cluster.stop()


def _heard(loop: asyncio.AbstractEventLoop, keeper: "asyncio.Task[Any]") -> None:
    """Handle standard input: cancel the keeper if it ends before :data:`KEEP`."""
    said = os.read(0, len(KEEP))
    loop.remove_reader(0)
    if said != KEEP:
        keeper.cancel()


if __name__ == "__main__":
    with private.writing(), contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_keep(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else None))
