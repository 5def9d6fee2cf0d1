"""What a user asks for: names, defaults, and one line for what cannot be."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import catalogue, request
from harness.app.request import Refused
from model.plan import Plan, ScheduledFault

ALL = Plan(nemesis=(request.ALL,))


def test_every_default_is_written_out() -> None:
    """A resolved plan needs no default any more: rate, settings, options, faults, versions."""
    plan = request.resolve(ALL)
    assert plan.rate_hz > 0
    assert plan.nemesis == tuple(catalogue.NEMESES)
    assert plan.broker["min.insync.replicas"] == "2"
    assert plan.broker["zookeeper.session.timeout.ms"] == "2000"
    assert plan.producer["enable.idempotence"] == "true"
    assert plan.consumer["isolation.level"]
    assert plan.options["replication_factor"] == 3
    assert plan.schedule
    assert plan.versions["confluent-kafka"]
    assert plan.versions["librdkafka"]


def test_a_resolved_plan_resolves_to_itself() -> None:
    """``replay`` carries out what ``run`` did."""
    plan = request.resolve(ALL)
    assert request.resolve(plan) == plan
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_the_schedule_follows_from_the_seed() -> None:
    """The same seed draws the same faults; another one draws others."""
    first = request.resolve(ALL).schedule
    assert request.resolve(ALL).schedule == first
    assert request.resolve(msgspec.structs.replace(ALL, seed=1)).schedule != first


def test_no_nemesis_no_faults() -> None:
    """``none`` leaves the cluster alone."""
    plan = request.resolve(Plan(nemesis=(request.NONE,)))
    assert (plan.nemesis, plan.schedule) == ((), ())


def test_settings_win_over_defaults() -> None:
    """What ``--set`` says is what the plan says."""
    asked = Plan(
        nemesis=(request.NONE,),
        broker={"min.insync.replicas": "1"},
        producer={"acks": "1", "enable.idempotence": "false"},
        options={"partitions": 1},
    )
    plan = request.resolve(asked)
    assert plan.broker["min.insync.replicas"] == "1"
    assert plan.producer["acks"] == "1"
    assert plan.options["partitions"] == 1


SCHEDULE = (ScheduledFault(id=1, at_s=1, duration_s=1, fault="kill"),)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workload": "bank"}, "--workload: no bank; there is idempotent"),
        ({"nemesis": ("fire",)}, "--nemesis: no fire; there is kill"),
        ({"nemesis": ("kill", "none")}, "--nemesis: none stands alone"),
        ({"mutants": ("b",)}, "--mutant: no b; there is ack-on-local-append"),
        ({"time_limit_s": 0.0}, "--time-limit 0: must be a number above 0"),
        ({"time_limit_s": float("nan")}, "--time-limit nan: must be a number above 0"),
        ({"time_limit_s": float("inf")}, "--time-limit inf: must be a number above 0"),
        ({"brokers": -1}, "--brokers -1: must be a number above 0"),
        ({"brokers": 2}, "--brokers: 3 replicas"),
        ({"concurrency": 1}, "--concurrency: idempotent needs at least 2"),
        ({"rate_hz": -1.0}, "--rate -1: must be a number above 0"),
        ({"options": {"colour": 1}}, "options: no colour; there is topics"),
        ({"options": {"replication_factor": "many"}}, "options: "),
        ({"producer": {"acks": "most"}}, "--set producer."),
        ({"broker": {"colour": "1"}}, "--set broker.colour=1: unknown setting colour"),
        ({"broker": {"num.partitions": "x"}}, "--set broker.num.partitions=x: num.partitions"),
        ({"nemesis": ("none",), "schedule": SCHEDULE}, "schedule: no kill; there is nothing"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    """Each in one line that says what is wrong and what would be right."""
    with pytest.raises(Refused) as refused:
        request.resolve(msgspec.structs.replace(ALL, **changes))
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_fault_that_nobody_offers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target is asked for capabilities, not for names."""

    class Deaf:
        """Can nothing."""

    deaf = dataclasses.replace(catalogue.TARGETS["processes"], kind=Deaf)
    monkeypatch.setitem(catalogue.TARGETS, "processes", deaf)
    assert request.resolve(ALL).nemesis == ()
    with pytest.raises(Refused, match="--nemesis: no kill; there is none, all"):
        request.resolve(Plan(nemesis=("kill",)))


