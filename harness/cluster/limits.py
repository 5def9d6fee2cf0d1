"""What a node may use of the machine: limits that can be tightened while it runs."""

from typing import Any

from harness.cluster.container import Container
from harness.cluster.engine import Engine, EngineError
from harness.cluster.recipe import CPU_PERIOD_US
from model.roles import Strain

SLACK_BYTES = 4 << 20
_CACHE = ("total_inactive_file", "inactive_file")
"""Bytes of files that the kernel would give back at once: under cgroup v1, and under v2."""


async def set_cpus(engine: Engine, node: Container, cpus: float) -> None:
    """At most so many processors' worth of time."""
    update = engine.client.api.update_container
    quota = round(cpus * CPU_PERIOD_US)
    await engine.call(update, node.identity, cpu_period=CPU_PERIOD_US, cpu_quota=quota)


async def set_memory(engine: Engine, node: Container, bytes_: int) -> None:
    """At most so much memory, and no more of swap.

    Where the kernel refuses a limit below what is in use (cgroup v1), the tightest that it takes.
    """
    try:
        await _set_memory(engine, node, bytes_)
    except EngineError:
        now = await strain(engine, node)
        tightest = now.memory_used_bytes + SLACK_BYTES
        if not now.memory_used_bytes:  # it has ended meanwhile, and whoever is down takes any
            await _set_memory(engine, node, bytes_)
        elif tightest <= bytes_:
            raise
        elif tightest < now.memory_bytes:
            await _set_memory(engine, node, tightest)


async def strain(engine: Engine, node: Container) -> Strain:
    """Limits by the node's settings, use by the kernel's counters."""
    api = engine.client.api
    found = await node.inspect()
    settings, state = found["HostConfig"], found["State"]
    stats: dict[str, Any] = {}
    if state["Running"]:
        stats = await engine.call(api.stats, node.identity, stream=False, one_shot=True)
    memory = stats.get("memory_stats", {})
    throttling = stats.get("cpu_stats", {}).get("throttling_data", {})
    quota, period = settings["CpuQuota"], settings["CpuPeriod"] or CPU_PERIOD_US
    return Strain(
        cpus=quota / period,
        memory_bytes=settings["Memory"],
        throttled_periods=throttling.get("throttled_periods", 0),
        memory_used_bytes=_used(memory),
        memory_met=_met(memory),
        oom_killed=state["OOMKilled"],
    )


def _used(memory: dict[str, Any]) -> int:
    """Without what is only kept because nobody else wants the room."""
    counters = memory.get("stats", {})
    cache = next((counters[name] for name in _CACHE if name in counters), 0)
    return max(0, int(memory.get("usage", 0)) - int(cache))


def _met(memory: dict[str, Any]) -> int:
    """Limits that were reached (cgroup v1); pages that were looked at to be taken back (v2)."""
    return int(memory.get("failcnt", 0)) + int(memory.get("stats", {}).get("pgscan", 0))


async def _set_memory(engine: Engine, node: Container, bytes_: int) -> None:
    update = engine.client.api.update_container
    await engine.call(update, node.identity, mem_limit=bytes_, memswap_limit=bytes_)
