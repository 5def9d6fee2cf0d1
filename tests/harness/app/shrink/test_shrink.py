"""Shrinking with fake runs: a rule decides which plans show the anomaly."""

import ast
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.app import plan_resolution
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Failed, Interrupted
from harness.app.search import draw, single_run
from harness.app.search.jobs import SAID
from harness.app.search.outcome import RunResult
from harness.app.shrink import shrink, test_case, trials
from harness.app.shrink.shrink import Shrunk
from model.plan import Plan

ROOT = Path(__file__).resolve().parents[4]
RUFF = (sys.executable, "-m", "ruff", "check", "--quiet", "--config", ROOT / "pyproject.toml")


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the page of a run: fake runs have no history to draw."""
    monkeypatch.setattr(
        single_run, "finish", lambda folder: (folder / "report.html").write_text("page")
    )


def _each(
    shows: Callable[[Plan], bool], anomaly: str = "lost-write"
) -> Callable[[Plan, Path], RunResult]:
    def each(plan: Plan, folder: Path) -> RunResult:
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        red = shows(plan)
        return RunResult(
            seed=plan.seed,
            status="invalid" if red else "valid",
            anomalies={anomaly: 1, "poll-skip": 2} if red else {},
            why=("poll-skip 2 · it is so, too", f"{anomaly} 1 · it is so") if red else (),
            faults=len(plan.schedule or ()),
            faults_effective=len(plan.schedule or ()),
            witnessed_s={anomaly: (3.0, 4.0)} if red else {},
        )

    return each


def _origin(tmp_path: Path, plan: Plan) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    return folder


def _shrunk(tmp_path: Path, plan: Plan, shows: Callable[[Plan], bool], **more: object) -> Shrunk:
    each = _each(shows)
    origin = _origin(tmp_path, plan)
    return shrink.run(
        origin,
        tmp_path / "r",
        screen=Screen(io.StringIO()),
        jobs=4,
        each=each,
        **more,  # type: ignore[arg-type]
    )


def _has(plan: Plan, *faults: str) -> bool:
    names = [fault.fault for fault in plan.schedule or ()]
    return all(fault in names for fault in faults)


def test_only_what_is_needed_is_left(tmp_path: Path) -> None:
    """Only the two faults and the one setting that the anomaly needs are left of a large plan."""
    plan = draw.plan_of(
        1, {"workload": "idempotent", "nemesis": ("kill", "pause", "partition"), "brokers": 5}
    )
    plan = msgspec.structs.replace(
        plan, broker=plan.broker | {"replica.lag.time.max.ms": "1234"}, mutants=()
    )
    names = {fault.fault for fault in plan.schedule or ()}
    needed = sorted(names)[:2]

    def shows(plan: Plan) -> bool:
        return _has(plan, *needed) and plan.broker["replica.lag.time.max.ms"] == "1234"

    plain = plan_resolution.resolve(
        plan_resolution.plan_of({"target": "simulated", "nemesis": ["none"]})
    )
    told = _shrunk(tmp_path, plan, shows)
    assert told.is_minimal
    assert (told.anomaly, told.after.faults, told.after.brokers) == ("lost-write", 2, 3)
    assert (told.after.topics, told.after.clients) == (1, 2)
    assert told.before.faults == len(plan.schedule or ())
    left = msgspec.json.decode((Path(told.folder) / "plan.json").read_bytes(), type=Plan)
    assert sorted(fault.fault for fault in left.schedule or ()) == needed
    odd = {name for name, value in left.broker.items() if plain.broker.get(name) != value}
    assert odd == {"replica.lag.time.max.ms"}
    assert not (Path(told.folder) / SAID).exists()
    written = (Path(told.folder) / shrink.FILE).read_bytes()
    assert msgspec.json.decode(written, type=Shrunk) == told


def test_the_answer_does_not_depend_on_how_many_trials_run_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first plan by order that shows the anomaly counts, not the first trial that ends."""
    monkeypatch.setattr(trials, "SEEDS", 1)
    small = {"topics": 1, "late_topics": 0, "partitions": 1}
    plan = draw.plan_of(
        5, {"workload": "idempotent", "nemesis": ("kill", "pause"), "brokers": 3, "options": small}
    )
    first, *_ = plan.schedule or ()
    folders = []
    for jobs in (1, 3):
        told = shrink.run(
            _fresh(tmp_path / f"j{jobs}", plan),
            tmp_path / f"r{jobs}",
            screen=Screen(io.StringIO()),
            jobs=jobs,
            each=_each(lambda plan: _has(plan, first.fault)),
        )
        folders.append(Path(told.folder))
    one_job, three = (json.loads((folder / "plan.json").read_bytes()) for folder in folders)
    assert one_job == three


