"""Containers of ZooKeeper servers, tested without brokers: their disks can be filled."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import catalogue, plan_resolution
from model.plan import Plan

pytestmark = [pytest.mark.docker, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_servers_disk_is_filled_and_freed(tmp_path: Path) -> None:
    """Each server has a disk of its own, on which nothing fits until the fault is healed."""
    plan = plan_resolution.standalone(Plan(system="zookeeper", target="containers"))
    plan = msgspec.structs.replace(plan, nemesis=("disk",))
    cluster: Any = catalogue.maker_of(plan)(plan, tmp_path / "zookeepers", random.Random(1))
    await cluster.start()
    try:
        server, *_ = cluster.nodes
        before = await cluster.disk_free_bytes(server)
        await cluster.fill_disk(server)
        assert await cluster.disk_free_bytes(server) <= 4096 < before
        await cluster.free_disk(server)
        assert await cluster.disk_free_bytes(server) > before / 2
    finally:
        await cluster.stop()