def test_a_plan_file_has_the_options_names(tmp_path: Path) -> None:
    """Kafka's dotted names may stand unquoted, values in TOML's own types."""
    path = tmp_path / "plan.toml"
    path.write_text(
        """
        nemesis = "kill, partition"
        time-limit = 30
        rate = 100
        mutant = "ack-on-local-append"
        results = "elsewhere"
        [broker]
        min.insync.replicas = 1
        unclean.leader.election.enable = true
        [producer]
        "linger.ms" = "5"
        [options]
        partitions = 4
        [[schedule]]
        id = 1
        at_s = 3
        duration_s = 2.5
        fault = "kill"
        """
    )
    fields = request.from_toml(path)
    plan = request.plan_of(fields)
    assert fields["results"] == "elsewhere"
    assert plan.nemesis == ("kill", "partition")
    assert (plan.time_limit_s, plan.rate_hz) == (30.0, 100.0)
    assert plan.mutants == ("ack-on-local-append",)
    assert plan.broker == {
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true",
    }
    assert plan.producer == {"linger.ms": "5"}
    assert plan.options == {"partitions": 4}
    assert plan.schedule == (ScheduledFault(id=1, at_s=3, duration_s=2.5, fault="kill"),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colour = 1", "no setting is called colour"),
        ("seed = ", "Invalid value"),
        ('seed = "x"', "Expected `int`"),
        ('target = "moon"', "--target: no moon; there is processes"),
        ('target = ["processes"]', "Expected"),
    ],
)
def test_a_wrong_plan_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """In one line, too."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(Refused) as refused:
        request.plan_of(request.from_toml(path))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_plan_file_is_refused(tmp_path: Path) -> None:
    """With its name."""
    with pytest.raises(Refused, match=r"none\.toml: No such file"):
        request.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize("text", ["acks=1", "producer=1", "producer.=1", "plan.seed=1", "broker.x"])
def test_a_setting_has_three_parts(text: str) -> None:
    """Whose, which, what."""
    with pytest.raises(Refused, match="--set"):
        request.setting(text)
    assert request.setting("producer.a.b=c=d") == ("producer", "a.b", "c=d")


def test_secrets_are_masked() -> None:
    """Passwords of clients and brokers do not reach a file."""
    plan = request.masked(
        Plan(
            producer={"sasl.password": "x", "acks": "1"},
            consumer={"ssl.keystore.password": "x", "ssl.keystore.key": "x"},
            broker={"listener.sasl.jaas.config": "x", "ssl.private.key": "x"},
        )
    )
    assert plan.producer == {"sasl.password": "***", "acks": "1"}
    assert set(plan.consumer.values()) | set(plan.broker.values()) == {"***"}


def test_a_fault_after_the_end_is_refused() -> None:
    """It would never come, and the run could only be unknown."""
    late = Plan(nemesis=("kill",), schedule=SCHEDULE, time_limit_s=1.0)
    with pytest.raises(Refused, match=r"fault 1 \(kill\) is to come at 1 s, but --time-limit is 1"):
        request.resolve(late)
    assert request.resolve(msgspec.structs.replace(late, time_limit_s=1.1)).schedule == SCHEDULE


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"broker": {"nope": "1"}}, "--set broker.nope=1: unknown setting nope"),
        ({"producer": {"acks": "1"}}, "--set producer.acks: a cluster has no clients of its own"),
    ],
)
def test_a_bare_cluster_takes_what_its_brokers_take(
    settings: dict[str, dict[str, str]], line: str
) -> None:
    """What no broker would start with, and what nobody would obey, is refused before the start."""
    with pytest.raises(Refused) as told:
        request.bare(Plan(**settings))  # type: ignore[arg-type]
    assert str(told.value) == line
    assert request.bare(Plan(broker={"num.partitions": "6"})).broker["num.partitions"] == "6"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"id": 1}, "schedule: two faults have the id 1; each needs its own"),
        ({"at_s": -1.0}, "schedule: fault 2 (kill) needs times of 0 or more"),
        ({"duration_s": float("nan")}, "schedule: fault 2 (kill) needs times of 0 or more"),
    ],
)
def test_an_impossible_schedule_is_refused(changes: dict[str, Any], line: str) -> None:
    """With one id for two faults, one would be taken for the other's mending."""
    second = msgspec.structs.replace(SCHEDULE[0], id=2)
    fine = Plan(nemesis=("kill",), schedule=(*SCHEDULE, second))
    assert request.resolve(fine).schedule == fine.schedule
    wrong = (*SCHEDULE, msgspec.structs.replace(second, **changes))
    with pytest.raises(Refused) as told:
        request.resolve(msgspec.structs.replace(fine, schedule=wrong))
    assert str(told.value) == line
