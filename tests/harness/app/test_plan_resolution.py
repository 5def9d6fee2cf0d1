"""Requests of users: names, defaults, and one line for what is invalid."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from harness.app import catalogue, plan_resolution
from harness.app.refused import Refused
from model.plan import Plan, ScheduledFault

ALL = Plan(nemesis=(plan_resolution.ALL,))


def test_every_default_is_written_out() -> None:
    """A resolved plan has no defaults left: rate, settings, options, faults, versions are set."""
    plan = plan_resolution.resolve(ALL)
    assert plan.rate_hz > 0
    classic = ("kill", "pause", "restart", "partition", "slow", "zookeeper")
    assert plan.nemesis == (*classic, "admin", "apart", "messages")
    assert plan.broker["min.insync.replicas"] == "2"
    assert plan.broker["zookeeper.session.timeout.ms"] == "2000"
    assert plan.producer["enable.idempotence"] == "true"
    assert plan.consumer["isolation.level"]
    assert plan.options["replication_factor"] == 3
    assert plan.schedule
    assert plan.versions["confluent-kafka"]
    assert plan.versions["librdkafka"]


def test_a_resolved_plan_resolves_to_itself() -> None:
    """A resolved plan resolves to itself, so ``replay`` executes what ``run`` did."""
    plan = plan_resolution.resolve(ALL)
    assert plan_resolution.resolve(plan) == plan
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_the_schedule_follows_from_the_seed() -> None:
    """The same seed draws the same faults, and another seed others."""
    first = plan_resolution.resolve(ALL).schedule
    assert plan_resolution.resolve(ALL).schedule == first
    assert plan_resolution.resolve(msgspec.structs.replace(ALL, seed=1)).schedule != first


def test_no_nemesis_no_faults() -> None:
    """``none`` injects no faults."""
    plan = plan_resolution.resolve(Plan(nemesis=(plan_resolution.NONE,)))
    assert (plan.nemesis, plan.schedule) == ((), ())


def test_settings_win_over_defaults() -> None:
    """Settings given with ``--set`` override the defaults."""
    asked = Plan(
        nemesis=(plan_resolution.NONE,),
        broker={"min.insync.replicas": "1"},
        producer={"acks": "1", "enable.idempotence": "false"},
        options={"partitions": 1},
    )
    plan = plan_resolution.resolve(asked)
    assert plan.broker["min.insync.replicas"] == "1"
    assert plan.producer["acks"] == "1"
    assert plan.options["partitions"] == 1


SCHEDULE = (ScheduledFault(id=1, at_s=1, duration_s=1, fault="kill", targets="controller"),)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workload": "bank"}, "--workload: there is no bank; available: idempotent"),
        ({"nemesis": ("fire",)}, "--nemesis: there is no fire; available: kill"),
        ({"nemesis": ("kill", "none")}, "--nemesis: none cannot be combined"),
        ({"mutants": ("b",)}, "--mutant: there is no b; faultline mutants list lists all "),
        ({"time_limit_s": 0.0}, "--time-limit 0: must be a number of seconds above 0"),
        ({"time_limit_s": float("nan")}, "--time-limit nan: must be a number of seconds above 0"),
        ({"time_limit_s": float("inf")}, "--time-limit inf: must be a number of seconds above 0"),
        ({"brokers": -1}, "--brokers -1: must be a number of brokers above 0"),
        ({"brokers": 2}, "--brokers: 3 replicas"),
        ({"concurrency": 1}, "--concurrency: idempotent needs at least 2"),
        ({"rate_hz": -1.0}, "--rate -1: must be a number of writes per second above 0"),
        ({"time_limit_s": 1e9}, "--time-limit 1000000000: the maximum is 604,800 seconds"),
        ({"concurrency": 10**9}, "--concurrency 1000000000: the maximum is 10,000 clients"),
        ({"rate_hz": 1e12}, "--rate 1000000000000: the maximum is 1,000,000 writes per second"),
        ({"brokers": 10**9}, "--brokers 1000000000: the maximum is 100 brokers"),
        (
            {"workload": "idempotant"},
            "--workload: there is no idempotant; did you mean idempotent?",
        ),
        ({"nemesis": ("patition",)}, "--nemesis: there is no patition; did you mean partition?"),
        ({"target": "simulatd"}, "--target: there is no simulatd; did you mean simulated?"),
        (
            {"mutants": ("ack-on-local-apend",)},
            "--mutant: there is no ack-on-local-apend; did you mean ack-on-local-append",
        ),
        ({"producer": {"ack": "all"}}, "--set producer."),
        ({"seed": 2**63}, "--seed 9223372036854775808: must fit into 64 bits"),
        ({"brokers": 10**400}, "--brokers 1000000000"),
        ({"options": {"topics": 10**9}}, "options: topics=1000000000: must be 1,000 at most"),
        ({"options": {"batch_max": float("nan")}}, "options: batch_max=nan: must be"),
        ({"time_limit_s": 0.5}, "--time-limit 0.5: too short for any fault of kill, pause"),
        (
            {"nemesis": ("kill",), "time_limit_s": 1.0},
            "--time-limit 1: too short for any fault of kill (seed 0); 1",
        ),
        ({"options": {"colour": 1}}, "options: there is no colour; available: client, topics"),
        ({"options": {"replication_factor": "many"}}, "options: "),
        ({"producer": {"acks": "most"}}, "--set producer."),
        ({"broker": {"colour": "1"}}, "--set broker.colour=1: unknown setting colour"),
        ({"broker": {"num.partitions": "x"}}, "--set broker.num.partitions=x: num.partitions"),
        (
            {"nemesis": ("none",), "schedule": SCHEDULE},
            "schedule: there is no kill; available: none",
        ),
        (
            {"nemesis": ("kill", "pause"), "schedule": ()},
            "schedule: it has no fault, but nemesis is kill, pause; set nemesis to none",
        ),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    """An invalid value is refused in one line that says what is wrong and what is valid."""
    with pytest.raises(Refused) as refused:
        plan_resolution.resolve(msgspec.structs.replace(ALL, **changes))
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_fault_that_nobody_offers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are offered by a target's capabilities, not by its name."""

    class Deaf:
        """A cluster without any capability."""

    deaf = dataclasses.replace(catalogue.TARGETS["processes"], kind=Deaf)
    monkeypatch.setitem(catalogue.TARGETS, "processes", deaf)
    assert plan_resolution.resolve(ALL).nemesis == ()
    with pytest.raises(Refused, match="--nemesis: there is no kill; available: none, all"):
        plan_resolution.resolve(Plan(nemesis=("kill",)))


