"""Limits of a node's CPU and memory, which can be tightened while it runs."""

from typing import Any

from harness.cluster.containers.container import Container
from harness.cluster.containers.container_spec import CPU_PERIOD_US
from harness.cluster.containers.engine import Engine, EngineError
from model.capabilities.processes import ResourceUsage

SLACK_BYTES = 4 << 20
_CACHE = ("total_inactive_file", "inactive_file")
"""Counters of file cache that the kernel frees at once: under cgroup v1, and under v2."""


async def set_cpus(engine: Engine, node: Container, cpus: float) -> None:
    """Limit the node to the time of this many processors."""
    update = engine.client.api.update_container
    quota = round(cpus * CPU_PERIOD_US)
    await engine.call(update, node.identity, cpu_period=CPU_PERIOD_US, cpu_quota=quota)


async def set_memory(engine: Engine, node: Container, bytes_: int) -> None:
    """Limit the node's memory, and do not let it use more by swapping.

    If the kernel refuses a limit below what is in use (cgroup v1), set the tightest that it
    accepts.
    """
    try:
        await _set_memory(engine, node, bytes_)
    except EngineError:
        now = await resource_usage(engine, node)
        tightest = now.memory_used_bytes + SLACK_BYTES
        if not now.memory_used_bytes:  # the node has ended meanwhile: then any limit is accepted
            await _set_memory(engine, node, bytes_)
        elif tightest <= bytes_:
            raise
        elif tightest < now.memory_bytes:
            await _set_memory(engine, node, tightest)


async def resource_usage(engine: Engine, node: Container) -> ResourceUsage:
    """The limits by the node's settings, its use by the kernel's counters."""
    api = engine.client.api
    found = await node.inspect()
    settings, state = found["HostConfig"], found["State"]
    stats: dict[str, Any] = {}
    if state["Running"]:
        stats = await engine.call(api.stats, node.identity, stream=False, one_shot=True)
    memory = stats.get("memory_stats", {})
    throttling = stats.get("cpu_stats", {}).get("throttling_data", {})
    quota, period = settings["CpuQuota"], settings["CpuPeriod"] or CPU_PERIOD_US
    return ResourceUsage(
        cpus=quota / period,
        memory_bytes=settings["Memory"],
        throttled_periods=throttling.get("throttled_periods", 0),
        memory_used_bytes=_used(memory),
        memory_met=_met(memory),
        oom_killed=state["OOMKilled"],
    )


def _used(memory: dict[str, Any]) -> int:
    """Memory in use, without cache that the kernel frees when memory is needed."""
    counters = memory.get("stats", {})
    cache = next((counters[name] for name in _CACHE if name in counters), 0)
    return max(0, int(memory.get("usage", 0)) - int(cache))


def _met(memory: dict[str, Any]) -> int:
    """How often the limit was reached (cgroup v1), plus the pages scanned for reclaim (v2)."""
    return int(memory.get("failcnt", 0)) + int(memory.get("stats", {}).get("pgscan", 0))


async def _set_memory(engine: Engine, node: Container, bytes_: int) -> None:
    update = engine.client.api.update_container
    await engine.call(update, node.identity, mem_limit=bytes_, memswap_limit=bytes_)
