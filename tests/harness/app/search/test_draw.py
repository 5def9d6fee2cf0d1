"""Drawing plans from seeds."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.app import catalogue, plan_resolution
from harness.app.refused import Refused
from harness.app.search import draw
from harness.cluster.settings import session_timeout_s

SEEDS = st.integers(0, 1 << 31)
IDEMPOTENT = {"workload": "idempotent"}

KAFKA = sorted(name for name, each in catalogue.WORKLOADS.items() if each.service == "kafka")


@given(SEEDS, st.sampled_from(KAFKA))
@settings(max_examples=50)
def test_every_seed_has_a_plan_that_can_be_run(seed: int, workload: str) -> None:
    """Every drawn plan is valid and already resolved, whatever the seed and workload."""
    plan = draw.plan_of(seed, {"workload": workload})
    assert plan.workload == workload
    assert plan_resolution.resolve(plan) == plan
    assert plan.target == "simulated"
    replicas, isr_min = plan.options["replication_factor"], int(plan.broker["min.insync.replicas"])
    assert 1 <= isr_min <= replicas <= plan.brokers
    assert isr_min < replicas or replicas == 1


@given(SEEDS)
@settings(max_examples=30)
def test_every_plan_is_worth_a_run(seed: int) -> None:
    """Every drawn plan has enough time, records and faults for a meaningful run."""
    plan = draw.plan_of(seed, IDEMPOTENT)
    assert plan.time_limit_s >= 40
    assert plan.rate_hz * (1 + plan.options["batch_max"]) / 2 * plan.time_limit_s >= 1400
    assert plan.schedule is not None
    assert len(plan.schedule) >= 4
    assert all(fault.duration_s < plan.time_limit_s for fault in plan.schedule)
    # A fetch that waits is answered before the follower lags or times out.
    lag_ms, wait_ms, socket_ms = (
        int(plan.broker[f"replica.{name}.ms"])
        for name in ("lag.time.max", "fetch.wait.max", "socket.timeout")
    )
    assert wait_ms < min(lag_ms, socket_ms)
    assert session_timeout_s(plan.broker) >= 1


@given(SEEDS)
@settings(max_examples=20)
def test_a_seed_is_a_plan(seed: int) -> None:
    """The same seed draws the same plan, and another seed another one."""
    assert draw.plan_of(seed, IDEMPOTENT) == draw.plan_of(seed, IDEMPOTENT)
    assert draw.plan_of(seed, IDEMPOTENT) != draw.plan_of(seed + 1, IDEMPOTENT)


def test_many_seeds_vary_everything() -> None:
    """Over some seeds, every number, setting and kind of fault has several values."""
    plans = [draw.plan_of(seed, IDEMPOTENT) for seed in range(60)]
    for part, count in {"broker": 17, "producer": 4, "consumer": 1, "options": 9}.items():
        drawn = [getattr(plan, part) for plan in plans]
        varied = [name for name in drawn[0] if len({str(each.get(name)) for each in drawn}) > 1]
        assert len(varied) >= count, varied
    assert {plan.brokers for plan in plans} == {3, 4, 5}
    assert len({plan.concurrency for plan in plans}) == 5
    faults = {fault.fault for plan in plans for fault in plan.schedule or ()}
    offered = set(
        plan_resolution.resolve(
            plan_resolution.plan_of({"target": "simulated", "nemesis": ["all"]})
        ).nemesis
    )
    drawn_names = {name for plan in plans for name in plan.nemesis}
    # which need the options `security` and `data_directories`
    assert drawn_names == offered | {"access", "directories"}
    assert len(faults) >= len(offered)


def test_what_is_pinned_is_taken_and_changes_nothing_else() -> None:
    """A pinned setting is in every plan and does not change the seed's other draws."""
    for seed in range(20):
        free = draw.plan_of(seed, IDEMPOTENT)
        held = draw.plan_of(
            seed,
            {
                **IDEMPOTENT,
                "mutants": ("no-min-isr-check",),
                "broker": {"log.segment.bytes": "4096"},
            },
        )
        assert held.mutants == (*free.mutants, "no-min-isr-check")
        assert held.broker == free.broker | {"log.segment.bytes": "4096"}
        assert held.schedule == free.schedule
        assert held.options == free.options


def test_a_quarter_of_the_plans_has_several_data_directories() -> None:
    """KIP-113: replicas then move from one to the other; the draw changes no other one."""
    plans = [draw.plan_of(seed, IDEMPOTENT) for seed in range(40)]
    several = [plan for plan in plans if plan.options["data_directories"] == 2]
    assert 5 <= len(several) <= 15
    assert all(plan.options["data_directories"] in (1, 2) for plan in plans)
    failing = [plan for plan in plans if "directories" in plan.nemesis]
    assert failing
    assert all(plan in several for plan in failing)
    faults = [fault for plan in failing for fault in plan.schedule or ()]
    assert "failed-directory" in {fault.fault for fault in faults}


