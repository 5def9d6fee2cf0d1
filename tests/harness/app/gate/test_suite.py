"""Suite files: the cases that they define, and what is refused before any case starts."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.expectations import Contract
from harness.app import catalogue
from harness.app.gate.suite import Suite, load, ready, suite
from harness.app.refused import Refused
from harness.systems.apache_kafka.system import ApacheKafka

KAFKA = {name for name, each in catalogue.WORKLOADS.items() if each.service == "kafka"}
"""The workloads of brokers."""

SUITE = Path("somewhere/here.toml")

FULL = """
name = "full"
time-limit = 7
budget-minutes = 1.5
inline = true
keep = 3
optional-targets = ["containers"]

[configurations.acks-1]
producer = { acks = 1, "enable.idempotence" = false }
concurrency = 4
time-limit = 8

[configurations.bug]
mutants = ["ack-on-local-append"]
broker = { min.insync.replicas = 1 }

[[matrix]]
workload = ["idempotent"]
nemesis = [["kill"], ["partition", "pause"], ["none"]]
configuration = ["default", "acks-1"]
target = ["processes"]
seed = [1, 2]

[[matrix]]
configuration = ["acks-1", "bug"]
time-limit = 9
"""


def of(text: str, **options: Any) -> Suite:
    return suite(tomllib.loads(text), SUITE, **options)


def test_a_matrix_is_every_combination() -> None:
    """A matrix gives every combination in the order of its axes; each case has its own name."""
    asked = of(FULL)
    assert asked.name == "full"
    assert (asked.budget_s, asked.inline, asked.keep) == (90.0, True, 3)
    assert asked.optional == ("containers",)
    assert len(asked.cases) == 3 * 2 * 2 + 2
    assert [case.name for case in asked.cases[:5]] == [
        "idempotent · kill · default · processes · seed 1",
        "idempotent · kill · default · processes · seed 2",
        "idempotent · kill · acks-1 · processes · seed 1",
        "idempotent · kill · acks-1 · processes · seed 2",
        "idempotent · partition,pause · default · processes · seed 1",
    ]
    assert asked.cases[-1].name == "idempotent · all · bug · processes · seed 0"


def test_a_case_has_the_plan_of_its_coordinates() -> None:
    """A configuration sets fields of a case's plan.

    The time limit of a matrix overrides that of a configuration, which overrides the suite's.
    """
    default, changed, matrixed, planted = (of(FULL).cases[place].plan for place in (0, 2, -2, -1))
    assert (default.time_limit_s, default.producer, default.concurrency) == (7.0, {}, 5)
    assert changed.producer == {"acks": "1", "enable.idempotence": "false"}
    assert (changed.time_limit_s, changed.concurrency) == (8.0, 4)
    assert matrixed.time_limit_s == 9.0
    assert planted.mutants == ("ack-on-local-append",)
    assert planted.broker == {"min.insync.replicas": "1"}


def test_seeds_can_be_moved_and_bugs_planted_everywhere() -> None:
    """``--seed`` replaces the first seed of each matrix and shifts the others.

    ``--mutant`` adds to the mutants of the configurations.
    """
    asked = of(FULL, seed=100, mutants=["no-min-isr-check"])
    assert [case.plan.seed for case in asked.cases[:4]] == [100, 101, 100, 101]
    assert asked.cases[-1].plan.seed == 100
    assert asked.cases[0].plan.mutants == ("no-min-isr-check",)
    assert asked.cases[-1].plan.mutants == ("ack-on-local-append", "no-min-isr-check")


def test_a_plan_file_is_the_ground_of_a_matrix(tmp_path: Path) -> None:
    """A matrix's plan file gives the fields that neither configuration nor axis sets.

    Its path is relative to the suite.
    """
    (tmp_path / "aimed.toml").write_text(
        'nemesis = ["kill"]\ntime-limit = 12\nseed = 5\nconcurrency = 8\n'
        'mutant = "no-min-isr-check"\n'
        "[options]\ntopics = 2\npartitions = 4\n"
        '[[schedule]]\nid = 1\nat_s = 1\nduration_s = 1\nfault = "kill"\ntargets = "controller"\n'
    )
    (tmp_path / "suite.toml").write_text(
        """time-limit = 99
        configurations.one.options.partitions = 1
        configurations.one.mutants = ["ack-on-local-append"]
        [[matrix]]
        plan = "aimed.toml"
        configuration = ["default", "one"]
        [[matrix]]
        plan = "aimed.toml"
        nemesis = [["kill", "pause"]]
        seed = [6]
        """
    )
    asked = load(tmp_path / "suite.toml")
    assert asked.name == "suite"
    assert [case.name for case in asked.cases] == [
        "idempotent · aimed · default · processes · seed 5",
        "idempotent · aimed · one · processes · seed 5",
        "idempotent · aimed with kill,pause · default · processes · seed 6",
    ]
    first, one, _ = (case.plan for case in asked.cases)
    assert (first.time_limit_s, first.concurrency, first.seed) == (12.0, 8, 5)
    assert first.options == {"topics": 2, "partitions": 4}
    assert one.options == {"topics": 2, "partitions": 1}
    assert one.mutants == ("no-min-isr-check", "ack-on-local-append")
    assert one.schedule is not None
    assert [case.left_out for case in ready(asked)] == [None] * 3


APACHE = "apache-kafka:3.9.1"

SYSTEMS = f"""
budget-minutes = 2
[[matrix]]
time-limit = 20
nemesis = [["kill"]]
system = ["kafka", "{APACHE}"]
seed = [1, 2]
"""


@pytest.fixture
def has_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every release of Apache Kafka be available."""
    monkeypatch.setattr(ApacheKafka, "missing", lambda self: None)


