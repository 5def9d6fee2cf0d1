"""Schedules: every fault that no run can apply is refused before anything starts."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import catalogue, plan_resolution, schedule_checks
from harness.app.refused import Refused
from harness.app.search import draw
from model.plan import Plan, ScheduledFault
from nemesis.targets import ROLES

KILL = ScheduledFault(id=1, at_s=1, duration_s=1, fault="kill", targets=["broker-1"])
SCHEDULE = (KILL,)
NODES = "broker-1, broker-2, broker-3, zookeeper"
SEEDS = range(120)
KAFKA = [name for name, each in catalogue.WORKLOADS.items() if each.service == "kafka"]
ZOOKEEPER = [name for name in catalogue.WORKLOADS if name not in KAFKA]


def refusal(fault: ScheduledFault, target: Any = "simulated", **fields: Any) -> str:
    """Return why a plan with this fault is refused."""
    nemeses = [name for name, each in catalogue.NEMESES.items() if fault.fault in each.names]
    plan = Plan(target=target, nemesis=tuple(nemeses), schedule=(fault,), **fields)
    with pytest.raises(Refused) as refused:
        plan_resolution.resolve(plan)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_fault_after_the_end_is_refused() -> None:
    """A fault after the end of the run is refused, because the verdict could only be unknown."""
    late = Plan(nemesis=("kill",), schedule=SCHEDULE, time_limit_s=1.0)
    with pytest.raises(
        Refused, match=r"fault 1 \(kill\) is scheduled at 1 s, but --time-limit is 1"
    ):
        plan_resolution.resolve(late)
    assert (
        plan_resolution.resolve(msgspec.structs.replace(late, time_limit_s=1.1)).schedule
        == SCHEDULE
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"id": 1}, "schedule: two faults have the id 1; each needs its own"),
        ({"at_s": -1.0}, "schedule: fault 2 (kill) needs times of 0 or more"),
        ({"duration_s": float("nan")}, "schedule: fault 2 (kill) needs times of 0 or more"),
        (
            {"duration_s": 1e300},
            "schedule: fault 2 (kill) lasts 1e+300 s; the maximum is 604,800 s",
        ),
        ({"id": 2**63}, "schedule: fault id 9223372036854775808 is too large"),
    ],
)
def test_an_impossible_schedule_is_refused(changes: dict[str, Any], line: str) -> None:
    """Impossible times and duplicate ids in a schedule are refused.

    With one id for two faults, the heal of one would be taken for that of the other.
    """
    second = msgspec.structs.replace(SCHEDULE[0], id=2)
    fine = Plan(nemesis=("kill",), schedule=(*SCHEDULE, second))
    assert plan_resolution.resolve(fine).schedule == fine.schedule
    wrong = (*SCHEDULE, msgspec.structs.replace(second, **changes))
    with pytest.raises(Refused) as told:
        plan_resolution.resolve(msgspec.structs.replace(fine, schedule=wrong))
    assert str(told.value) == line


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        (["broker-9"], f"no node broker-9 ({NODES})"),
        ([1], f"no node 1 ({NODES})"),
        ([["broker-1"]], f"no node ['broker-1'] ({NODES})"),
        ("contoller", f"no such target: contoller (a list of brokers and zookeeper, {ROLES})"),
        ("leader:", f"no such target: leader: (a list of brokers and zookeeper, {ROLES})"),
        ("leader:x", f"no such target: leader:x (a list of brokers and zookeeper, {ROLES})"),
        ([], f"no such target: [] (a list of brokers and zookeeper, {ROLES})"),
        (None, f"no such target: None (a list of brokers and zookeeper, {ROLES})"),
    ],
)
def test_a_fault_without_a_possible_target_is_refused(targets: Any, line: str) -> None:
    """A fault without a possible target is refused: the verdict could only be UNKNOWN."""
    fault = msgspec.structs.replace(KILL, id=2, targets=targets)
    assert refusal(fault, "processes") == f"schedule: fault 2 (kill): {line}"


@pytest.mark.parametrize(
    "targets", [["broker-1", "zookeeper"], "controller", "leader:x-0", "group-coordinator:g"]
)
def test_a_possible_target_is_accepted(targets: Any) -> None:
    """A target may be nodes of the cluster, or a role whose node is resolved during the run."""
    fault = msgspec.structs.replace(KILL, targets=targets)
    assert plan_resolution.resolve(Plan(nemesis=("kill",), schedule=(fault,))).schedule == (fault,)


@pytest.mark.parametrize(
    ("fault", "options", "line"),
    [
        ("partition-one", {"way": "dwon"}, "way = dwon: must be cut or down"),
        ("partition-one-way", {"direction": "inn"}, "direction = inn: must be in or out"),
        (
            "partition-one",
            {"from": ["broker-7"]},
            "from = broker-7: must be brokers or zookeeper or metadata-quorum or clients or"
            " broker-1 or broker-2 or broker-3",
        ),
        (
            "partition-one",
            {"form": ["brokers"]},
            "no option is called form; there is from, once, way, when",
        ),
        ("drop-packets", {"share": 40}, "share = 40: must be a number above 0, 1 at most"),
        ("drop-packets", {}, "share is missing: it must be a number above 0, 1 at most"),
        (
            "slow",
            {"latency_s": "0.1"},
            "latency_s = 0.1: must be a number of seconds above",
        ),
        ("reassign", {"replicas": [2, 4]}, "replicas = 4: must be 1 to 3"),
        ("kill", {"when": "comit"}, "when = comit: must be an operation ("),
        ("at-point", {"point": "nowhere"}, "point = nowhere: must be isr.before-zk-write or "),
        ("hold-request", {"api": "Prodce"}, "api = Prodce: must be an API (Produce, Fetch, "),
        ("hold-request", {"api": "Fetch", "or": ["Fech"]}, "or = Fech: must be an API ("),
        (
            "hold-request",
            {"api": "Fetch", "from": "zookeeper"},
            "from = zookeeper: must be clients or ",
        ),
    ],
)
def test_a_wrong_option_is_refused(fault: str, options: dict[str, Any], line: str) -> None:
    """A refusal names the fault, its option, the wrong value and what is allowed."""
    asked = ScheduledFault(
        id=7, at_s=1, duration_s=1, fault=fault, targets=["broker-1"], options=options
    )
    assert refusal(asked).startswith(f"schedule: fault 7 ({fault}): {line}")


def test_several_machines_without_power_are_refused_unless_asked_for() -> None:
    """A power loss of several machines needs ``spare = false``, because it may cost records."""
    both = ScheduledFault(
        id=1, at_s=1, duration_s=1, fault="power-loss", targets=["broker-1", "broker-2"]
    )
    assert "spare = true: must be false for several targets" in refusal(both)
    meant = msgspec.structs.replace(both, options={"spare": False})
    plan = Plan(target="simulated", nemesis=("power",), schedule=(meant,))
    assert plan_resolution.resolve(plan).schedule == (meant,)


def test_what_a_search_draws_is_accepted() -> None:
    """Every schedule that a search draws can be recorded and replayed."""
    for seed, workload in zip(SEEDS, itertools.cycle(catalogue.WORKLOADS)):
        schedule_checks.check(draw.plan_of(seed, {"workload": workload}))


@pytest.mark.parametrize(
    "target", [name for name, target in catalogue.TARGETS.items() if target.owns_cluster]
)
def test_what_a_run_draws_is_accepted(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every schedule that a run on any target draws can be recorded and replayed."""
    there = dataclasses.replace(catalogue.TARGETS[target], refusal=lambda: None)
    monkeypatch.setitem(catalogue.TARGETS, target, there)
    packages = [catalogue.NEMESES[name] for name in plan_resolution.offered(Plan(target=target))]
    alone = [each.name for each in packages if each.draw is not None]
    drawn = set()
    for seed, workload, nemesis in zip(
        SEEDS,
        itertools.cycle(KAFKA),
        itertools.cycle([plan_resolution.ALL, *alone]),
    ):
        asked = Plan(target=target, workload=workload, nemesis=(nemesis,), seed=seed)
        plan = plan_resolution.resolve(asked)
        schedule_checks.check(plan)
        drawn |= {fault.fault for fault in plan.schedule or ()}
    faults = [fault for each in packages if each.draw is not None for fault in each.faults]
    possible = {fault.name for fault in faults if fault.is_drawn}
    assert drawn == possible - {"partition-controllers"}, "these clusters have a ZooKeeper"


@pytest.mark.parametrize("target", ["processes", "simulated"])
def test_what_a_run_of_zookeeper_draws_is_accepted(target: str) -> None:
    """Every schedule that a run without brokers draws can be recorded and replayed."""
    for seed, workload in zip(SEEDS, itertools.cycle(ZOOKEEPER)):
        plan = plan_resolution.resolve(
            Plan(target=target, workload=workload, nemesis=(plan_resolution.ALL,), seed=seed)
        )
        assert plan.schedule
        schedule_checks.check(plan)


def test_every_plan_of_the_examples_is_accepted(repository: Path) -> None:
    """Plans that were written before options had types are accepted."""
    paths = [*repository.glob("examples/mutants/*.toml"), *repository.glob("examples/plans/*.toml")]
    assert len(paths) > 100
    for path in paths:
        plan = plan_resolution.plan_of(plan_resolution.from_toml(path))
        assert plan_resolution.resolve(plan).schedule
