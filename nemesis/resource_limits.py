"""squeeze: a broker has hardly any CPU, or hardly more memory than it uses.

Without CPU the broker is alive and connected, and late with everything: its session may expire
while its connections stay open. Without memory it continues until it needs more. Then the kernel
kills it, in the middle of whatever made it grow.
"""

import asyncio
import math
import random
from collections.abc import Sequence
from typing import Annotated, Any, Protocol

from msgspec import Meta

from model.capabilities.cluster import Cluster
from model.capabilities.control_plane import HasRoles
from model.capabilities.processes import CanKill, CanLimitResources, CanPause, ResourceUsage
from model.roles import NodeId
from nemesis import targets as aim
from nemesis import verification
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.package import Applied, Cleanup, Effect, Fault, Package

FAULTS = ("squeeze-cpu", "squeeze-memory")

CPUS = (0.02, 0.1)
"""The range from which the CPU limit is drawn."""
HEADROOM_BYTES = (2 << 20, 8 << 20)
"""The range from which the headroom is drawn, in whole pages."""
PAGE_BYTES = 4096
CLOSER = 16
"""The divisor that reduces the headroom while nothing shows that memory is scarce.

The kernel charges memory in units of a quarter of a megabyte: with less headroom than that, any new
page meets the limit.
"""
Limits = tuple[float, int]
"""CPUs and bytes; 0 means no limit."""

OVERHEAD_S = {"squeeze-cpu": 4.0, "squeeze-memory": 10.0}
"""The time to wait for throttling, to lower the memory limit, and to start a killed broker."""


class CpuOptions(Options, frozen=True, kw_only=True):
    """The options of ``squeeze-cpu``."""

    cpus: Annotated[float, Meta(gt=0, le=1024, description="CPUs")]
    """The limit."""


class MemoryOptions(Options, frozen=True, kw_only=True):
    """The options of ``squeeze-memory``."""

    headroom_bytes: Annotated[int, Meta(ge=0, le=1 << 40, description="bytes")]
    """How much more memory than it uses a broker may use."""


class Limited(Cluster, CanLimitResources, CanKill, CanPause, HasRoles, Protocol):
    """The capabilities that this package needs from a cluster."""