@pytest.mark.usefixtures("has_every_system")
def test_the_axis_of_systems() -> None:
    """The systems of a case follow each other.

    The name contains a system only if it is not this project's broker.
    """
    asked = of(SYSTEMS)
    assert [case.name for case in asked.cases] == [
        "idempotent · kill · default · processes · seed 1",
        f"idempotent · kill · default · processes · {APACHE} · seed 1",
        "idempotent · kill · default · processes · seed 2",
        f"idempotent · kill · default · processes · {APACHE} · seed 2",
    ]
    assert [case.plan.system for case in asked.cases] == ["kafka", APACHE] * 2
    assert [case.plan.system for case in ready(asked)] == ["kafka", APACHE] * 2


def test_the_system_of_a_plan_file_is_the_default(tmp_path: Path) -> None:
    """An axis overrides the system of a plan file, and the command line overrides both."""
    (tmp_path / "old.toml").write_text('system = "apache-kafka:2.8.2"\n')
    path = tmp_path / "suite.toml"
    path.write_text('[[matrix]]\nplan = "old.toml"\n[[matrix]]\nplan = "old.toml"\nsystem = '
                    f'["{APACHE}"]\n')  # fmt: skip
    assert [case.plan.system for case in load(path).cases] == ["apache-kafka:2.8.2", APACHE]
    path.write_text('[[matrix]]\nplan = "old.toml"\n')
    named = load(path, systems=["kafka", APACHE])
    assert [case.plan.system for case in named.cases] == ["kafka", APACHE]


@pytest.mark.usefixtures("has_every_system")
def test_the_command_line_names_systems() -> None:
    """Each named system runs every case of a target that runs any system, next to the others.

    A target of this project's broker runs its cases once, or not at all. The budget is that of the
    suite for each system.
    """
    text = """budget-minutes = 2
    [[matrix]]
    target = ["processes", "simulated"]
    seed = [1]
    """
    both = of(text, systems=["kafka", APACHE])
    assert [case.name for case in both.cases] == [
        "idempotent · all · default · processes · seed 1",
        f"idempotent · all · default · processes · {APACHE} · seed 1",
        "idempotent · all · default · simulated · seed 1",
    ]
    assert [case.left_out for case in ready(both)] == [None] * 3
    assert (both.budget_s, of(text).budget_s) == (240.0, 120.0)
    first, second = ready(of(text, systems=[APACHE]))
    assert (first.plan.system, first.left_out) == (APACHE, None)
    assert second.left_out == "the target simulated runs kafka only, which --system does not name"
    assert [case.plan.system for case in of(SYSTEMS, systems=["kafka"]).cases] == ["kafka"] * 2


def test_a_system_that_the_machine_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything starts, unless the suite declares it optional."""
    monkeypatch.setattr(ApacheKafka, "missing", lambda self: f"--system {self.name}: no Maven")
    with pytest.raises(Refused, match=rf"seed 1: --system {APACHE}: no Maven$"):
        ready(of(SYSTEMS))
    optional = f'optional-systems = ["{APACHE}"]\n{SYSTEMS}'
    why = f"the optional system {APACHE} is not available here: --system {APACHE}: no Maven"
    assert [case.left_out for case in ready(of(optional))] == [None, why] * 2
    with pytest.raises(Refused, match="no Maven"):
        ready(of(optional, require=[APACHE]))
    with pytest.raises(Refused, match=r"--require: there is no apache-kafka:2\.8\.2"):
        of(optional, require=["apache-kafka:2.8.2"])


@pytest.mark.usefixtures("has_every_system")
def test_a_system_without_bugs_to_plant_is_refused() -> None:
    """A mutant exists only in this project's broker."""
    with pytest.raises(Refused, match=f"seed 1: --mutant: no bug can be planted in {APACHE}"):
        ready(of(SYSTEMS, mutants=["ack-on-local-append"]))


