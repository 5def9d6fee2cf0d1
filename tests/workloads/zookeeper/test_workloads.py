"""Every workload of ZooKeeper runs in simulation, and is valid against this project's servers."""

import asyncio
import random
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


@pytest.mark.parametrize("workload", NAMES)
def test_what_a_search_varies_is_accepted(workload: str) -> None:
    """Every value that a search draws is one of the workload's options, and not refused."""
    chosen = catalogue.WORKLOADS[workload]
    assert chosen.refuse(lab.plan_of(workload)) is None
    for seed in range(10):
        varied = chosen.vary(random.Random(seed))
        assert varied.keys() <= {"options"}
        assert varied.get("options", {}).keys() <= chosen.options.keys()
        assert chosen.refuse(lab.plan_of(workload, options=varied.get("options", {}))) is None


@pytest.mark.parametrize("workload", NAMES)
@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("zk_client", "curator", "must be one of kazoo, asyncio"),
        ("session_timeout_s", 0, "must be a number of at least 0.1"),
        ("wait_s", "long", "must be a number"),
    ],
)
def test_wrong_options_are_refused(workload: str, option: str, value: object, why: str) -> None:
    """A wrong option is refused in one line, which names it."""
    refused: str | None
    try:
        refused = catalogue.WORKLOADS[workload].refuse(
            lab.plan_of(workload, options={option: value})
        )
    except ValueError as error:  # the command line names the options then
        refused = f"{option}: must be a number: {error}"
    assert refused is not None
    assert option in refused
    assert why in refused


@pytest.mark.parametrize("workload", NAMES)
def test_a_workload_needs_clients(workload: str) -> None:
    """One client alone competes with no other."""
    refused = catalogue.WORKLOADS[workload].refuse(lab.plan_of(workload, concurrency=1))
    assert refused is not None
    assert refused.startswith("--concurrency")


def test_the_last_reads_of_sessions_have_time() -> None:
    """The final reads of zk-sessions begin when the last session must have expired."""
    options = {"final_time_limit_s": 10.0, "session_timeout_s": 4.0}
    refused = catalogue.WORKLOADS["zk-sessions"].refuse(lab.plan_of("zk-sessions", options=options))
    assert refused == (
        "options: final_time_limit_s=10.0: must be above 13, when the last session has expired"
    )