def draw(rng: random.Random, shape: ClusterShape) -> Drawn:
    """Draw one broker, for less or more than its session, with no other fault active.

    A broker with hardly any CPU may answer no probe in time, so that no link to it can be proved
    cut or whole; and a broker that is cut off does nothing that would need more memory.
    """
    fault = rng.choice(FAULTS)
    if fault == "squeeze-cpu":
        options: dict[str, Any] = {"cpus": round(rng.uniform(*CPUS), 3)}
    else:
        pages = rng.randint(*(bytes_ // PAGE_BYTES for bytes_ in HEADROOM_BYTES))
        options = {"headroom_bytes": pages * PAGE_BYTES}
    return Drawn(
        fault,
        rng.uniform(0.5, 2.5) * shape.session_timeout_s,
        aim.draw_one(rng, shape),
        options,
        alone=True,
        overhead_s=OVERHEAD_S[fault],
    )


async def apply(
    cluster: Limited,
    fault: str,
    targets: Any,
    options: CpuOptions | MemoryOptions,
    rng: random.Random,
) -> Applied:
    """Limit CPU or memory of the targets that run.

    CPU is proved when the limit is in force and the scheduler has throttled the node since. Memory
    is proved when the limit is in force and the node has met it since, or the OOM killer has come;
    until then the limit is lowered step by step.
    """
    nodes = await aim.resolve(cluster, targets, rng)
    running = [node for node in nodes if await cluster.is_running(node)]
    if not running:
        return Applied(nodes, Effect(False, "no target was running"))
    if isinstance(options, CpuOptions):
        limited = await asyncio.gather(
            *(_limit_cpu(cluster, node, options.cpus) for node in running)
        )
    else:
        headroom = options.headroom_bytes
        limited = await asyncio.gather(
            *(_limit_memory(cluster, node, headroom) for node in running)
        )
    effect = _all([effect for effect, _ in limited])
    limits = {node: limits for node, (_, limits) in zip(running, limited, strict=True)}
    return Applied(tuple(running), effect, limits)


async def _limit_cpu(cluster: Limited, node: NodeId, cpus: float) -> tuple[Effect, Limits]:
    before = await cluster.resource_usage(node)
    await cluster.limit_cpu(node, cpus)

    def bites(now: ResourceUsage) -> bool:
        in_force = 0 < now.cpus <= cpus * 1.01
        return in_force and now.throttled_periods > before.throttled_periods

    now = await verification.until(lambda: cluster.resource_usage(node), bites)
    throttled = now.throttled_periods - before.throttled_periods
    how = (
        f"{node}: limited to {_spoken(now.cpus)} CPUs, throttled in {throttled} periods since then"
    )
    return Effect(bites(now), how), (cpus, 0)


async def _limit_memory(cluster: Limited, node: NodeId, headroom: int) -> tuple[Effect, Limits]:
    before = now = await cluster.resource_usage(node)
    limit: float = 0

    def is_killed() -> bool:
        return now.oom_killed and not before.oom_killed

    def bites(now: ResourceUsage) -> bool:
        in_force = 0 < now.memory_bytes < (before.memory_bytes or math.inf)
        return in_force and (is_killed() or now.memory_met > before.memory_met)

    async def looked_at() -> ResourceUsage:
        nonlocal now
        now = await cluster.resource_usage(node)
        return now

    async def drawn_closer() -> ResourceUsage:
        nonlocal headroom, limit
        for _ in range(2):  # the kernel's reserve for the node is known after the first round
            if now.memory_used_bytes and not bites(now):  # otherwise the node is down
                limit = min(now.memory_used_bytes + headroom, now.memory_bytes or math.inf)
                await cluster.limit_memory(node, int(limit))
            await looked_at()
        headroom //= CLOSER
        return now

    await verification.until(drawn_closer, bites)
    if not now.memory_used_bytes:
        await verification.until(looked_at, bites)  # why it has ended may be known later
    how = f"{node} uses {now.memory_used_bytes} of {_spoken(now.memory_bytes)} bytes"
    if is_killed():
        how += ", and the OOM killer killed the broker"
    else:
        how += f", and reached the limit {now.memory_met - before.memory_met} times since then"
    return Effect(bites(now), how), (0, int(limit))


async def heal(cluster: Limited, applied: Applied) -> Effect:
    """Raise the limits, and start what is down; proved when limits are wider and nodes run.

    A node that another fault keeps down is not started.
    """
    limits: dict[NodeId, Limits] = applied.undo or {}
    return _all(
        await asyncio.gather(
            *(
                _lift_limits(cluster, node, was, kept_down=node in applied.kept_down)
                for node, was in limits.items()
            )
        )
    )


async def _lift_limits(
    cluster: Limited, node: NodeId, limited: Limits, *, kept_down: bool
) -> Effect:
    await cluster.lift_limits(node)
    started = not kept_down and not await cluster.is_running(node)
    if started:
        await cluster.start_node(node)
    running, now = await cluster.is_running(node), await cluster.resource_usage(node)
    wide = all(
        limit == 0 or limit > was
        for limit, was in zip((now.cpus, now.memory_bytes), limited, strict=True)
    )
    state = ("was started" if started else "runs") if running else "does not run"
    how = f"{node} {state} with {_spoken(now.cpus)} CPUs, {_spoken(now.memory_bytes)} bytes"
    return Effect((running or kept_down) and wide, how)


def _all(effects: Sequence[Effect]) -> Effect:
    how = "; ".join(effect.how for effect in effects)
    return Effect(all(effect.proved for effect in effects), how or "no target was limited")


def _spoken(limit: float) -> str:
    return str(limit) if limit else "unlimited"


PACKAGE = Package(
    name="squeeze",
    faults=(Fault("squeeze-cpu", CpuOptions), Fault("squeeze-memory", MemoryOptions)),
    needs=(CanLimitResources, CanKill, CanPause, HasRoles),
    color="#e377c2",
    lane="process",
    draw=draw,
    apply=apply,
    heal=heal,
    cleanups=(
        Cleanup("the resource limits", node=lambda cluster, node: cluster.lift_limits(node)),
    ),
    weight=0.5,
)