def test_a_target_that_this_machine_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that this machine lacks is refused before any start, for ``cluster up``, too."""
    nowhere = dataclasses.replace(
        catalogue.TARGETS["containers"], refusal=lambda: "no engine answers"
    )
    monkeypatch.setitem(catalogue.TARGETS, "containers", nowhere)
    for resolve in (plan_resolution.resolve, plan_resolution.standalone):
        with pytest.raises(Refused, match="--target containers: no engine answers"):
            resolve(Plan(target="containers"))


@pytest.mark.parametrize("resolve", [plan_resolution.resolve, plan_resolution.standalone])
@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        ("containers", "cpus", "x"),
        ("containers", "cpus", 0),
        ("containers", "memory_mb", 0.5),
        ("containers", "disk_mb", -1),
        ("containers", "client_listeners", "alice"),
        ("processes", "client_listeners", 3),
        ("processes", "client_listeners", ["alice", "Alice"]),
        ("processes", "client_listeners", [""]),
    ],
)
def test_a_target_refuses_its_own_options(
    monkeypatch: pytest.MonkeyPatch,
    resolve: Callable[[Plan], Plan],
    target: str,
    name: str,
    value: object,
) -> None:
    """A target checks its own options before any start, for runs and for ``cluster up``."""
    here = dataclasses.replace(catalogue.TARGETS[target], refusal=lambda: None)
    monkeypatch.setitem(catalogue.TARGETS, target, here)
    asked = msgspec.convert({"target": target, "nemesis": ["none"]}, Plan)
    with pytest.raises(Refused, match=f"^options: {name}="):
        resolve(msgspec.structs.replace(asked, options={name: value}))
    assert resolve(asked).options["client_listeners"] == []


@pytest.mark.parametrize("name", ["latency_ms", "jitter_ms"])
def test_simulated_links_take_no_less_than_no_time(name: str) -> None:
    """Latency and jitter of simulated links must be finite and not negative."""
    for value in (-1, "x", float("inf")):
        with pytest.raises(Refused, match=f"^options: {name}="):
            plan_resolution.resolve(
                Plan(target="simulated", nemesis=("none",), options={name: value})
            )


def test_clients_of_a_world_may_live_in_the_past_but_not_before_1970() -> None:
    for value in (-200_000, 0, 300):
        plan = Plan(target="simulated", nemesis=("none",), options={"clients_clock_s": value})
        assert plan_resolution.resolve(plan).options["clients_clock_s"] == value
    ancient = msgspec.structs.replace(plan, options={"clients_clock_s": -3e9})
    with pytest.raises(Refused, match=r"^options: clients_clock_s="):
        plan_resolution.resolve(ancient)


def test_containers_can_suffer_more() -> None:
    """Containers offer the faults of processes, and those that need a network, disk or limits.

    They do not offer faults on messages.
    """
    offered = [plan_resolution.offered(Plan(target=name)) for name in ("processes", "containers")]
    assert set(offered[1]) - set(offered[0]) == {"disconnect", "disk", "packets", "squeeze"}
    assert set(offered[0]) - set(offered[1]) == {"messages"}


def system_refusal(**fields: Any) -> str:
    """Return why a plan is refused."""
    with pytest.raises(Refused) as raised:
        plan_resolution.resolve(Plan(**fields))
    return str(raised.value)


def test_a_system_has_a_known_name() -> None:
    """The line about an unknown system says which names there are."""
    assert system_refusal(system="redpanda").startswith("--system redpanda: must be kafka ")


def test_the_simulation_runs_no_other_system() -> None:
    """The simulation runs this project's programs only, whose code it needs."""
    target = "simulated"
    line = f"--target {target}: it runs this project's programs only, not apache-kafka:3.9.1;"
    assert system_refusal(system="apache-kafka:3.9.1", target=target).startswith(line)


