"""A run from the plan to the verdict, in real time, on an in-memory target without brokers."""

import asyncio
import dataclasses
import errno
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from harness.app import catalogue, cli, plan_resolution, report, run_start
from harness.app import run as run_
from harness.app.check import examine
from harness.app.progress import Screen
from harness.app.run import Interrupted, new_folder, run
from harness.cluster.system import System
from model import history, node_sign
from model.layout import Layout
from model.plan import Plan, ScheduledFault
from nemesis.draws import Drawn
from nemesis.package import Applied, Effect, Fault, Package


class MemoryCluster:
    """A cluster without processes; the log is in the fixture ``kafka``."""

    nodes = brokers = ("broker-1", "broker-2", "broker-3")
    layout = Layout(brokers)
    started: ClassVar[list["MemoryCluster"]] = []
    cannot_start = False

    def __init__(self, plan: Plan, folder: Path, rng: random.Random) -> None:
        self.stopped = self.dropped = False
        MemoryCluster.started.append(self)

    def bootstrap(self, client: str | None = None) -> str:
        return "memory"

    async def start(self) -> None:
        if self.cannot_start:
            raise OSError("no room")

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.stopped = True

    async def recover(self, timeout_s: float) -> bool:
        return True

    def settle_data(self, *, keep: bool) -> None:
        assert self.stopped
        self.dropped = not keep


async def _apply(cluster: Any, fault: str, targets: Any, options: Any, rng: Any) -> Applied:
    return Applied(("broker-1",), Effect(proved=True, how="it was seen"))


async def _heal(cluster: Any, applied: Applied) -> Effect:
    return Effect(proved=True, how="it was seen")


HARMLESS = Package(
    name="harmless",
    faults=(Fault("harmless"),),
    needs=(),
    color="#000000",
    lane="process",
    draw=lambda rng, shape: Drawn("harmless", 0.2, "controller"),
    apply=_apply,
    heal=_heal,
)


