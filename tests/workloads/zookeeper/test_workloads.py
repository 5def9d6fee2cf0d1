"""Every workload of ZooKeeper runs in simulation, and is valid against this project's servers."""

import asyncio
from pathlib import Path

import pytest

from harness.app import catalogue
from tests.workloads.zookeeper import lab
from tests.workloads.zookeeper.lab import Lab

NAMES = sorted(name for name, w in catalogue.WORKLOADS.items() if w.service == "zookeeper")


@pytest.mark.slow
@pytest.mark.parametrize("workload", NAMES)
def test_a_run_is_valid(workload: str, tmp_path: Path) -> None:
    """A run against one server has acknowledged operations and final reads, and is valid."""
    found = lab.ran(tmp_path, workload)
    assert found.verdict.unknown_because == ()
    assert found.anomalies == {}
    assert found.verdict.valid is True
    assert found.verdict.evidence["acked"] > 20


async def _restart(server: Lab) -> None:
    for _ in range(3):
        await asyncio.sleep(4.0)
        server.pause(0)  # requests are open when it is killed
        await asyncio.sleep(0.5)
        server.kill(0)
        await asyncio.sleep(1.0)
        server.start(0)


@pytest.mark.slow
@pytest.mark.parametrize("workload", NAMES)
def test_a_run_with_kills_is_valid(workload: str, tmp_path: Path) -> None:
    """Kills of the server leave outcomes in doubt, and the run valid."""
    found = lab.ran(tmp_path, workload, disturb=_restart, rate_hz=50.0)
    assert any(op.type != "ok" for op in found.events if op.type != "invoke")
    assert found.verdict.unknown_because == ()
    assert found.anomalies == {}
