"""A red run on real processes is tried in simulations of its plan, which are fakes here."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import cli, plan_resolution, reproduce
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.reproduce import Reproduction, Shows
from harness.app.search import single_run
from harness.app.search.outcome import RunResult, Status
from harness.app.shrink import shrink
from model.plan import Plan, ScheduledFault

CUT = ScheduledFault(id=1, at_s=2.0, duration_s=1.0, fault="partition-one", targets=["broker-1"])
KILL = ScheduledFault(
    id=2, at_s=5.0, duration_s=1.0, fault="kill", targets="controller", options={"when": "send"}
)
SQUEEZE = ScheduledFault(id=3, at_s=6.0, duration_s=1.0, fault="squeeze-cpu", options={"cpus": 0.1})
LIBRDKAFKAS = {"assignor": "cooperative-sticky"}
RED = {"valid": False, "anomalies": {"lost-write": 12, "poll-skip": 3}}
REAL = plan_resolution.resolve(
    Plan(
        target="processes",
        nemesis=("kill", "partition"),
        schedule=(CUT, KILL),
        time_limit_s=10.0,
        seed=7,
        mutants=("ack-on-local-append",),
    )
)


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the page of a run: fake runs have no history to draw."""
    monkeypatch.setattr(
        single_run, "finish", lambda folder: (folder / "report.html").write_text("page")
    )


def recorded(folder: Path, plan: Plan = REAL, verdict: object = RED, late_s: float = 0.0) -> Path:
    """Write the folder of a run whose faults came `late_s` later than planned."""
    folder.mkdir()
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    if verdict is not None:
        (folder / "verdict.json").write_text(json.dumps(verdict))
    rows = []
    for fault in plan.schedule or ():
        at_ns = round((fault.at_s + late_s) * 1e9)
        row = {"id": fault.id, "fault": fault.fault, "asked_ns": at_ns, "applied_ns": at_ns}
        row["healed_ns"] = at_ns + round((fault.duration_s + late_s) * 1e9)
        rows.append(json.dumps(row) + "\n")
    (folder / "schedule.jsonl").write_text("".join(rows))
    return folder


def each(
    shows: Callable[[Plan], tuple[Status, dict[str, int]]],
) -> Callable[[Plan, Path], RunResult]:
    """Make fake runs whose result is given by a rule."""

    def carried_out(plan: Plan, folder: Path) -> RunResult:
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        status, anomalies = shows(plan)
        why = () if status == "valid" else (f"it is {status}",)
        return RunResult(seed=plan.seed, status=status, anomalies=anomalies, why=why)

    return carried_out


def tried(
    tmp_path: Path,
    shows: Callable[[Plan], tuple[Status, dict[str, int]]],
    folder: Path | None = None,
    **more: Any,
) -> Reproduction:
    more = {"seeds": 4, "jobs": 1} | more
    return reproduce.run(
        folder or recorded(tmp_path / "real"),
        tmp_path / "r",
        screen=Screen(io.StringIO()),
        each=each(shows),
        **more,
    )


def from_seed(seed: int) -> Callable[[Plan], tuple[Status, dict[str, int]]]:
    """Return a rule that is red with this seed and later ones."""
    return lambda plan: ("invalid", {"lost-write": 1}) if plan.seed >= seed else ("valid", {})


def test_seeds_are_tried_until_the_same_anomaly_shows(tmp_path: Path) -> None:
    """Seeds are tried, the run's own first, until the same anomaly shows.

    The first such run's folder is kept, to be shrunk.
    """
    told = tried(tmp_path, from_seed(9))
    assert [(each.seed, each.status, each.shows) for each in told.attempts] == [
        (7, "valid", "none"),
        (8, "valid", "none"),
        (9, "invalid", "same"),
    ]
    assert (told.shows, told.anomaly, told.target) == ("same", "lost-write", "processes")
    assert reproduce.exit_status(told) == 1
    [folder] = (tmp_path / "r").iterdir()
    assert Path(told.folder) == folder
    assert {path.name for path in folder.iterdir()} == {"plan.json", "report.html"}
    plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    assert (plan.target, plan.seed, plan.mutants) == ("simulated", 9, REAL.mutants)
    assert plan.options["client"] == "aiokafka"
    assert plan_resolution.resolve(plan).schedule == (CUT, KILL)


