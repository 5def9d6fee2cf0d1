"""failed-directory: one of a broker's data directories fails, and the others work (KIP-112).

Every operation in the directory fails with an input/output error, as on a broken disk, also on
files that are open, and also after the broker was started again. A correct broker may exit because
of it. Or it takes the replicas in this directory offline, answers KAFKA_STORAGE_ERROR for them, and
serves those in the other directories; then the controller elects other leaders. It may neither
acknowledge what it has not stored, nor lose what it has stored: the repaired directory contains
what it contained before. As in Kafka, a broker uses a repaired directory only after a restart.
"""

import asyncio
import dataclasses
import random
from typing import Annotated, Any, Protocol

from msgspec import Meta

from model import data_directories
from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanFailDirectory
from model.capabilities.processes import CanKill, CanPause
from model.roles import NodeId
from nemesis import disk
from nemesis import targets as aim
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import (
    NOT_MEASURED,
    Applied,
    Cleanup,
    Effect,
    Environment,
    Fault,
    Package,
    has_brokers,
)

DIRECTORIES_MAX = 1000
LASTING = (0.2, 3.0)
"""The range of the duration, in sessions."""
WITHIN_S = 6.0
"""How long a broker may leave the directory unused: it writes checkpoints every five seconds."""
LOOK_EVERY_S = 0.1
OVERHEAD_S = 4.5
"""The time for proof and heal, mostly that of starting the broker."""

Number = Annotated[int, Meta(ge=1, le=DIRECTORIES_MAX)]


class DirectoryOptions(Options, frozen=True, kw_only=True):
    """The options of ``failed-directory``."""

    directory: Number
    """The number of the data directory, from 1 on, in the order of ``log.dirs``."""


class Divided(Cluster, CanFailDirectory, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one directory of one broker, for much less than a session up to some of them."""
    low, high = LASTING
    duration_s = low * (high / low) ** rng.random() * shape.session_timeout_s
    options = {"directory": rng.randint(1, shape.directories)}
    one = aim.draw_broker(rng, shape)
    return Drawn("failed-directory", duration_s, one, options, overhead_s=OVERHEAD_S)


def refuse(options: DirectoryOptions, targets: Any, environment: Environment) -> str | None:
    """Refuse a directory that no broker has."""
    count = data_directories.count(environment.options)
    if options.directory <= count:
        return None
    return f"directory = {options.directory}: the option {data_directories.OPTION} is {count}"


async def strike(
    cluster: Divided, fault: str, targets: Any, options: DirectoryOptions, rng: random.Random
) -> Applied:
    """Let the directory fail.

    Raises ``ValueError`` if a second directory would fail: a cluster need not survive that.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    if not running:
        return Applied(nodes, NOT_MEASURED)
    if len(running) > 1:
        raise ValueError(f"one failed directory at a time, not those of {', '.join(running)}")
    [node] = running
    for other in cluster.brokers:
        if failed := await _failed(cluster, other):
            raise ValueError(f"one failed directory at a time: that of {other} fails ({failed[0]})")
    await cluster.fail_directory(node, options.directory)
    return Applied((node,), NOT_MEASURED, options.directory)


async def _failed(cluster: CanFailDirectory, node: NodeId) -> list[int]:
    """Return the numbers of the node's directories that fail."""
    numbers = range(1, cluster.directory_count(node) + 1)
    return [each for each in numbers if await cluster.failed_operations(node, each) is not None]


async def measure(cluster: Divided, applied: Applied) -> Effect:
    """Proved when an operation in the directory has failed.

    If the broker does not use the directory meanwhile, a probe does.
    """
    if applied.undo is None:
        return Effect(False, "no target was running")
    [node], number = applied.targets, applied.undo
    failed = await cluster.failed_operations(node, number) or 0
    for _ in range(round(WITHIN_S / LOOK_EVERY_S)):
        if failed:
            break
        await asyncio.sleep(LOOK_EVERY_S)
        failed = await cluster.failed_operations(node, number) or 0
    if not failed:
        works = await cluster.probe_directory(node, number)
        probe = "works" if works else "fails"
        unused = f"{node}: no operation used directory {number}; for a probe it {probe}"
        return Effect(not works, unused)
    state = "runs" if await cluster.is_running(node) else "has ended"
    operations = f"{failed} operation{'s' if failed > 1 else ''}"
    return Effect(True, f"{node}: {operations} in directory {number} failed; the broker {state}")


async def apply(
    cluster: Divided, fault: str, targets: Any, options: DirectoryOptions, rng: random.Random
) -> Applied:
    """Let the directory fail, and measure that an operation has failed."""
    applied = await strike(cluster, fault, targets, options, rng)
    return dataclasses.replace(applied, effect=await measure(cluster, applied))


async def heal(cluster: Divided, applied: Applied) -> Effect:
    """Repair the directory, and restart the broker, or start it if it is down.

    Proved when the broker runs and the directory works. A broker that another fault keeps down is
    not started.
    """
    if applied.undo is None:
        return Effect(True, "no directory failed")
    [node], number = applied.targets, applied.undo
    await cluster.repair_directory(node, number)
    if node in applied.kept_down:
        state, runs = "is kept down by another fault", True
    else:
        state = await disk.run_again(cluster, node, restarts=True)
        runs = await cluster.is_running(node)
    works = await cluster.failed_operations(node, number) is None
    condition = "works" if works else "fails"
    return Effect(runs and works, f"{node} {state}, directory {number} {condition}")


async def clean(cluster: Divided, node: NodeId) -> None:
    """Repair what still fails on a node, and restart the node if it runs."""
    failed = await _failed(cluster, node)
    for number in failed:
        await cluster.repair_directory(node, number)
    if failed and await cluster.is_running(node):
        await disk.run_again(cluster, node, restarts=True)


PACKAGE = Package(
    name="directories",
    suits=has_brokers,
    room=lambda shape: shape.directories > 1,
    faults=(Fault("failed-directory", DirectoryOptions, aim.ONE_BROKER, refuse),),
    needs=(CanFailDirectory, CanKill, CanPause, HasRoles),
    color="#a55194",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    strike=strike,
    measure=measure,
    cleanups=(Cleanup("the failed directory", node=clean),),
    weight=2.0,  # few runs have brokers with several directories
)