@pytest.fixture(autouse=True)
def in_memory(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the target ``processes`` by one in memory, and librdkafka by its clients."""
    target = dataclasses.replace(
        catalogue.TARGETS["processes"], kind=MemoryCluster, make=MemoryCluster, any_system=False
    )
    workload = dataclasses.replace(
        catalogue.WORKLOADS["idempotent"],
        client=lambda plan, bootstrap, process: kafka.client(process),
    )
    monkeypatch.setitem(catalogue.TARGETS, "processes", target)
    monkeypatch.setitem(catalogue.WORKLOADS, "idempotent", workload)
    monkeypatch.setattr(catalogue, "NEMESES", {"harmless": HARMLESS})
    monkeypatch.setattr(MemoryCluster, "started", [])
    yield
    assert all(cluster.stopped for cluster in MemoryCluster.started)


SCHEDULE = (
    ScheduledFault(id=1, at_s=0.2, duration_s=0.6, fault="harmless", targets="controller"),
    ScheduledFault(id=2, at_s=0.4, duration_s=0.2, fault="harmless", targets="controller"),
)


def plan(**changes: Any) -> Plan:
    asked = Plan(
        nemesis=(plan_resolution.ALL,), time_limit_s=1.2, rate_hz=100.0, seed=5, schedule=SCHEDULE
    )
    return plan_resolution.resolve(msgspec.structs.replace(asked, **changes))


def quiet() -> Screen:
    return Screen(StringIO())


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command and return its exit status, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


SHORT = ("--time-limit", "1.2", "--rate", "100", "--inline")
QUIET = (*SHORT, "--nemesis", "none")


@pytest.mark.slow
def test_a_correct_log_is_valid(tmp_path: Path) -> None:
    """The folder holds the plan, the schedule, the history, the verdict and the page."""
    (verdict, _), folder = run(plan(), tmp_path / "results", inline=True, screen=quiet())
    assert verdict.valid is True
    assert verdict.evidence["acked"] > 100
    assert verdict.evidence["keys_caught_up"] == verdict.evidence["keys"] > 0
    names = {path.name for path in folder.iterdir()}
    assert {"plan.json", "schedule.jsonl", "history.jsonl", "verdict.json", "report.html"} <= names
    assert {"run.json", node_sign.FILE} <= names
    assert (folder / node_sign.FILE).read_bytes() == b""
    assert folder.name.endswith("-idempotent-seed5")
    stored = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    assert stored == plan()
    rows = [json.loads(line) for line in (folder / "schedule.jsonl").read_text().splitlines()]
    assert len(rows) == verdict.evidence["faults_effective"] == 2
    assert MemoryCluster.started[0].dropped


@pytest.mark.slow
def test_the_start_of_a_run_is_recorded(tmp_path: Path) -> None:
    """The time of day of the history's second 0 is recorded, to match the nodes' logs with it."""
    before = datetime.fromtimestamp(time.time_ns() / 1e9, UTC)
    _, folder = run(plan(), tmp_path / "results", inline=True, screen=quiet())
    start = run_start.read(folder)
    assert start is not None
    assert start.clock == "system"
    events = list(history.read(folder / "history.jsonl"))
    last = start.at(events[-1].time_ns)
    assert last is not None
    assert before <= start.started <= last <= datetime.fromtimestamp(time.time_ns() / 1e9, UTC)


@pytest.mark.slow
def test_a_broken_node_makes_the_run_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node leaves behind until its end is recorded and judged, now and later."""

    async def stop(self: MemoryCluster) -> None:
        (folder,) = (tmp_path / "results").iterdir()
        (folder / "nodes" / "broker-2").mkdir(parents=True)
        text = "java.lang.OutOfMemoryError: Metaspace\n"
        (folder / "nodes" / "broker-2" / "log.txt").write_text(text)
        self.stopped = True

    monkeypatch.setattr(MemoryCluster, "stop", stop)
    (verdict, _), folder = run(plan(), tmp_path / "results", inline=True, screen=quiet())
    assert verdict.valid == "unknown"
    (reason,) = verdict.unknown_because
    assert reason.startswith("broker-2 was out of memory at an unknown time: java.lang.OutOfMem")
    (folder / "nodes" / "broker-2" / "log.txt").unlink()
    assert examine(folder, inline=True).verdict.unknown_because == (reason,)


@pytest.mark.slow
def test_what_takes_long_is_done_and_told_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target's slow preparation is reported and done before the run's clock starts."""

    async def build(plan: Plan, system: System, say: Callable[[str], None]) -> None:
        assert MemoryCluster.started == []
        say("building an image")

    slow = dataclasses.replace(catalogue.TARGETS["processes"], prepare=build)
    monkeypatch.setitem(catalogue.TARGETS, "processes", slow)
    said = StringIO()
    run(plan(), tmp_path / "results", inline=True, screen=Screen(said))
    assert "building an image" in said.getvalue()
    assert len(MemoryCluster.started) == 1


class Forgetful(dict[str, list[int]]):
    def setdefault(self, key: str, default: list[int]) -> list[int]:
        return super().setdefault(key, Losing(default))


class Losing(list[int]):
    def append(self, value: int) -> None:
        super().append(value if value != 3 else -7)


@pytest.mark.slow
def test_a_log_that_loses_is_invalid(
    kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lost record gives exit status 1, and the first line names the anomaly."""
    kafka.logs = Forgetful()
    status, out, err = told(capsys, "run", *QUIET, "--results", str(tmp_path))
    assert status == 1
    assert not MemoryCluster.started[0].dropped
    assert out.startswith("INVALID")
    assert "lost-write" in out
    assert "faultline replay" in out
    assert "acknowledged" in err


@pytest.mark.slow
@pytest.mark.parametrize("loses", [True, False])
def test_a_verdict_that_is_stored_outlives_a_full_disk(
    kafka: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    loses: bool,
) -> None:
    """A report and data that cannot be written are a line each; the verdict is printed as usual."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(report, "render", full)
    monkeypatch.setattr(MemoryCluster, "settle_data", full)
    if loses:
        kafka.logs = Forgetful()
    status, out, err = told(capsys, "run", *QUIET, "--json", "--results", str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert status == (1 if loses else 0)
    assert json.loads(out) == json.loads((folder / "verdict.json").read_text())
    error = f"(OSError: [Errno 28] No space left on device: {folder})"
    what = "kept" if loses else "removed"
    assert err.splitlines()[-2:] == [
        f"{folder / 'report.html'} cannot be written {error}",
        f"{folder}: the nodes' data cannot be {what} {error}",
    ]
    assert not (folder / "crash.txt").exists()


@pytest.mark.slow
def test_a_judgement_that_is_not_stored_is_a_failure(
    kafka: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the judgement itself fails, there is no verdict to print."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_, "examine", full)
    status, out, err = told(capsys, "run", *QUIET, "--json", "--results", str(tmp_path))
    assert (status, out) == (70, "")
    assert "No space left on device" in err


@pytest.mark.slow
def test_a_watched_run_ends_at_its_first_anomaly(kafka: Any, tmp_path: Path) -> None:
    """A run of an hour ends within seconds, without final reads; the whole history is judged."""

    class Inventive(dict[str, list[int]]):
        def setdefault(self, key: str, default: list[int]) -> list[int]:
            return super().setdefault(key, Inventing(default))

    class Inventing(list[int]):
        def append(self, value: int) -> None:
            super().append(value)
            if value == 3:
                super().append(-7)

    kafka.logs = Inventive()
    said = StringIO()
    hour = plan(time_limit_s=3600.0, nemesis=(), schedule=())
    (verdict, _), folder = run(
        hour, tmp_path, inline=True, screen=Screen(said), watch=True, report_s=1.0
    )
    assert verdict.valid is False
    assert "phantom" in verdict.anomalies
    assert "the run ends, because the history so far shows phantom" in said.getvalue()
    assert "does not confirm" not in said.getvalue()
    [first, *_] = (folder / "watch.jsonl").read_text().splitlines()
    assert json.loads(first)["finding"]["anomaly"] == "phantom"
    assert (folder / "soak.jsonl").read_text().count("\n") >= 1
    events = list(history.read(folder / "history.jsonl"))
    assert "catch-up" not in {event.f for event in events}


@pytest.mark.slow
def test_json_is_the_verdict_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--json`` standard output is ``verdict.json``; other text goes to stderr."""
    status, out, err = told(capsys, "run", *QUIET, "--json", "--results", str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert status == 0
    assert json.loads(out) == json.loads((folder / "verdict.json").read_text())
    assert str(folder) in err


@pytest.mark.slow
def test_too_short_for_any_fault_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is too short for any requested fault is refused.

    Its verdict could only be UNKNOWN.
    """
    status, out, err = told(
        capsys, "run", *SHORT, "--nemesis", "harmless", "--results", str(tmp_path)
    )
    assert (status, out, [*tmp_path.iterdir()]) == (64, "", [])
    assert "--time-limit 1.2: too short for any fault of harmless (seed 0); " in err


@pytest.mark.slow
def test_replay_repeats_plan_and_faults(
    kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay has the same plan, and the same faults in the same order."""
    toml = tmp_path / "plan.toml"
    toml.write_text(
        "".join(
            f'[[schedule]]\nid = {f.id}\nfault = "{f.fault}"\n'
            f'at_s = {f.at_s}\nduration_s = {f.duration_s}\ntargets = ["broker-1"]\n'
            for f in SCHEDULE
        )
    )
    told(capsys, "run", str(toml), *SHORT, "--results", str(tmp_path / "a"))
    (first,) = (tmp_path / "a").iterdir()
    kafka.logs.clear()
    status, _, _ = told(capsys, "replay", str(first), "--inline", "--results", str(tmp_path / "b"))
    (second,) = (tmp_path / "b").iterdir()
    assert status == 0
    assert (first / "plan.json").read_bytes() == (second / "plan.json").read_bytes()

    def faults(folder: Path) -> list[tuple[int, str]]:
        rows = map(json.loads, (folder / "schedule.jsonl").read_text().splitlines())
        return [(row["id"], row["fault"]) for row in rows]

    assert faults(first) == faults(second) == [(2, "harmless"), (1, "harmless")]


@pytest.mark.slow
def test_a_recorded_run_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``check`` reaches the same verdict; several paths give a list."""
    told(capsys, "run", *QUIET, "--results", str(tmp_path))
    (folder,) = tmp_path.iterdir()
    before = json.loads((folder / "verdict.json").read_text())
    status, out, _ = told(
        capsys, "check", str(folder), str(folder / "history.jsonl"), "--inline", "--json"
    )
    assert status == 0
    again, bare = json.loads(out)
    for verdict in (before, again, bare):
        for unsteady in ("checkers", "plan"):
            del verdict[unsteady]
    assert again == before
    assert bare["evidence"]["acked"] == before["evidence"]["acked"]


def test_nothing_written_is_unknown(tmp_path: Path, kafka: Any) -> None:
    """A run in which no write is acknowledged is unknown."""
    kafka.hanging = set(range(0, 1000, 5)) | set(range(1, 1000, 5)) | set(range(2, 1000, 5))
    asked = plan(time_limit_s=0.5, producer={"delivery.timeout.ms": "4000"})
    workload = catalogue.WORKLOADS["idempotent"]
    catalogue.WORKLOADS["idempotent"] = dataclasses.replace(workload, op_timeout_s=lambda plan: 0.1)
    (verdict, _), _ = run(asked, tmp_path, inline=True, screen=quiet())
    assert verdict.valid == "unknown"
    assert any("acknowledged" in reason for reason in verdict.unknown_because)


def test_a_cluster_that_does_not_start_is_our_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that cannot start gives status 70 and one line; the traceback is in the folder."""
    monkeypatch.setattr(MemoryCluster, "cannot_start", True)
    status, out, err = told(capsys, "run", *QUIET, "--results", str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert (status, out) == (70, "")
    assert err.splitlines()[-1].startswith("faultline failed: OSError: no room")
    assert "Traceback" in (folder / "crash.txt").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_history(
    kafka: Any, tmp_path: Path, number: signal.Signals
) -> None:
    """An interrupted run stops its cluster, and its history can be judged."""

    written = itertools.count(1)

    class Interrupting(list[int]):
        def append(self, value: int) -> None:
            super().append(value)
            if next(written) == 30:
                os.kill(os.getpid(), number)

    class Logs(dict[str, list[int]]):
        def setdefault(self, key: str, default: list[int]) -> list[int]:
            return super().setdefault(key, Interrupting(default))

    kafka.logs = Logs()
    long = tuple(
        ScheduledFault(
            id=number, at_s=at_s, duration_s=25.0, fault="harmless", targets="controller"
        )
        for number, at_s in ((1, 0.0), (2, 20.0))
    )
    before = signal.getsignal(number)
    with pytest.raises(
        Interrupted, match=r"interrupted .*; to judge the history so far: faultline check"
    ) as ended:
        run(plan(time_limit_s=30.0, schedule=long), tmp_path, inline=True, screen=quiet())
    (folder,) = tmp_path.iterdir()
    assert ended.value.folder == folder
    assert signal.getsignal(number) is before, "whoever handled it handles it again"
    assert len(list(history.read(folder / "history.jsonl"))) > 10
    assert MemoryCluster.started[0].stopped
    assert "this folder has not been judged" in (folder / "report.html").read_text()
    rows = [json.loads(line) for line in (folder / "schedule.jsonl").read_text().splitlines()]
    assert [(row["id"], row["healed_ns"]) for row in rows] == [(1, None)]
    (verdict, _) = examine(folder, inline=True)
    assert verdict.valid == "unknown"
    assert "fault 2 (harmless) was never applied" in verdict.unknown_because


def test_two_runs_of_one_second_have_two_folders(tmp_path: Path) -> None:
    """No run writes into another's folder."""
    utc = time.gmtime(0)
    names = [new_folder(tmp_path, "idempotent-seed3", utc).name for _ in range(3)]
    first = "19700101T000000Z-idempotent-seed3"
    assert names == [first, f"{first}-2", f"{first}-3"]
