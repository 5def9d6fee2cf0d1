"""Every command refuses a plan that would do more than configure its run."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.app import cli, plan_resolution
from harness.app.refused import Refused
from model.plan import Plan

NAMES = ("producer.plugin.library.paths", "consumer.ssl.ca.location", "broker.log.dirs")

Refuses = Callable[..., str]


@pytest.fixture
def refuses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Refuses:
    """Run a command and return the one line of its refusal, before any work begins."""

    def began(*_: object, **__: object) -> None:
        raise AssertionError("it began")

    for what in ("run.run", "gate.runner.run_gate", "shrink.shrink.new_folder"):
        monkeypatch.setattr(f"harness.app.{what}", began)
    monkeypatch.setattr("harness.app.search.campaign.new_folder", began)
    monkeypatch.setattr("harness.simulation.determinism.exec_pinned", began)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # what this machine's runs left

    def of(*arguments: object) -> str:
        with pytest.raises(SystemExit) as exit_:
            cli.main([*map(str, arguments), "--results", str(tmp_path / "results")])
        told = capsys.readouterr()
        assert (exit_.value.code, told.out) == (64, "")
        assert told.err.count("\n") == 1
        assert not (tmp_path / "results").exists()
        return told.err

    return of


def with_setting(name: str, **others: object) -> Plan:
    whose, _, key = name.partition(".")
    plan: dict[str, object] = {"nemesis": ["none"], whose: {key: "evil"}}
    return msgspec.convert(plan | others, Plan)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["processes", "simulated"])
def test_set_and_plan_file(name: str, target: str, refuses: Refuses, tmp_path: Path) -> None:
    """``run`` refuses a setting with a path on the command line and in a plan file."""
    assert f"--set {name}: it names" in refuses("run", "--target", target, "--set", f"{name}=evil")
    whose, _, key = name.partition(".")
    plan = tmp_path / "plan.toml"
    plan.write_text(f'target = "{target}"\n[{whose}]\n{key} = "evil"\n')
    assert f"--set {name}: it names" in refuses("run", plan)


@pytest.mark.parametrize("name", NAMES)
def test_replay_and_shrink(name: str, refuses: Refuses, tmp_path: Path) -> None:
    """``replay`` and ``shrink`` refuse such a setting in a folder before they make a client."""
    plan = with_setting(name, target="simulated", schedule=[])
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    assert f"--set {name}: it names" in refuses("replay", tmp_path)
    assert f"--set {name}: it names" in refuses("replay", tmp_path, "--target", "processes")
    assert f"--set {name}: it names" in refuses("shrink", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_suites(name: str, refuses: Refuses, tmp_path: Path) -> None:
    """``gate`` refuses the setting in a configuration and in the plan file of a matrix."""
    whose, _, key = name.partition(".")
    (tmp_path / "plan.toml").write_text(f'[{whose}]\n"{key}" = "evil"\n')
    suite = tmp_path / "suite.toml"
    suite.write_text('[[matrix]]\nplan = "plan.toml"\n')
    assert f"--set {name}: it names" in refuses("gate", suite)
    suite.write_text(
        f'[[matrix]]\nconfiguration = ["x"]\n[configurations.x.{whose}]\n"{key}" = "evil"\n'
    )
    assert f"--set {name}: it names" in refuses("gate", suite)


@pytest.mark.parametrize("name", NAMES)
def test_a_search(name: str, refuses: Refuses, tmp_path: Path) -> None:
    """``search`` refuses the setting before its first run."""
    assert f"--set {name}: it names" in refuses("search", "--runs", "1", "--set", f"{name}=evil")


def test_a_cluster_to_play_with() -> None:
    """``cluster up``, which has brokers only, refuses such settings of brokers."""
    with pytest.raises(Refused, match=r"--set broker\.log\.dirs: it names a file or folder"):
        plan_resolution.standalone(Plan(broker={"log.dirs": "/elsewhere"}))


@pytest.mark.parametrize("folder", ["/tmp/x", "../x", "a/../../x", "~/x", ""])
def test_a_plan_file_names_no_folder_outside(folder: str, refuses: Refuses, tmp_path: Path) -> None:
    """A plan file's ``results`` stays below the current folder; ``--results`` may be anywhere."""
    plan = tmp_path / "plan.toml"
    plan.write_text(f"results = {json.dumps(folder)}\n")
    assert "plan.toml:1: results: " in refuses("run", plan)


@pytest.mark.parametrize("line", ["results = 3", 'inline = "yes"'])
def test_a_plan_file_has_the_right_types(line: str, refuses: Refuses, tmp_path: Path) -> None:
    """``results`` and ``inline``, which are not part of the plan, are checked like all others."""
    plan = tmp_path / "plan.toml"
    plan.write_text(line)
    assert f"plan.toml:1: {line.split()[0]}: " in refuses("run", plan)


WRONG = """
nemesis = "partition"
time-limit = 9
target = "simulated"

[[schedule]]
id = 4
at_s = 1.0
duration_s = 1.0
fault = "partition-one"
targets = ["broker-1"]
options = {way = "dwon"}
"""
WHY = "schedule: fault 4 (partition-one): way = dwon: must be cut or down"


def test_a_wrong_option_of_a_fault(refuses: Refuses, tmp_path: Path) -> None:
    """Every command that takes a schedule refuses a fault with a wrong option."""
    plan, suite = tmp_path / "plan.toml", tmp_path / "suite.toml"
    plan.write_text(WRONG)
    suite.write_text('[[matrix]]\nplan = "plan.toml"\n')
    assert WHY in refuses("run", plan)
    assert WHY in refuses("gate", suite)
    assert WHY in refuses("search", "--runs", "1", plan)
    recorded = plan_resolution.plan_of(plan_resolution.from_toml(plan))
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(recorded))
    assert WHY in refuses("replay", tmp_path)
    assert WHY in refuses("replay", tmp_path, "--target", "processes")
    assert WHY in refuses("shrink", tmp_path)
