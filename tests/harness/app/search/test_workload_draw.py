"""Which workload a run of a search has."""

from collections.abc import Mapping
from typing import Any

import pytest

from harness.app import catalogue
from harness.app.refused import Refused
from harness.app.search import draw, workload_draw


def _drawn(pinned: Mapping[str, Any], seeds: int = 40) -> set[str]:
    return {draw.plan_of(seed, pinned).workload for seed in range(seeds)}


def _of(service: str) -> set[str]:
    return {name for name, each in catalogue.WORKLOADS.items() if each.service == service}


def test_every_workload_of_the_brokers_is_drawn() -> None:
    """Seeds draw all workloads of brokers, and the same seed the same one."""
    assert _drawn({}) == _of("kafka")
    assert draw.plan_of(7, {}) == draw.plan_of(7, {})
    assert draw.workload_of(7, {}) == draw.plan_of(7, {}).workload


def test_a_system_of_ensembles_draws_workloads_of_zookeeper() -> None:
    """A plan whose system is ZooKeeper draws its workloads alone, on ensembles without brokers."""
    assert _drawn({"system": "zookeeper"}, 60) == _of("zookeeper")
    plan = draw.plan_of(3, {"system": "zookeeper"})
    assert (plan.system, plan.brokers) == ("zookeeper", 0)


def test_bugs_of_zookeeper_are_searched_where_they_can_be_planted() -> None:
    """A bug of ZooKeeper draws workloads of ZooKeeper; a named system decides before bugs do."""
    bug = {"mutants": ("zk-commit-without-quorum",)}
    assert _drawn(bug, 10) <= _of("zookeeper")
    with pytest.raises(Refused, match="--mutant"):
        draw.plan_of(1, {**bug, "system": "kafka"})
    assert _drawn({"mutants": ("no-min-isr-check",)}, 10) <= _of("kafka")


def test_a_named_workload_stays() -> None:
    """A workload that the user or a plan file names is that of every run.

    The other draws of a seed are those of a run that drew the workload itself.
    """
    assert _drawn({"workload": "offsets"}, 10) == {"offsets"}
    for seed in range(10):
        plan = draw.plan_of(seed, {})
        assert draw.plan_of(seed, {"workload": plan.workload}) == plan


def test_workloads_that_do_not_fit_are_not_drawn() -> None:
    """An option that only some workloads have leaves those workloads."""
    assert _drawn({"options": {"deletes_hz": 0.5}}) == {"idempotent", "send_poll"}


def test_what_no_workload_fits_is_refused_alike_for_every_seed() -> None:
    """The refusal is that of the default workload, whatever the seed would have drawn."""
    said = set()
    for seed in range(5):
        with pytest.raises(Refused, match="options: there is no nope") as refused:
            draw.plan_of(seed, {"options": {"nope": 1}})
        said.add(str(refused.value))
        assert draw.workload_of(seed, {"options": {"nope": 1}}) == ""
    assert len(said) == 1
    with pytest.raises(Refused, match="must be kafka"):
        draw.plan_of(1, {"system": "pulsar"})
    with pytest.raises(Refused, match="options: there is no nope"):
        draw.plan_of(1, {"system": "zookeeper", "options": {"nope": 1}})


def test_the_folder_is_named_after_the_workload_of_all_runs() -> None:
    """The name says ``mixed`` if there is no such workload."""
    assert workload_draw.named({"workload": "groups"}) == "groups"
    assert workload_draw.named({}) == "mixed"