def _fresh(folder: Path, plan: Plan) -> Path:
    folder.mkdir()
    return _origin(folder, plan)


def test_a_plan_that_shows_nothing_is_refused(tmp_path: Path) -> None:
    """A run without an anomaly is refused in one line, and no folder is left."""
    with pytest.raises(Refused, match="nothing to shrink"):
        _shrunk(tmp_path, draw.plan_of(1, {"workload": "idempotent"}), lambda plan: False)
    assert not list((tmp_path / "r" / "shrunk").iterdir())


def test_what_differs_from_the_recorded_run_is_told(tmp_path: Path) -> None:
    """If a recorded anomaly is not repeated, the refusal names the versions that differ.

    A simulation is repeatable with the same interpreter only.
    """
    plan = draw.plan_of(1, {"workload": "idempotent"})
    plan = msgspec.structs.replace(plan, versions=plan.versions | {"python": "3.9.1"})
    with pytest.raises(
        Refused,
        match=r"no anomaly \(the history may differ from the recorded one: python .*3\.9\.1",
    ):
        _shrunk(tmp_path, plan, lambda plan: False)


@pytest.mark.parametrize("is_the_mutants", [True, False])
def test_what_no_mutant_is_needed_for_is_told(tmp_path: Path, is_the_mutants: bool) -> None:
    """If the anomaly also appears without the mutant, a message says so.

    A bug of the broker itself must not be taken for a planted one.
    """
    text = io.StringIO()
    plan = draw.plan_of(
        1, {"workload": "idempotent", "mutants": ("ack-on-local-append",), "nemesis": ("kill",)}
    )
    shrink.run(
        _origin(tmp_path, plan),
        tmp_path / "r",
        screen=Screen(text),
        each=_each(lambda plan: bool(plan.mutants) or not is_the_mutants),
        minutes=0.01,
    )
    told = "lost-write occurs without ack-on-local-append, too"
    assert (told in text.getvalue()) is not is_the_mutants


def test_a_run_that_comes_to_no_end_is_a_failure(tmp_path: Path) -> None:
    """A repetition that fails is a failure in one line and leaves no folder.

    It has shown nothing about the plan.
    """

    def fails(plan: Plan, folder: Path) -> RunResult:
        return RunResult(seed=plan.seed, status="failed", why=("Deadlock: nothing can happen",))

    def dies(plan: Plan, folder: Path) -> RunResult:
        raise SystemExit("no memory left")

    origin = _origin(tmp_path, draw.plan_of(1, {"workload": "idempotent"}))
    for each, line in (
        (fails, "the repeated run failed: Deadlock"),
        (dies, "status 1: .*no memory left"),
    ):
        with pytest.raises(Failed, match=line):
            shrink.run(origin, tmp_path / "r", screen=Screen(io.StringIO()), each=each)
    assert not list((tmp_path / "r" / "shrunk").iterdir())


def test_an_anomaly_that_it_does_not_show_is_refused(tmp_path: Path) -> None:
    """An anomaly that the run does not show is refused with a list of those that it shows."""
    with pytest.raises(Refused, match="the run shows only lost-write, poll-skip"):
        _shrunk(
            tmp_path,
            draw.plan_of(1, {"workload": "idempotent"}),
            lambda plan: True,
            anomaly="duplicate",
        )


@pytest.mark.parametrize(
    ("wanted", "found", "line"),
    [
        ("nonsense", None, "--anomaly: there is no nonsense; docs/anomalies.md lists all "),
        ("lost-writes", None, "--anomaly: there is no lost-writes; did you mean lost-write"),
        ("duplicate", {"lost-write": 1}, "--anomaly duplicate: the run shows only lost-write"),
    ],
)
def test_an_anomaly_that_it_cannot_show_is_refused_at_once(
    tmp_path: Path, wanted: str, found: dict[str, int] | None, line: str
) -> None:
    """An unknown anomaly, or one that is not in the run's verdict, is refused at once.

    The run is not repeated.
    """

    def never(plan: Plan, folder: Path) -> RunResult:
        raise AssertionError("the run was repeated")

    origin = _origin(tmp_path, draw.plan_of(1, {"workload": "idempotent"}))
    if found is not None:
        (origin / "verdict.json").write_text(json.dumps({"valid": False, "anomalies": found}))
    with pytest.raises(Refused, match=re.escape(line)):
        shrink.run(origin, tmp_path / "r", screen=Screen(io.StringIO()), anomaly=wanted, each=never)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("shown", "kept"),
    [
        (("duplicate", "invariant:log-matching", "lost-write"), "lost-write"),
        (("invariant:log-matching", "poll-skip"), "poll-skip"),
        (("invariant:log-matching",), "invariant:log-matching"),
    ],
)
def test_the_anomaly_that_says_most_is_kept(
    tmp_path: Path, shown: tuple[str, ...], kept: str
) -> None:
    """The anomaly to keep is a loss, else one that clients saw, else a violated invariant."""

    def each(plan: Plan, folder: Path) -> RunResult:
        ran = _each(lambda plan: True, kept)(plan, folder)
        return msgspec.structs.replace(ran, anomalies=dict.fromkeys(shown, 1))

    told = shrink.run(
        _origin(tmp_path, draw.plan_of(1, {"workload": "idempotent"})),
        tmp_path / "r",
        screen=Screen(io.StringIO()),
        each=each,
        minutes=1e-9,
    )
    assert told.anomaly == kept