@pytest.mark.parametrize(
    ("version", "workload", "lacks"),
    [
        ("0.10.2.2", "idempotent", "idempotent producers (KIP-98"),
        ("0.10.2.2", "transactions", "idempotent producers (KIP-98"),
        ("2.4.1", "exactly-once", "fenced group members in transactions (KIP-447"),
    ],
)
def test_a_workload_that_a_release_lacks_features_for(
    version: str, workload: str, lacks: str
) -> None:
    """The line names the feature, its proposal and the release."""
    system = f"apache-kafka:{version}"
    line = system_refusal(system=system, workload=workload)
    assert line.startswith(f"--workload {workload}: it needs {lacks}")
    assert line.endswith(f"which {system} does not have")


def test_no_bug_can_be_planted_in_a_release() -> None:
    """Mutants are of this project's broker."""
    line = "--mutant: no bug can be planted in apache-kafka:3.9.1"
    assert system_refusal(system="apache-kafka:3.9.1", mutants=("any",)) == line


@pytest.mark.parametrize("count", ["x", [1], 0, -1])
def test_wrong_options_of_a_system_are_refused_in_words(count: Any) -> None:
    """The system checks its options before they decide on nodes and faults."""
    line = system_refusal(system="apache-kafka:3.9.1", options={"zookeepers": count})
    assert line == f"options: zookeepers={count}: must be a whole number of at least 1"


