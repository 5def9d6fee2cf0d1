"""Persistent watches are used where client and servers have them."""

import random
from typing import Any

import msgspec
import pytest

from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate
from tests.workloads.zookeeper import lab
from tests.workloads.zookeeper.naive import Naive, Znode
from workloads.zookeeper.watches import WORKLOAD, observed, parents


def plan_on(release: str | None, **options: Any) -> Plan:
    """A plan on a release of Apache ZooKeeper, or on this project's servers."""
    plan = lab.plan_of("zk-watches", options=options)
    if release is None:
        return plan
    versions = {"apache-zookeeper": release}
    return msgspec.structs.replace(
        plan, system=f"apache-zookeeper:{release}", target="processes", versions=versions
    )


def history(plan: Plan) -> list[Op]:
    """The main phase against a correct server."""
    naive = Naive(random.Random(1))
    naive.tree = {path: Znode("", 1, 1) for path in parents(plan)}
    return simulate(WORKLOAD.main(plan), naive.answer)


@pytest.mark.parametrize(
    ("release", "options", "expected"),
    [
        (None, {}, True),
        (None, {"zk_client": "kazoo"}, False),
        (None, {"persistent_p": 0.0}, False),
        ("3.5.10", {}, False),
        ("3.6.4", {}, True),
        ("3.10.0", {}, True),
    ],
)
def test_where_persistent_watches_are_used(
    release: str | None, options: dict[str, Any], expected: bool
) -> None:
    """Only by the asyncio client, only since ZooKeeper 3.6, and not if the plan wants none."""
    plan = plan_on(release, **options)
    assert bool(observed(plan)) == expected
    assert any(op.f == "watch" for op in history(plan)) == expected


def test_a_system_of_an_unknown_release_has_none() -> None:
    """A cluster that is not this project's does not say what its servers can do."""
    plan = msgspec.structs.replace(lab.plan_of("zk-watches"), system="external")
    assert observed(plan) == []


def test_what_is_done_to_watched_znodes() -> None:
    """Both kinds are set; only what is set is removed; children come and go."""
    ops = [op for op in history(plan_on(None)) if op.type == "ok"]
    assert {op.value.get("recursive") for op in ops if op.f == "watch"} == {False, True}
    assert all(op.value["registered"] == op.value["watch"] for op in ops if op.f == "watch")
    removed = [op.value["removed"] for op in ops if op.f == "unwatch"]
    assert removed
    assert None not in removed
    assert {op.f for op in ops if "/c" in op.value["path"]} == {"create", "get", "set", "delete"}
    one_shot = {op.value["path"] for op in ops if op.f == "get" and "watch" in op.value}
    assert one_shot.isdisjoint(observed(plan_on(None)))