@pytest.mark.parametrize("jobs", [2, 5])
def test_the_answer_does_not_depend_on_how_many_run_at_a_time(tmp_path: Path, jobs: int) -> None:
    """The first hit by seed counts, and the table has no attempt after it."""
    folder = recorded(tmp_path / "real")
    alone = tried(tmp_path, from_seed(8), folder)
    together = tried(tmp_path, from_seed(8), folder, jobs=jobs)
    assert together.attempts == alone.attempts
    assert len(together.attempts) == 2
    assert (Path(together.folder) / "plan.json").read_bytes() == (
        Path(alone.folder) / "plan.json"
    ).read_bytes()


def test_what_is_kept_can_be_shrunk(tmp_path: Path) -> None:
    """``shrink`` accepts the kept folder and the anomaly."""
    shows = from_seed(8)
    told = tried(tmp_path, shows)
    small = shrink.run(
        Path(told.folder),
        tmp_path / "small",
        screen=Screen(io.StringIO()),
        anomaly=told.anomaly,
        each=lambda plan, folder: msgspec.structs.replace(
            each(shows)(plan, folder),
            faults=len(plan.schedule or ()),
            faults_effective=len(plan.schedule or ()),
        ),
    )
    assert small.anomaly == "lost-write"
    assert small.after.faults < small.before.faults


def test_a_late_schedule_is_tried_as_it_went_too(tmp_path: Path) -> None:
    """If the recorded schedule was late, each seed is also tried with the recorded times.

    These faults do not wait for an operation again, and the work lasts as long as they do.
    """
    plans: list[Plan] = []

    folder = recorded(tmp_path / "real", late_s=6.0)
    told = tried(tmp_path, lambda plan: ("valid", {}), folder, seeds=2)
    assert [(each.seed, each.schedule) for each in told.attempts] == [
        (7, "planned"),
        (7, "recorded"),
        (8, "planned"),
        (8, "recorded"),
    ]
    plan, _ = reproduce.simulated(REAL)
    plans = [plan for _, plan in reproduce.plans(plan, folder, 1)]
    assert plans[0].schedule == (CUT, KILL)
    late = plans[1].schedule or ()
    assert [(fault.at_s, fault.duration_s, fault.targets) for fault in late] == [
        (8.0, 7.0, ["broker-1"]),
        (11.0, 7.0, "controller"),
    ]
    assert late[1].options == {}
    assert plans[1].time_limit_s == 12.0
    assert plan_resolution.resolve(plans[1]).schedule == late


def test_recorded_times_replace_waits(tmp_path: Path) -> None:
    """A fault with its recorded time waits neither for an operation nor for a state."""
    once = {"key": "topic0-0", "leader": "broker-1"}
    waiting = msgspec.structs.replace(KILL, options={"when": "send", "once": once})
    plan = msgspec.structs.replace(REAL, schedule=(CUT, waiting))
    folder = recorded(tmp_path / "run", plan, late_s=3.0)
    assert [fault.options for fault in reproduce.as_recorded((CUT, waiting), folder)] == [{}, {}]


@pytest.mark.parametrize(
    ("anomalies", "statuses", "shows", "anomaly", "status"),
    [
        ({"duplicate": 1}, ("valid", "invalid"), "other", "duplicate", 1),
        ({"poll-skip": 1, "stuck": 1}, ("valid", "invalid"), "same", "poll-skip", 1),
        ({}, ("valid", "unknown"), "none", None, 2),
        ({}, ("unknown", "failed"), "none", None, 70),
        ({}, ("valid", "valid"), "none", None, 0),
    ],
)
def test_exit_statuses(
    tmp_path: Path,
    anomalies: dict[str, int],
    statuses: tuple[Status, Status],
    shows: Shows,
    anomaly: str | None,
    status: int,
) -> None:
    """The status is 1 for any anomaly; else 70 for a failed run, 2 for an unknown one, or 0.

    The recorded anomaly takes precedence over others.
    """

    def rule(plan: Plan) -> tuple[Status, dict[str, int]]:
        found = statuses[plan.seed - 7]
        return found, anomalies if found == "invalid" else {}

    told = tried(tmp_path, rule, seeds=2)
    assert (told.shows, told.anomaly) == (shows, anomaly)
    assert reproduce.exit_status(told) == status
    text = reproduce.describe(told, "faultline replay", "faultline shrink")
    assert text.startswith(f"lost-write 12, poll-skip 3 on processes: {reproduce.ANSWERS[shows]}")
    assert (f"shrink: faultline shrink {told.folder} --anomaly {anomaly}" in text) is bool(anomaly)
    table = [line for line in text.splitlines() if line[:1].isdigit() or line.startswith("seed")]
    assert len(table) == 3
    assert table[0].split() == ["seed", "schedule", "verdict", "anomalies", "same", "anomaly?"]
    assert "the client is aiokafka in place of librdkafka, which starts threads" in text