AXES = {
    "nemesis": st.lists(st.sampled_from([["kill"], ["pause"], ["kill", "pause"], ["all"]]),
                        unique_by=tuple),
    "configuration": st.lists(st.sampled_from(["default", "a", "b"]), unique=True),
    "seed": st.lists(st.integers(0, 99), unique=True),
}  # fmt: skip


@given(st.fixed_dictionaries({name: axis.filter(bool) for name, axis in AXES.items()}))
def test_no_combination_is_forgotten_or_doubled(axes: dict[str, list[Any]]) -> None:
    """There are as many cases as combinations, all with different names.

    Each axis keeps the order of its values.
    """
    cases = suite({"configurations": {"a": {}, "b": {}}, "matrix": [axes]}, SUITE).cases
    sizes = [len(axis) for axis in axes.values()]
    assert len(cases) == len({case.name for case in cases}) == sizes[0] * sizes[1] * sizes[2]
    orders: dict[str, list[Any]] = {
        "nemesis": [list(case.nemesis) for case in cases],
        "configuration": [case.configuration for case in cases],
        "seed": [case.plan.seed for case in cases],
    }
    for axis, seen in orders.items():
        assert sorted(axes[axis], key=seen.index) == axes[axis]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the suite has no [[matrix]], so it has no cases"),
        ("matrix = []", "the suite has no [[matrix]], so it has no cases"),
        ("[[matrix]]\nbudget = 1\n", "matrix 1: no setting is called budget; available: config"),
        ("budget = 1\n[[matrix]]\n", "no setting is called budget; did you mean budget-minutes?"),
        (
            "name = 'A B'\n[[matrix]]\n",
            "name 'A B': a suite's name consists of small letters, digits and",
        ),
        ("keep = -1\n[[matrix]]\n", "keep -1: must be 0 to 1,000,000,000"),
        (f"keep = 1{'0' * 400}\n[[matrix]]\n", f"keep 1{'0' * 99}…: must be 0 to"),
        ("time-limit = -7\n[[matrix]]\ntime-limit = 1\n", "time-limit -7: must be a number of"),
        ("time-limit = nan\n[[matrix]]\ntime-limit = 1\n", "time-limit nan: must be a number of"),
        ("time-limit = 9e9\n[[matrix]]\ntime-limit = 1\n", "time-limit 9000000000: the maximum"),
        ("budget-minutes = 0\n[[matrix]]\n", "budget-minutes 0: must be a number above 0"),
        ("[[matrix]]\nseed = 1\n", "matrix[0].seed: Expected `array | null`, got `int`"),
        ("[[matrix]]\nseed = []\n", "matrix 1: seed is empty, so the matrix has no cases"),
        (
            "[[matrix]]\n[[matrix]]\nseed = [1, 1]\n",
            "two cases have the name 'idempotent · all · d",
        ),
        ("[[matrix]]\n[[matrix]]\n", "two cases have the name 'idempotent · all · default · proc"),
        ("[[matrix]]\nnemesis = [[]]\n", "matrix 1: a nemesis set is empty; write ['none']"),
        (
            "[[matrix]]\nnemesis = [['kil']]\n",
            "matrix 1: nemesis: there is no kil; did you mean kill?",
        ),
        ("[[matrix]]\nnemesis = ['kill']\n", "matrix[0].nemesis[0]: Expected `array`, got `str"),
        (
            "[[matrix]]\nworkload = ['x']\n",
            "matrix 1: workload: there is no x; available: idempotent",
        ),
        (
            "[[matrix]]\nconfiguration = ['x']\n",
            "matrix 1: configuration: there is no x; available: default",
        ),
        (
            "[[matrix]]\ntarget = ['moon']\n",
            "matrix 1: target: there is no moon; available: processes, co",
        ),
        (
            "optional-targets = ['moon']\n[[matrix]]\n",
            "optional-targets: there is no moon; available: proce",
        ),
        (
            "optional-targets = ['elsewhere']\n[[matrix]]\n",
            "optional-targets: there is no elsewhere; available: ",
        ),
        (
            "[[matrix]]\ntarget = ['elsewhere']\n",
            "matrix 1: target: there is no elsewhere; available: proce",
        ),
        (
            "[[matrix]]\nsystem = ['kafkaa']\n",
            "matrix 1: system: kafkaa: must be kafka (this project's broker), apache-kafka:VER",
        ),
        ("[[matrix]]\nsystem = []\n", "matrix 1: system is empty, so the matrix has no cases"),
        (
            "[[matrix]]\nsystem = ['kafka', 'kafka']\n",
            "matrix 1: system: kafka: this system is named more than once",
        ),
        (
            "optional-systems = ['moon']\n[[matrix]]\n",
            "optional-systems: moon: must be kafka (this project's broker), apache-kafka:VER",
        ),
        ('[[matrix]]\n[configurations."a\\u001b"]\n', "configuration 'a\\x1b': its name must"),
        ('[[matrix]]\n[configurations."a\\nb"]\n', "configuration 'a\\nb': its name must"),
        ('[[matrix]]\nplan = "a\\u001b.toml"\n', r"matrix 1: plan 'a\x1b.toml': its name has"),
        ('[[matrix]]\n[[matrix]]\nplan = "x.toml"\n', "matrix 2: plan somewhere/x.toml: No such"),
        (
            "budget-minutes = 0.5\n[[matrix]]\ntime-limit = 31\n",
            "idempotent · all · default · processes · seed 0: the time limit of 31 s exceeds"
            " the whole budget of 0.5 min",
        ),
        ("configurations.a.seed = 1\n[[matrix]]\n", "configuration a: no setting is called seed;"),
        (
            "configurations.a.brokers = 'x'\n[[matrix]]\n",
            "configuration a: Expected `int`, got `str` - at `brokers`",
        ),
        (
            "configurations.a.mutants = 5\n[[matrix]]\n",
            "configuration a: Expected `array`, got `int` - at `mutants`",
        ),
    ],
)
def test_a_wrong_suite_is_refused_in_one_line(text: str, line: str) -> None:
    """A wrong suite is refused in one line that says where it is wrong and what is valid."""
    with pytest.raises(Refused) as refused:
        of(text)
    assert str(refused.value).removeprefix(f"{SUITE}: ").startswith(line)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[matrix]]\ntime-limit = 0\n", "idempotent · all · default · processes · seed 0: --time"),
        ("[[matrix]]\nnemesis = [['all', 'kill']]\n", "idempotent · all,kill · default · process"),
        ("configurations.default.mutants = ['x']\n[[matrix]]\n", "idempotent · all · default"),
        ("configurations.default.broker.nobody = 1\n[[matrix]]\n", "idempotent · all · default"),
    ],
)  # fmt: skip
def test_every_case_is_resolved_before_the_first_starts(text: str, line: str) -> None:
    """A case that ``run`` would refuse is refused with its name before the first case starts."""
    with pytest.raises(Refused, match="seed 0: ") as refused:
        ready(of(text))
    assert str(refused.value).startswith(line)