def test_a_workload_varies_what_it_alone_has() -> None:
    """A workload varies its own settings and no others of a seed; pinned ones stay."""
    acks = set()
    for seed in range(30):
        other, plan = draw.plan_of(seed, IDEMPOTENT), draw.plan_of(seed, {"workload": "send_poll"})
        acks.add(plan.producer["acks"])
        assert plan.broker.items() >= other.broker.items()
        assert plan.nemesis == other.nemesis
        held = draw.plan_of(seed, {"workload": "send_poll", "producer": {"linger.ms": "7"}})
        assert held.producer == plan.producer | {"linger.ms": "7"}
    assert acks == {"all", "1", "0"}


def test_a_workload_may_vary_how_much_is_asked() -> None:
    """A workload may vary top-level fields such as the rate; a pinned one stays."""
    plans = [draw.plan_of(seed, {"workload": "groups"}) for seed in range(20)]
    assert {plan.concurrency for plan in plans} == {6, 7, 8, 9, 10}
    assert all(10 <= plan.rate_hz <= 20 for plan in plans)
    held = draw.plan_of(3, {"workload": "groups", "concurrency": 3})
    assert (held.concurrency, held.rate_hz) == (3, plans[3].rate_hz)


@pytest.mark.parametrize(
    ("pinned", "brokers", "factor", "min_isr"),
    [
        ({"brokers": 5}, 5, None, None),
        ({"options": {"replication_factor": 4}}, 4, 4, "2"),
        ({"broker": {"min.insync.replicas": "3"}}, 5, 5, "3"),
        ({"brokers": 1}, 1, 1, "1"),
        ({"brokers": 3, "broker": {"min.insync.replicas": "3"}}, 3, 3, "3"),
    ],
)
def test_numbers_agree_with_the_pinned_one(
    pinned: dict[str, object], brokers: int, factor: int | None, min_isr: str | None
) -> None:
    """Brokers, replicas and in-sync replicas are drawn together, consistent with pinned ones."""
    for seed in range(10):
        plan = draw.plan_of(seed, {**IDEMPOTENT, **pinned})
        assert plan.brokers == brokers
        assert factor in (None, plan.options["replication_factor"])
        assert min_isr in (None, plan.broker["min.insync.replicas"])
        assert int(plan.broker["min.insync.replicas"]) <= plan.options["replication_factor"]


def test_nemeses_by_name_are_all_taken() -> None:
    """All named nemeses are in each plan."""
    for seed in range(10):
        assert draw.plan_of(seed, {"nemesis": ("pause", "kill")}).nemesis == ("pause", "kill")
        assert draw.plan_of(seed, {"nemesis": (plan_resolution.NONE,)}).schedule == ()


@given(SEEDS)
@settings(max_examples=20)
def test_a_schedule_that_is_held_fits_every_seed(seed: int) -> None:
    """A pinned schedule is valid with every seed, whatever faults the seed would have drawn."""
    fault = {"id": 1, "at_s": 3.0, "duration_s": 1.0, "fault": "kill", "targets": "controller"}
    plan = draw.plan_of(seed, {"schedule": [fault]})
    assert [each.fault for each in plan.schedule or ()] == ["kill"]


@pytest.mark.parametrize(
    "held",
    [{"brokers": "x"}, {"broker": 3}, {"options": 5}, {"nemesis": 3}, {"time_limit_s": "x"}],
)
def test_what_is_of_another_type_is_refused(held: dict[str, Any]) -> None:
    """A pinned value of a wrong type, as a plan file may have, is refused."""
    [name] = held
    with pytest.raises(Refused, match=f"the plan: Expected .* at `{name}`"):
        draw.plan_of(1, held)


def test_what_cannot_be_is_refused() -> None:
    """An invalid pinned value is refused in one line."""
    with pytest.raises(Refused, match="no such-thing"):
        draw.plan_of(1, {"nemesis": ("such-thing",)})
    with pytest.raises(Refused, match=r"broker\.no\.such"):
        draw.plan_of(1, {"broker": {"no.such": "1"}})
    with pytest.raises(Refused, match="cannot be simulated"):
        draw.plan_of(1, {"options": {"client": "librdkafka"}})


def test_a_server_that_is_alone_has_no_faults_of_links() -> None:
    """Such a fault could not be proved while the only server is down; ensembles have them."""
    network = {name for name, package in catalogue.NEMESES.items() if package.lane == "network"}
    alone, together = set[str](), set[str]()
    for seed in range(60):
        plan = draw.plan_of(seed, {"workload": "zk-kv"})
        (alone if plan.options["zookeepers"] == 1 else together).update(plan.nemesis)
    assert alone
    assert not alone & network
    assert together & network
