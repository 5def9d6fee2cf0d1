"""A cluster to play with: a detached keeper holds it up, over the end of the command.

The keeper is this module as a program. It is the owner of the nodes, so that no run takes them for
strays while it lives; SIGTERM ends it and them.
"""

import asyncio
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from harness.app import catalogue, files
from harness.app.refused import Refused
from harness.cluster.node import ClusterError
from harness.cluster.registry import Known, known, reap, state_folder
from model.plan import Plan

START_TIMEOUT_S = 75.0
STOP_TIMEOUT_S = 90.0
"""Longer than any target needs: a keeper that is killed leaves its nodes to the next start."""


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a cluster that is up."""

    bootstrap: str
    folder: str
    """Holds the nodes' logs and data."""
    keeper: Known


class CannotStart(Exception):
    """The cluster did not come up; the message says why."""


def folder() -> Path:
    """Where the one cluster of this user lives."""
    return state_folder().parent / "cluster"


def status() -> Up | None:
    """The cluster that is up, if one is."""
    try:
        up = msgspec.json.decode((folder() / "up.json").read_bytes(), type=Up)
    except (OSError, msgspec.MsgspecError):
        return None
    return up if up.keeper.alive() else None


def up(plan: Plan, say: Callable[[str], None]) -> Up:
    """Start the cluster of a resolved plan; raises :class:`Refused` when there is one already,
    :class:`CannotStart` when it does not come up. ``say`` hears of what takes long."""
    if (there := status()) is not None:
        raise Refused(f"cluster up: one is up already, at {there.bootstrap}; cluster down ends it")
    try:
        asyncio.run(_prepare(plan, say))
    except ClusterError as error:
        raise CannotStart(str(error)) from error
    home = folder()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "plan.json").write_bytes(msgspec.json.encode(plan))
    with (home / "keeper.log").open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "harness.app.cluster", str(home)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    if not _within(START_TIMEOUT_S, lambda: status() is not None or keeper.poll() is not None):
        keeper.terminate()
    there = status()
    if there is None:
        lines = (home / "keeper.log").read_text(errors="replace").strip().splitlines()
        raise CannotStart(lines[-1] if lines else "it was not ready in time")
    return there


def down() -> bool:
    """End the cluster and remove its data; was there one?"""
    there = status()
    if there is not None and (keeper := there.keeper.process()) is not None:
        keeper.terminate()
        try:
            keeper.wait(STOP_TIMEOUT_S)
        except psutil.TimeoutExpired:
            keeper.kill()
            keeper.wait()
            reap()
    shutil.rmtree(folder(), ignore_errors=True)
    return there is not None


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True


async def _prepare(plan: Plan, say: Callable[[str], None]) -> None:
    await catalogue.TARGETS[plan.target].prepare(say)


async def _keep(home: Path) -> None:
    """The keeper: start, say so, wait for SIGTERM, stop."""
    plan = msgspec.json.decode((home / "plan.json").read_bytes(), type=Plan)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    make = catalogue.TARGETS[plan.target].make
    cluster = make(plan, home, random.Random(f"{plan.seed}:cluster"))
    try:
        await cluster.start()
        keeper = known(psutil.Process().pid, "keeper")
        assert keeper is not None, "this process exists"
        there = Up(bootstrap=cluster.bootstrap(), folder=str(home), keeper=keeper)
        files.replace(home / "up.json", msgspec.json.encode(there))
        await stop.wait()
    finally:
        await cluster.stop()


if __name__ == "__main__":
    asyncio.run(_keep(Path(sys.argv[1])))