def test_an_unreadable_suite_is_refused(tmp_path: Path) -> None:
    """A missing file and a file that is not TOML are refused in one line."""
    with pytest.raises(Refused, match="No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "torn.toml").write_text("[[matrix")
    with pytest.raises(Refused, match=r"torn\.toml: "):
        load(tmp_path / "torn.toml")


def test_what_the_machine_cannot_offer_is_left_out_when_the_suite_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cases of a missing optional target are left out, with the reason.

    If the target is available, its cases are checked like any other.
    """
    text = 'optional-targets = ["containers"]\n[[matrix]]\ntarget = ["processes", "containers"]\n'
    missing = dataclasses.replace(catalogue.TARGETS["containers"], refusal=lambda: "no engine")
    monkeypatch.setitem(catalogue.TARGETS, "containers", missing)
    first, second = ready(of(text))
    assert first.left_out is None
    assert first.plan.schedule
    assert second.left_out is not None
    assert second.left_out.startswith("the optional target containers is not available here: ")
    there = dataclasses.replace(catalogue.TARGETS["processes"], name="containers")
    monkeypatch.setitem(catalogue.TARGETS, "containers", there)
    assert [case.left_out for case in ready(of(text))] == [None, None]
    with pytest.raises(Refused, match="mutant: there is no x"):
        ready(of(text + 'configuration = ["x"]\n[configurations.x]\nmutants = ["x"]\n'))


def test_a_target_that_is_required_is_not_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``--require`` a missing optional target is refused.

    Otherwise a gate could be green without it, for example because the engine was slow to answer.
    """
    text = 'optional-targets = ["containers"]\n[[matrix]]\ntarget = ["processes", "containers"]\n'
    missing = dataclasses.replace(catalogue.TARGETS["containers"], refusal=lambda: "no engine")
    monkeypatch.setitem(catalogue.TARGETS, "containers", missing)
    asked = suite(tomllib.loads(text), SUITE, require=["containers"])
    with pytest.raises(Refused, match="--target containers: no engine"):
        ready(asked)
    with pytest.raises(Refused, match="--require: there is no moon; available: processes"):
        suite(tomllib.loads(text), SUITE, require=["moon"])
    with pytest.raises(Refused, match="--require containers: no case of somewhere"):
        suite({"matrix": [{}]}, SUITE, require=["containers"])


@pytest.mark.parametrize("name", ["quick", "nightly", "release"])
def test_the_suites_of_the_project_can_be_run(name: str, repository: Path) -> None:
    """Each suite has its file's name, and its cases resolve, except those of missing targets."""
    path = repository / "examples" / "suites" / f"{name}.toml"
    asked = load(path)
    assert asked.name == name
    cases = ready(asked)
    assert all(case.plan.schedule for case in cases if case.left_out is None)
    assert {case.plan.workload for case in cases} == KAFKA
    assert {"processes", "containers"} == {case.plan.target for case in cases}


def test_the_quick_suite_keeps_what_it_promises(repository: Path) -> None:
    """The quick suite has at least 12 cases on processes, each of at least 20 s and 3 faults.

    Its cases on processes have at least six kinds of faults. With the containers' cases, too,
    the suite fits into its budget.
    """
    asked = load(repository / "examples" / "suites" / "quick.toml")
    cases = ready(asked)
    processes = [case for case in cases if case.plan.target == "processes"]
    assert len(processes) >= 12
    assert all(case.plan.time_limit_s >= 20 for case in cases)
    assert all(len(case.plan.schedule or ()) >= 3 for case in processes)
    assert len({fault.fault for case in processes for fault in case.plan.schedule or ()}) >= 6
    beside_s = {"processes": 6.0, "containers": 12.0}
    needed_s = sum(case.plan.time_limit_s + beside_s[case.plan.target] for case in cases)
    assert asked.budget_s is not None
    assert needed_s < asked.budget_s


@pytest.mark.usefixtures("has_every_system")
def test_the_quick_suite_suits_a_release(repository: Path) -> None:
    """All cases of the quick suite can be run on a release, each with a fault."""
    path = repository / "examples" / "suites" / "quick.toml"
    asked = ready(load(path, systems=["kafka", APACHE]))
    cases = [case for case in asked if case.left_out is None]  # without an engine: no containers
    theirs = [case for case in cases if case.plan.system == APACHE]
    assert len(theirs) == len(cases) - len(theirs) >= 12
    assert all(case.plan.schedule for case in theirs)
    assert {case.plan.workload for case in theirs} == KAFKA


@pytest.mark.usefixtures("has_every_system")
def test_the_suite_for_kraft_is_strict(repository: Path) -> None:
    """It has every workload, on a release without ZooKeeper; no loss and no duplicate is legal."""
    cases = ready(load(repository / "examples" / "suites" / "kraft.toml"))
    assert {case.plan.system for case in cases} == {"apache-kafka:4.1.0"}
    assert {case.plan.workload for case in cases} == KAFKA
    for case in cases:
        contract = Contract.of(case.plan)
        assert case.plan.schedule
        assert contract.acks == "all"
        assert contract.idempotent
        assert not contract.unclean_elections


def test_the_suite_for_zookeeper(repository: Path) -> None:
    """It has every workload of ZooKeeper with two seeds, in simulation, each with a fault."""
    cases = ready(load(repository / "examples" / "suites" / "zookeeper.toml"))
    workloads = sorted({*catalogue.WORKLOADS} - KAFKA)
    assert sorted(case.plan.workload for case in cases) == sorted(2 * workloads)
    assert {(case.plan.target, case.plan.system) for case in cases} == {("simulated", "zookeeper")}
    assert all(case.plan.schedule for case in cases)


def test_the_suites_are_all_there_are(repository: Path) -> None:
    """These tests cover all suites of the project."""
    there = {path.stem for path in (repository / "examples" / "suites").iterdir()}
    assert there == {"quick", "nightly", "release", "kraft", "zookeeper"}


def test_configurations_are_judged_by_what_they_promise(repository: Path) -> None:
    """The contract permits lost records only for the configuration acks-1."""
    for case in ready(load(repository / "examples" / "suites" / "quick.toml")):
        if case.left_out is None:
            contract = Contract.of(case.plan)
            strict = case.asked.configuration != "acks-1"
            assert (contract.acks == "all" and contract.idempotent) == strict
