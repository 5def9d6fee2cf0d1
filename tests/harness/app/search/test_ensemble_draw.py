"""Plans that test ZooKeeper are drawn from seeds."""

import pytest

from harness.app import catalogue
from harness.app.refused import Refused
from harness.app.search import draw

PINNED = {"workload": "zk-register"}


def test_ensembles_of_all_sizes_are_drawn() -> None:
    """Every seed has a cluster of servers alone, and one server, three, and observers occur."""
    plans = [draw.plan_of(seed, PINNED) for seed in range(40)]
    assert {(plan.system, plan.brokers) for plan in plans} == {("zookeeper", 0)}
    drawn = {(plan.options["zookeepers"], plan.options["observers"]) for plan in plans}
    assert {(1, 0), (3, 0), (4, 1), (5, 0)} <= drawn
    assert all(name in catalogue.NEMESES for plan in plans for name in plan.nemesis)
    assert sum(bool(plan.schedule) for plan in plans) > 35


def test_settings_of_servers_and_sessions_are_drawn() -> None:
    """Ticks, sessions, snapshots and the transactions in memory vary, and faults with sessions."""
    plans = [draw.plan_of(seed, PINNED) for seed in range(40)]
    for name, least in (("tick_ms", 3), ("session_timeout_s", 5), ("snap_count", 3)):
        assert len({plan.options[name] for plan in plans}) >= least
    for plan in plans:
        ticks = 1000 * plan.options["session_timeout_s"] / plan.options["tick_ms"]
        assert 2 <= ticks <= 20, "what servers grant"
        pauses = [f.duration_s for f in plan.schedule or () if f.fault == "kill"]
        assert all(pause <= 2 * plan.options["session_timeout_s"] for pause in pauses)


def test_a_client_has_time_to_open_a_session() -> None:
    """With many servers and slow links, one attempt to connect lasts ten of the longest hops."""
    for seed in range(60):
        options = draw.plan_of(seed, {**PINNED, "options": {"zookeepers": 7}}).options
        attempt_ms = 1000 * options["session_timeout_s"] / 3 / 7
        assert attempt_ms >= 10 * (options["latency_ms"] + options["jitter_ms"]) - 0.01
        assert 1000 * options["session_timeout_s"] <= 20 * options["tick_ms"], "what servers grant"


def test_a_seed_has_one_plan_and_pinned_fields_stay() -> None:
    """The same seed draws the same plan, and what the user sets is kept."""
    pinned = {**PINNED, "options": {"zookeepers": 5, "registers": 1}, "nemesis": ("kill",)}
    plan = draw.plan_of(7, pinned)
    assert plan == draw.plan_of(7, pinned)
    options = plan.options
    assert (options["zookeepers"], options["observers"], options["registers"]) == (5, 0, 1)
    assert {fault.fault for fault in plan.schedule or ()} == {"kill"}
    assert draw.described(plan) == "5 servers, 0 of them observers; kill"


def test_only_simulations_are_searched() -> None:
    """Another target is refused."""
    with pytest.raises(Refused, match="a search runs in simulation only"):
        draw.plan_of(1, {**PINNED, "target": "processes"})
