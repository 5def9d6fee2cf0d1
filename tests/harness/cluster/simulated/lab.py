"""A simulated cluster with clients that the tests drive."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harness.cluster.simulated.simulated_cluster import Simulated, SimulationContext, staged
from model.plan import Plan

ONE, TWO, THREE = "broker-1", "broker-2", "broker-3"


KEY = "faultline-ready-0"
"""The only partition: that of the topic whose record shows that a cluster is ready."""


class Lab:
    """Run what a test does to a cluster, on the host of the clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, work: Callable[[Simulated], Awaitable[Any]], seed: int = 1, **fields: Any
    ) -> Any:
        return self.on_stage(lambda cluster, stage: work(cluster), seed, **fields)

    def on_stage(
        self,
        work: Callable[[Simulated, SimulationContext], Awaitable[Any]],
        seed: int = 1,
        *,
        calm_since_ns: int | None = None,
        **fields: Any,
    ) -> Any:
        plan = Plan(target="simulated", seed=seed, **fields)
        with staged(plan, self.folder, calm_since_ns=lambda: calm_since_ns) as stage:

            async def main() -> Any:
                cluster = Simulated(plan, self.folder, random.Random(1), stage=stage)
                await cluster.start()
                try:
                    return await work(cluster, stage)
                finally:
                    await cluster.stop()

            return stage.world.run(stage.clients.spawn(main), 300)

    def log_of(self, node: str) -> str:
        return (self.folder / "nodes" / node / "log.txt").read_text()