def test_faults_of_zookeeper_need_a_zookeeper() -> None:
    """A cluster with KRaft is offered no fault of ZooKeeper; one with ZooKeeper is."""
    release = Plan(system="apache-kafka:3.9.1")
    assert "zookeeper" in plan_resolution.offered(release)
    kraft = msgspec.structs.replace(release, options={"coordination": "kraft"})
    assert "zookeeper" not in plan_resolution.offered(kraft)
    assert "kill" in plan_resolution.offered(kraft)


def test_simulation_has_machines_of_its_own() -> None:
    """The simulation offers all faults of containers except an engine's limits.

    It also offers faults that need a machine of their own: power, disk and clock, for example.
    """
    offered = [plan_resolution.offered(Plan(target=name)) for name in ("simulated", "containers")]
    assert set(offered[1]) - set(offered[0]) == {"squeeze"}
    mine = {"power", "slow-disk", "clock", "session", "messages", "point", "bit-flip"}
    assert set(offered[0]) - set(offered[1]) == mine


def test_no_power_is_lost_that_every_copy_hangs_by() -> None:
    """With ``min.insync.replicas=1`` no power loss is drawn: it may lose acknowledged records."""
    plan = Plan(target="simulated", nemesis=("power",), time_limit_s=120.0)
    assert plan_resolution.resolve(plan).schedule
    single = {"min.insync.replicas": "1"}
    with pytest.raises(Refused, match="--nemesis power: no such fault can be drawn"):
        plan_resolution.resolve(msgspec.structs.replace(plan, broker=single))
    quiet = msgspec.structs.replace(plan, broker=single)
    assert plan_resolution.resolve(quiet, may_be_quiet=True).schedule == ()


