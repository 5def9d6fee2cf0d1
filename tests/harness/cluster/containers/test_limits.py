"""A node's limits of CPU and memory, what it uses, and limits that the kernel refuses."""

from typing import Any

import pytest
from docker.errors import APIError

from harness.cluster.containers import limits
from harness.cluster.containers.container import Container
from harness.cluster.containers.engine import Engine, EngineError

V1 = {
    "usage": 90 << 20,
    "failcnt": 5,
    "stats": {"total_inactive_file": 60 << 20, "inactive_file": 1},
}
V2 = {"usage": 90 << 20, "stats": {"inactive_file": 60 << 20, "pgscan": 5}}
USED = 30 << 20


class FakeEngine:
    """An engine with one container, whose kernel can refuse limits below the memory in use."""

    def __init__(self, memory: dict[str, Any], *, running: bool = True) -> None:
        self.api = self
        self._memory = memory
        self._running = running
        self.refuses = self.dies = False
        self.settings = {"CpuQuota": 50_000, "CpuPeriod": 100_000, "Memory": 512 << 20}

    def inspect_container(self, _: str) -> dict[str, Any]:
        state = {"Running": self._running, "OOMKilled": not self._running}
        return {"HostConfig": self.settings, "State": state}

    def stats(self, _: str, *, stream: bool, one_shot: bool) -> dict[str, Any]:
        assert one_shot, "else it takes two seconds"
        return {
            "cpu_stats": {"throttling_data": {"throttled_periods": 7}},
            "memory_stats": self._memory,
        }

    def update_container(self, _: str, **what: int) -> None:
        if self.refuses and self._running and what.get("mem_limit", USED) < USED:
            self._running = not self.dies
            raise APIError("device or resource busy")
        names = {"cpu_quota": "CpuQuota", "cpu_period": "CpuPeriod", "mem_limit": "Memory"}
        self.settings |= {names[name]: value for name, value in what.items() if name in names}


def held(fake: FakeEngine) -> tuple[Engine, Container]:
    engine = Engine(fake)
    return engine, Container("broker-1", "c0ffee", engine, lambda end, state: None)


@pytest.mark.parametrize("memory", [V1, V2])
async def test_file_pages_that_go_at_once_are_not_used(memory: dict[str, Any]) -> None:
    """Reclaimable file pages do not count as used memory, under both versions of cgroups.

    The limits are those of the container's settings.
    """
    resource_usage = await limits.resource_usage(*held(FakeEngine(memory)))
    assert resource_usage.memory_used_bytes == USED
    assert (resource_usage.cpus, resource_usage.memory_bytes) == (0.5, 512 << 20)
    assert resource_usage.throttled_periods == 7
    assert resource_usage.memory_met == 5
    assert not resource_usage.oom_killed


async def test_who_is_down_uses_nothing() -> None:
    """A container that does not run uses no memory; its limits and OOM state are still known."""
    resource_usage = await limits.resource_usage(*held(FakeEngine({}, running=False)))
    assert (resource_usage.memory_used_bytes, resource_usage.memory_bytes) == (0, 512 << 20)
    assert resource_usage.memory_met == 0
    assert resource_usage.oom_killed


async def test_limits_are_set_and_read_back() -> None:
    """CPU and memory limits read back as they were set."""
    engine, node = held(FakeEngine(V2))
    await limits.set_cpus(engine, node, 0.05)
    await limits.set_memory(engine, node, 40 << 20)
    resource_usage = await limits.resource_usage(engine, node)
    assert (resource_usage.cpus, resource_usage.memory_bytes) == (0.05, 40 << 20)


async def test_as_tight_as_the_kernel_takes() -> None:
    """A memory limit that the kernel refuses becomes the memory in use plus a small slack."""
    fake = FakeEngine(V1)
    fake.refuses = True
    engine, node = held(fake)
    await limits.set_memory(engine, node, 10 << 20)
    assert fake.settings["Memory"] == USED + limits.SLACK_BYTES


async def test_a_limit_that_is_refused_widens_none() -> None:
    """An existing limit that is tighter than what the kernel would accept stays."""
    fake = FakeEngine(V1)
    engine, node = held(fake)
    await limits.set_memory(engine, node, USED + (1 << 20))
    fake.refuses = True
    await limits.set_memory(engine, node, 10 << 20)
    assert fake.settings["Memory"] == USED + (1 << 20)


async def test_who_ends_while_it_is_squeezed_has_the_limit_all_the_same() -> None:
    """If the OOM killer ends the container during a refused limit, the next start has the limit."""
    fake = FakeEngine(V1)
    fake.refuses = fake.dies = True
    await limits.set_memory(*held(fake), 10 << 20)
    assert fake.settings["Memory"] == 10 << 20


async def test_another_refusal_is_not_explained_away() -> None:
    """If the engine refuses a limit above the memory in use, its error is raised."""
    fake = FakeEngine({"usage": 1})
    fake.refuses = True
    with pytest.raises(EngineError, match="busy"):
        await limits.set_memory(*held(fake), USED - 1)