def test_what_a_simulation_lacks_is_left_out_and_named(tmp_path: Path) -> None:
    """Faults, options and rates that the simulation lacks are left out and named."""
    real = msgspec.structs.replace(
        REAL,
        target="containers",
        schedule=(CUT, SQUEEZE),
        rate_hz=250.0,
        options={**REAL.options, "cpus": 0.5, "memory_mb": 512},
    )
    plan, changes = reproduce.simulated(real)
    assert plan.schedule == (CUT,)
    assert plan.rate_hz == reproduce.RATE_HZ_MAX
    assert "fault 3 (squeeze-cpu) is left out: the simulation has no such fault" in changes
    assert "the rate is 20 writes per second in place of 250" in changes
    assert [line for line in changes if line.startswith("the option")] == [
        "the option cpus is left out"
    ], "a setting that is the other target's own is not worth a word"
    only = msgspec.structs.replace(real, schedule=(SQUEEZE,))
    with pytest.raises(Refused, match="the simulation offers none of the faults of this run"):
        reproduce.simulated(only)


def test_a_run_of_zookeeper_is_simulated() -> None:
    """The ensemble and the workload stay; the client is the one that can be simulated."""
    kill = ScheduledFault(id=1, at_s=6, duration_s=2, fault="kill", targets=["zookeeper-1"])
    real = plan_resolution.resolve(
        Plan(workload="zk-lock", nemesis=("kill",), schedule=(kill,), seed=3)
    )
    assert real.options["zk_client"] == "kazoo"
    plan, changes = reproduce.simulated(real)
    assert (plan.target, plan.system, plan.schedule) == ("simulated", "zookeeper", (kill,))
    assert plan.options["zk_client"] == "asyncio"
    assert "the client is asyncio in place of kazoo, which starts threads" in changes
    assert "the servers, the network and the clock are simulated" in changes


def test_what_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    """A run that cannot be simulated is refused in one line, and no folder is left."""
    broken = msgspec.structs.replace(
        REAL, workload="groups", options={"assignor": "cooperative-sticky"}
    )
    with pytest.raises(Refused, match="this run cannot be simulated: options: assignor=coop"):
        tried(tmp_path, from_seed(7), recorded(tmp_path / "real", broken))
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "verdict", [None, {"valid": True, "anomalies": {}}, {"valid": "unknown", "anomalies": {}}]
)
def test_a_run_that_is_not_red_has_nothing_to_reproduce(tmp_path: Path, verdict: object) -> None:
    """A run that is not red has no recorded anomalies; it is replayed like any other."""
    assert reproduce.recorded_anomalies(recorded(tmp_path / "real", verdict=verdict)) == {}


@pytest.mark.parametrize("text", ["", "[]", '{"valid": false}', '{"valid": false, "anomalies": 3}'])
def test_a_verdict_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    """A verdict that cannot be read is refused with the file's name."""
    folder = recorded(tmp_path / "real")
    (folder / "verdict.json").write_text(text)
    with pytest.raises(Refused, match=r"verdict\.json is not a verdict"):
        reproduce.recorded_anomalies(folder)


def test_a_schedule_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A schedule that cannot be read is refused with the file's name, and no folder is left."""
    folder = recorded(tmp_path / "real")
    (folder / "schedule.jsonl").write_text('{"id": "one"}\n')
    with pytest.raises(Refused, match=r"schedule\.jsonl: Expected `int`"):
        tried(tmp_path, from_seed(7), folder)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("verdict", "words", "line"),
    [
        (
            None,
            ("--target", "simulated", "--seeds", "3"),
            "--seeds and --jobs apply only to --target",
        ),
        (RED, ("--seeds", "3"), "--seeds and --jobs apply only to --target simulated, for"),
        (RED, ("--target", "simulated", "--spark"), "--spark: simulations of a recorded run"),
        (RED, ("--target", "simulated", "--seeds", "0"), "0 is not in the range"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    verdict: object,
    words: tuple[str, ...],
    line: str,
) -> None:
    """Options that do not apply are refused in one line with status 64, and no folder is made."""
    folder = recorded(tmp_path / "real", verdict=verdict)
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(folder), *words, "--results", str(tmp_path / "r")])
    assert ended.value.code == 64
    assert line in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