@pytest.mark.parametrize("target", ["processes", "containers"])
def test_real_machines_keep_their_power(
    target: Literal["processes", "containers"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real targets refuse a power loss in one line with the faults that they offer."""
    had = dataclasses.replace(catalogue.TARGETS[target], refusal=lambda: None)
    monkeypatch.setitem(catalogue.TARGETS, target, had)
    with pytest.raises(Refused, match="--nemesis: there is no power; available: kill, pause"):
        plan_resolution.resolve(Plan(target=target, nemesis=("power",)))


def test_simulation_has_its_own_defaults() -> None:
    """The simulation's client is aiokafka, and its rate is lower."""
    plan = plan_resolution.resolve(Plan(target="simulated", nemesis=("none",)))
    assert plan.options["client"] == "aiokafka"
    assert 0 < plan.rate_hz < plan_resolution.resolve(Plan(nemesis=("none",))).rate_hz


def test_librdkafka_is_not_simulated() -> None:
    """Librdkafka has threads and cannot be simulated; the refusal names the right client."""
    with pytest.raises(Refused, match=r"client=librdkafka cannot be simulated.*aiokafka"):
        plan_resolution.resolve(Plan(target="simulated", options={"client": "librdkafka"}))


def test_nobody_plays_with_a_simulated_cluster() -> None:
    """``cluster up`` refuses the simulated target, whose time exists within a run only."""
    with pytest.raises(Refused, match="--target simulated: its clusters exist only within a run"):
        plan_resolution.standalone(Plan(target="simulated"))


def test_a_plan_file_has_the_options_names(tmp_path: Path) -> None:
    """A plan file may have Kafka's dotted names unquoted and values of TOML's own types."""
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
    fields = plan_resolution.from_toml(path)
    plan = plan_resolution.plan_of(fields)
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
        ('target = "moon"', "--target: there is no moon; available: processes"),
        ('target = ["processes"]', "Expected"),
    ],
)
def test_a_wrong_plan_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """A wrong plan file is refused in one line."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(Refused) as refused:
        plan_resolution.plan_of(plan_resolution.from_toml(path))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_plan_file_is_refused(tmp_path: Path) -> None:
    """A missing plan file is refused with its name."""
    with pytest.raises(Refused, match=r"none\.toml: No such file"):
        plan_resolution.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize("text", ["acks=1", "producer=1", "producer.=1", "plan.seed=1", "broker.x"])
def test_a_setting_has_three_parts(text: str) -> None:
    """A setting consists of a component, a name and a value."""
    with pytest.raises(Refused, match="--set"):
        plan_resolution.setting(text)
    assert plan_resolution.setting("producer.a.b=c=d") == ("producer", "a.b", "c=d")


def test_settings_override_the_tables_of_a_plan_file() -> None:
    """An option's value is read as TOML if possible; Kafka's settings are texts."""
    fields = {"options": {"topics": 1, "client": "raw"}, "broker": {"a.b": "1"}, "seed": 3}
    texts = ["options.topics=2", "options.client=librdkafka", "broker.c=[2]", "options.x=[1, 2]"]
    assert plan_resolution.override(fields, texts) == {
        "options": {"topics": 2, "client": "librdkafka", "x": [1, 2]},
        "broker": {"a.b": "1", "c": "[2]"},
        "seed": 3,
    }
    assert fields["options"] == {"topics": 1, "client": "raw"}


@pytest.mark.parametrize("value", ["2026-11-23", "1\ny = 2", "{a = 1}", "[1", "-", ""])
def test_an_option_that_is_no_plain_value_is_a_text(value: str) -> None:
    """Dates, tables and what is not TOML stay texts, which the check of the option refuses."""
    assert plan_resolution.override({}, [f"options.x={value}"]) == {"options": {"x": value}}


def test_an_option_has_no_part_in_a_contract() -> None:
    """`faultline check` takes only the settings of Kafka."""
    with pytest.raises(Refused, match=r"write broker\.KEY=VALUE, producer\.KEY=… or consumer"):
        plan_resolution.settings_of(["options.topics=2"])
    with pytest.raises(Refused, match=r"consumer\.KEY=… or options\.KEY"):
        plan_resolution.override({}, ["topics=2"])
    with pytest.raises(Refused, match="options must be a table"):
        plan_resolution.override({"options": 3}, ["options.topics=2"])


def test_secrets_are_masked() -> None:
    """Passwords of clients and brokers do not reach a file."""
    plan = plan_resolution.masked(
        Plan(
            producer={"sasl.password": "x", "acks": "1"},
            consumer={"ssl.keystore.password": "x", "ssl.keystore.key": "x"},
            broker={"listener.sasl.jaas.config": "x", "ssl.private.key": "x"},
        )
    )
    assert plan.producer == {"sasl.password": "***", "acks": "1"}
    assert set(plan.consumer.values()) | set(plan.broker.values()) == {"***"}


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
    """``cluster up`` refuses settings that no broker accepts or that only clients would use."""
    with pytest.raises(Refused) as told:
        plan_resolution.standalone(Plan(**settings))  # type: ignore[arg-type]
    assert str(told.value) == line
    assert (
        plan_resolution.standalone(Plan(broker={"num.partitions": "6"})).broker["num.partitions"]
        == "6"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload = " + "[" * 50_000, "the file is nested too deeply"),
        ("seed = " + "9" * 9999, "Exceeds the limit"),
        ("inline = 1", "inline: must be true or false"),
        ('inline = "no"', "inline: must be true or false"),
        ("results = 7", "results: must be the name of a folder"),
        ("lake = '../lake'", "only the option --lake may name another folder"),
        ("[producer]\nacks = []", "producer.acks: the value must be text, a number, true or false"),
        (
            "[broker]\na.b = {c = {}}",
            "broker.a.b.c: the value must be text, a number, true or false",
        ),
        (
            "[consumer]\na = 2026-11-22",
            "consumer.a: the value must be text, a number, true or false",
        ),
    ],
)
def test_a_plan_file_with_other_values_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Every value in a plan file is checked, and a wrong one is refused."""
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(Refused, match=re.escape(message)):
        plan_resolution.from_toml(path)