def test_time_that_is_over_leaves_the_best_so_far(tmp_path: Path) -> None:
    """When the time is over, the smallest plan so far is written, and not called minimal."""
    plan = draw.plan_of(1, {"workload": "idempotent"})
    told = _shrunk(tmp_path, plan, lambda plan: True, minutes=1e-9)
    assert not told.is_minimal
    assert told.after == told.before
    text = shrink.describe(told, "faultline replay")
    assert "the time ended" in text
    assert "lost-write 1 · it is so" in text
    assert "poll-skip" not in text


def test_an_interruption_at_the_end_loses_nothing(tmp_path: Path) -> None:
    """After an interruption, the smallest plan so far is run once more and written."""
    parent, shows = os.getpid(), _each(lambda plan: True)

    def each(plan: Plan, folder: Path) -> RunResult:
        if folder.parent == tmp_path / "r" / "shrunk":
            os.kill(parent, signal.SIGINT)
        return shows(plan, folder)

    origin = _origin(tmp_path, draw.plan_of(1, {"workload": "idempotent"}))
    with pytest.raises(Interrupted, match="the smallest plan so far") as ended:
        shrink.run(origin, tmp_path / "r", screen=Screen(io.StringIO()), jobs=4, each=each)
    assert ended.value.folder is not None
    assert (ended.value.folder / shrink.FILE).exists()


def test_an_anomaly_that_comes_and_goes_is_a_failure(tmp_path: Path) -> None:
    """If the anomaly does not show in the final run, shrinking fails."""
    plan = draw.plan_of(1, {"workload": "idempotent"})

    def each(plan: Plan, folder: Path) -> RunResult:
        again = folder.name != "origin"
        return _each(lambda plan: not again)(plan, folder)

    with pytest.raises(Failed, match="but not in the last run"):
        shrink.run(
            _origin(tmp_path, plan),
            tmp_path / "r",
            screen=Screen(io.StringIO()),
            each=each,
            minutes=1e-9,
        )


def test_a_case_is_a_test(tmp_path: Path) -> None:
    """A test case is a module with the complete plan; for a mutant it also runs without it."""
    plan = draw.plan_of(1, {"workload": "idempotent"})
    planted = draw.plan_of(1, {"workload": "idempotent", "mutants": ("ack-on-local-append",)})
    protocol = msgspec.structs.replace(plan, mutants=("epochs-by-question",))
    both = msgspec.structs.replace(plan, mutants=("epochs-by-question", "ack-on-local-append"))
    for each, anomaly, name in (
        (plan, "lost-write", "test_no_lost_write"),
        (planted, "lost-write", "test_lost_write_is_found"),
        (protocol, "lost-write", "test_no_lost_write"),
        (both, "lost-write", "test_lost_write_is_found"),
        (plan, "invariant:log-matching", "test_no_invariant_log_matching"),
        (planted, "invariant:log-matching", "test_invariant_log_matching_is_found"),
    ):
        path = test_case.write(tmp_path, each, anomaly)
        file = re.sub("test_(no_)?|_is_found", "", name)
        assert path.name == f"test_{file}_seed{each.seed}.py"
        module = ast.parse(path.read_text())
        assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        space: dict[str, object] = {}
        exec(compile(module, str(path), "exec"), space)
        assert subprocess.run([*RUFF, path], check=False).returncode == 0
        held = msgspec.convert(space["PLAN"], Plan)
        assert held == msgspec.structs.replace(each, versions={}, commit="")
        assert ('PLAN | {"mutants": ["epochs-by-question"]}' in path.read_text()) is (each is both)
