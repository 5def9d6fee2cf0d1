"""A plan for a user's cluster is completed with what the cluster reports, or refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import plan_resolution
from harness.app.refused import Refused
from harness.cluster.external import cluster_file
from harness.cluster.external import survey as survey_
from model.plan import Plan
from tests.harness.cluster.external.conftest import APIS, surveyed

HOOKS = '[hooks]\nkill = ["x"]\nstart = ["x"]\n'
SETTINGS = {
    "min.insync.replicas": "2",
    "group.min.session.timeout.ms": "6000",
    "zookeeper.session.timeout.ms": "6000",
}
Select = Callable[..., None]


@pytest.fixture
def select(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Select:
    """Return a function that selects a cluster file, whose cluster reports certain facts."""

    def selected(text: str = f"confirm = true\n{HOOKS}", **facts: Any) -> None:
        found = surveyed(tmp_path, text, **{"broker": SETTINGS, "release": "3.9"} | facts)
        monkeypatch.setenv(cluster_file.SELECTED, str(found.loaded.path))
        monkeypatch.setenv(cluster_file.CONFIRMED, "")
        monkeypatch.setattr(survey_, "_SURVEYS", {found.loaded.digest: found})
        cluster_file._loaded.cache_clear()

    return selected


def resolved(**fields: Any) -> Plan:
    plan = Plan(target="external", nemesis=("kill",), time_limit_s=60.0)
    return plan_resolution.resolve(msgspec.structs.replace(plan, **fields))


def test_a_plan_is_completed(select: Select) -> None:
    """The plan has the cluster's nodes and settings, and the name and digest of the file."""
    select()
    plan = resolved()
    assert (plan.system, plan.brokers, plan.broker) == ("external", 3, SETTINGS)
    assert plan.versions["cluster-file"] == "cluster.toml"
    assert len(plan.versions["cluster-file-sha256"]) == 64
    assert {fault.fault for fault in plan.schedule or ()} == {"kill"}
    assert "session.timeout.ms" not in plan.consumer
    again = plan_resolution.resolve(plan)
    assert (again.schedule, again.broker) == (plan.schedule, plan.broker)


def test_all_means_what_the_file_has_hooks_for(select: Select) -> None:
    select()
    assert resolved(nemesis=("all",)).nemesis == ("kill", "admin")


def test_members_have_sessions_that_the_cluster_accepts(select: Select) -> None:
    """The timeouts of members are at least those of the coordinators, unless the plan has some."""
    select()
    consumer = resolved(workload="groups").consumer
    assert consumer["session.timeout.ms"] == "6000"
    assert int(consumer["max.poll.interval.ms"]) >= 6000
    assert resolved(
        workload="groups",
        consumer={"session.timeout.ms": "9000", "max.poll.interval.ms": "9000"},
    ).consumer["session.timeout.ms"] == ("9000")


@pytest.mark.parametrize(
    ("text", "fields", "why"),
    [
        (HOOKS, {}, "confirm them with --yes-break-it or with confirm = true"),
        ("confirm = true", {}, "--nemesis kill: the cluster file has no hook for kill and start"),
        (None, {"nemesis": ("clock",)}, "--nemesis clock: the target external does not offer it"),
        (None, {"brokers": 5}, "--brokers 5: the cluster has 3"),
        (None, {"system": "apache-kafka:3.9.1"}, "--system apache-kafka:3.9.1: the target"),
        (
            None,
            {"broker": {"min.insync.replicas": "1"}},
            "--set broker.min.insync.replicas: a run cannot configure your brokers; the cluster"
            " has 2",
        ),
        (None, {"broker": {"log.roll.ms": "1"}}, "the cluster does not report it"),
        (None, {"mutants": ("ack-on-local-append",)}, "--mutant: no bug can be planted"),
        ("confirm = true\nclient = { nonsense = 1 }", {}, "client.No such configuration property"),
        (
            "confirm = true\nclient = { nonsense = 1 }",
            {"options": {"client": "aiokafka"}},
            "client.nonsense: aiokafka has no such setting; use client = librdkafka",
        ),
    ],
)
def test_refused(select: Select, text: str | None, fields: dict[str, Any], why: str) -> None:
    """Each impossible request is refused in one sentence."""
    select(*([] if text is None else [text]))
    with pytest.raises(Refused) as refused:
        resolved(**fields)
    assert why in str(refused.value)


def test_a_workload_that_the_release_cannot_run(select: Select) -> None:
    apis = {key: versions for key, versions in APIS.items() if key != 22}
    select(apis=apis)
    with pytest.raises(Refused, match=r"needs idempotent producers .* the cluster .about Apache"):
        resolved()


def test_without_faults_no_confirmation_is_needed(select: Select) -> None:
    select("")
    assert resolved(nemesis=("none",)).schedule == ()


def test_a_toxiproxy_that_cannot_be_bypassed(select: Select) -> None:
    select("confirm = true\ntoxiproxy = 't:1'")
    with pytest.raises(Refused, match=r"nodes\.broker-1\.address: with toxiproxy, name"):
        resolved()


def test_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file the target cannot be used, nor can its clusters be started."""
    monkeypatch.delenv(cluster_file.SELECTED, raising=False)
    with pytest.raises(Refused, match="--target external: name the file of your cluster"):
        resolved()
    with pytest.raises(Refused, match="--target external: name the file of your cluster"):
        plan_resolution.standalone(Plan(target="external"))


def test_its_clusters_are_not_started(select: Select) -> None:
    select()
    with pytest.raises(Refused, match="--target external: you start and stop its clusters"):
        plan_resolution.standalone(Plan(target="external"))
