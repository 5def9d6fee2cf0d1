import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from checkers import inline as inline_
from checkers.expectations import BadSetting
from checkers.kernels.key import Report
from checkers.tables import Tables
from checkers.verdict import Verdict
from harness.app import check
from harness.app.check import describe, examine, judge, reasons
from model import cluster_facts, history, violation
from model.cluster_facts import ClusterFacts
from model.finding import Finding
from model.history import BadHistory
from model.op import Op
from model.plan import Plan
from model.violation import Violation, Watched


def send(index: int, value: int, offset: int | None) -> list[Op]:
    """Make a send of one value to ``orders-0`` by process 0, acknowledged with its offset."""
    done = [["send", "orders-0", value if offset is None else [offset, value]]]
    return [
        Op(index=index, time_ns=index, process=0, type="invoke", f="send",
           value=[["send", "orders-0", value]]),
        Op(index=index + 1, time_ns=index + 1, process=0, type="ok", f="send", value=done),
    ]  # fmt: skip


def poll(index: int, *records: tuple[int, int]) -> list[Op]:
    """Make a poll of these offsets and values of ``orders-0`` by process 1."""
    found = {"orders-0": [list(record) for record in records]}
    return [
        Op(index=index, time_ns=index, process=1, type="invoke", f="poll", value=[["poll"]]),
        Op(index=index + 1, time_ns=index + 1, process=1, type="ok", f="poll",
           value=[["poll", found]]),
    ]  # fmt: skip


def catch_up(index: int, position: int) -> list[Op]:
    """Make a catch-up of process 1, which has read ``orders-0`` to its end."""
    asked, done = [["catch-up", "orders-0"]], [["catch-up", "orders-0", position, position]]
    return [
        Op(index=index, time_ns=index, process=1, type="invoke", f="catch-up", value=asked),
        Op(index=index + 1, time_ns=index + 1, process=1, type="ok", f="catch-up", value=done),
    ]


GOOD = [*send(0, 7, 0), *send(2, 8, 1), *poll(4, (0, 7), (1, 8)), *catch_up(6, 2)]
LOSSY = [*send(0, 7, 0), *send(2, 8, 1), *poll(4, (1, 8)), *catch_up(6, 2)]


def folder_of(tmp_path: Path, ops: list[Op], plan: Plan | None = None) -> Path:
    """Write a run's folder as left by a harness that was killed after the last event."""
    folder = tmp_path / "run"
    folder.mkdir()
    history.write(folder / "history.jsonl", ops)
    if plan is not None:
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    return folder


def test_a_runs_folder_gets_its_files(tmp_path: Path) -> None:
    """A judgement writes the verdict, the findings and the typed history into the run's folder."""
    folder = folder_of(tmp_path, LOSSY, Plan(seed=7))
    verdict = judge(folder, inline=True)
    written = json.loads((folder / "verdict.json").read_text())
    assert written["valid"] is verdict.valid is False
    assert written["anomalies"] == {"lost-write": 1}
    assert written["plan"] == {"workload": "idempotent", "target": "processes", "seed": 7}
    (row,) = pq.read_table(folder / "findings.parquet").to_pylist()
    assert (row["anomaly"], row["legal"], row["key"], row["partition"], row["offset"]) == (
        "lost-write", False, "orders-0", 0, 0,
    )  # fmt: skip
    assert row["ops"] == [1, 5]
    assert pq.read_table(folder / "history.parquet").num_rows == len(LOSSY)
    assert sorted(path.name for path in folder.iterdir()) == [
        "findings.parquet", "history.jsonl", "history.parquet", "plan.json", "verdict.json",
    ]  # fmt: skip


def test_judging_again_gives_the_same(tmp_path: Path) -> None:
    """A second judgement has the same findings, from the lines or from the typed history alone."""
    folder = folder_of(tmp_path, LOSSY, Plan())
    first = examine(folder, inline=True)
    assert examine(folder, inline=True).findings == first.findings
    (folder / "history.jsonl").unlink()
    assert examine(folder, inline=True).findings == first.findings


def test_beside_a_bare_file_nothing_is_written(tmp_path: Path) -> None:
    """A history file without a run's folder is judged, and nothing is written next to it."""
    file = folder_of(tmp_path, GOOD) / "history.jsonl"
    assert judge(file, inline=True).valid is True
    assert [path.name for path in file.parent.iterdir()] == ["history.jsonl"]


def test_a_run_that_was_killed_can_be_judged(tmp_path: Path) -> None:
    """A torn history without final reads is unknown, or invalid if it already has an anomaly."""
    folder = folder_of(tmp_path, GOOD[:6], Plan())
    with (folder / "history.jsonl").open("ab") as lines:
        lines.write(b'{"index":6,"time_')
    verdict = judge(folder, inline=True)
    assert (verdict.valid, verdict.unknown_because) == (
        "unknown", ("not read to the end: orders-0",),
    )  # fmt: skip
    history.write(folder / "history.jsonl", LOSSY[:6])
    assert judge(folder, inline=True).valid is False


def test_the_plan_and_the_settings_decide_what_is_illegal(tmp_path: Path) -> None:
    """A loss is permitted with acks=1; settings of the command line override the plan."""
    folder = folder_of(tmp_path, LOSSY, Plan(producer={"acks": "1"}))
    assert judge(folder, inline=True).allowed == {"lost-write": 1}
    assert judge(folder, inline=True, settings={"producer.acks": "all"}).valid is False


def test_the_clusters_facts_decide_what_is_illegal(tmp_path: Path) -> None:
    """``cluster.json`` in the folder replaces the plan's broker settings, and ``settings`` both."""
    folder = folder_of(tmp_path, LOSSY, Plan())
    assert judge(folder, inline=True).valid is False
    unclean = "unclean.leader.election.enable"
    cluster_facts.write(folder, ClusterFacts(broker={unclean: "true"}))
    verdict = judge(folder, inline=True)
    assert verdict.valid is True
    assert verdict.contract["unclean_elections"] is True
    assert verdict.settings == {}
    strict = {f"broker.{unclean}": "false"}
    assert judge(folder, inline=True, settings=strict).valid is False
    (folder / cluster_facts.FILE).write_text("{")
    with pytest.raises(BadHistory, match=r"cluster\.json does not describe a cluster"):
        judge(folder, inline=True)


def test_steps_are_told(tmp_path: Path) -> None:
    """Progress is reported for reading and judging, each up to its end."""
    told: list[tuple[str, float]] = []
    file = folder_of(tmp_path, GOOD) / "history.jsonl"
    judge(file, inline=True, progress=lambda step, done: told.append((step, done)))
    assert told == [("reading", 1.0), ("judging", 1.0)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nothing", None, "does not exist"),
        ("empty/", None, "is not a run's folder: it has no history.jsonl"),
        ("empty.jsonl", "", "has no events"),
        ("run/plan.json", "{", "plan.json is not a plan"),
    ],
)
def test_a_bad_request_is_told_in_one_sentence(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    """A path that cannot be judged is refused in one line that names it and the reason."""
    path = tmp_path / name
    if content is None and name.endswith("/"):
        path.mkdir()
    elif content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    if name == "run/plan.json":
        history.write(tmp_path / "run" / "history.jsonl", GOOD)
        path = tmp_path / "run"
    with pytest.raises(BadHistory) as told:
        judge(path, inline=True)
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_bad_setting_is_refused_before_reading(tmp_path: Path) -> None:
    """A bad setting is refused before the history is read."""
    file = folder_of(tmp_path, GOOD) / "history.jsonl"
    with pytest.raises(BadSetting, match="acks must be all, 1 or 0"):
        judge(file, inline=True, settings={"producer.acks": "most"})


def test_an_executor_that_crashes_makes_the_run_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an executor crashes, the verdict is unknown with the reason, in the folder too."""

    def explode(tables: Tables, progress: Any) -> dict[str, Report]:
        raise MemoryError("no room")

    monkeypatch.setattr(inline_, "judge", explode)
    folder = folder_of(tmp_path, GOOD, Plan())
    judge(folder, inline=True)
    written = json.loads((folder / "verdict.json").read_text())
    assert written["valid"] == "unknown"
    assert written["unknown_because"] == ["the checkers crashed: MemoryError: no room"]


WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "serializers.py", line 483, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'pyarrow'
 SQLSTATE: 38000
	at org.apache.spark.api.python
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        ("no room", "no room"),
        ("\n\n  two lines\nof it", "two lines"),
        (WORKER, "ModuleNotFoundError: No module named 'pyarrow'"),
        (f"[PYTHON_EXCEPTION] raised: {WORKER.partition('below.')[2].strip()}",
         "ModuleNotFoundError: No module named 'pyarrow'"),
        ("Traceback (most recent call last):\n  cut off", "Traceback (most recent call last):"),
    ],
)  # fmt: skip
def test_a_crash_is_described_in_one_line(text: str, said: str) -> None:
    """The line is the first one with text, or what was raised in a worker of Spark."""
    with pytest.raises(check.Crashed) as caught, check.crashes():
        raise RuntimeError(text)
    assert str(caught.value) == f"the checkers crashed: RuntimeError: {said}"


def test_the_terminal_is_told_what_matters(tmp_path: Path) -> None:
    """The terminal shows the anomaly, its count, its first place and reason, and a command."""
    lossy = examine(folder_of(tmp_path, LOSSY, Plan()), inline=True)
    folder = Path("results/run")
    assert describe(lossy.verdict, lossy.findings, folder) == (
        "INVALID  lost-write 1 · partition orders-0, offset 0: value 7 was acknowledged to process"
        " 0 at offset 0 at 0.000 s; process 1 read the later offset 1 at 0.000 s, and no"
        " process ever read 7\n"
        "         results/run/report.html     (repeat: faultline replay results/run)"
    )


def test_the_terminal_names_a_generation() -> None:
    """The place of a finding about a generation is the generation, and not an offset."""
    verdict = Verdict(valid=False, anomalies={"double-owner": 1})
    found = Finding(anomaly="double-owner", key="x-0", group="g", generation=3, why="both had it")
    assert reasons(verdict, [found]) == [
        "double-owner 1 · partition x-0, generation 3: both had it"
    ]


def test_the_terminal_is_told_the_evidence_of_a_valid_run(tmp_path: Path) -> None:
    """For a valid run the terminal shows the evidence and the permitted anomalies."""
    lossy = examine(
        folder_of(tmp_path, LOSSY, Plan()), inline=True, settings={"producer.acks": "1"}
    )
    assert describe(lossy.verdict, lossy.findings, None) == (
        "VALID    2 acknowledged, 1 read · 1 of 1 partitions read to the end ·"
        " 0 of 0 faults effective\n"
        "         allowed: lost-write 1"
    )


@pytest.mark.spark
@pytest.mark.prove
def test_spark_writes_what_inline_writes(tmp_path: Path) -> None:
    """``faultline check`` with Spark has the same findings and leaves no temporary files."""
    folder = folder_of(tmp_path, LOSSY, Plan())
    inline = examine(folder, inline=True)
    before = sorted(path.name for path in folder.iterdir())
    elsewhere, temporary = tmp_path / "elsewhere", tmp_path / "temporary"
    elsewhere.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "harness.app.cli", "check", str(folder), "--json"],
        cwd=elsewhere,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["anomalies"] == {"lost-write": 1}
    assert done.stderr == "reading …\njudging …\n"
    rows = pq.read_table(folder / "findings.parquet").to_pylist()
    assert [row["why"] for row in rows] == [f.why for f in inline.findings]
    after = sorted(path.name for path in folder.iterdir())
    assert set(after) - set(before) <= {"report.html"}
    assert [*elsewhere.iterdir(), *temporary.iterdir()] == []


@pytest.mark.prove
@pytest.mark.spark
def test_one_jvm_for_many_histories(tmp_path: Path) -> None:
    """``faultline check A B`` starts Spark once; the worst verdict is the exit status."""
    folder = folder_of(tmp_path, LOSSY, Plan())
    bare = tmp_path / "good.jsonl"
    history.write(bare, GOOD)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    real = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}")
    java.write_text(f'#!/bin/sh\necho >> {tmp_path}/starts\nexec {real} "$@"\n')
    java.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "harness.app.cli", "check", str(bare), str(folder), "--json"],
        env={**os.environ, "JAVA_HOME": str(java.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert [verdict["valid"] for verdict in json.loads(done.stdout)] == [True, False]
    # Spark's launcher is a second JVM, which prints how to start the first.
    assert (tmp_path / "starts").read_text().count("\n") == 2


def test_what_clients_saw_is_told_first(tmp_path: Path) -> None:
    """Anomalies that clients saw come before violated invariants, whatever their names."""
    folder = folder_of(tmp_path, LOSSY, Plan())
    broken = Violation(invariant="epoch-cache", time_ns=1, key="x-0", why="so it was")
    end = Watched(snapshots=2, until_ns=9)
    (folder / violation.FILE).write_bytes(violation.encode(broken) + violation.encode(end))
    judged = examine(folder, inline=True)
    first, second = reasons(*judged)
    assert first.startswith("lost-write 1 · ")
    assert second == "invariant:epoch-cache 1 · partition x-0: so it was (seen at 0.000 s)"


@pytest.mark.parametrize("path", ["pipe", "socket", "loop", "/dev/zero", "x" * 5000, "file/x"])
def test_what_is_no_file_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that is neither a file nor a folder is refused, without waiting for it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    Path("file").write_text("")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        with pytest.raises(BadHistory, match=r"neither a file nor a folder|cannot be read"):
            examine(Path(path), inline=True)


def test_a_plan_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    """A ``plan.json`` that is a folder is refused with its name."""
    (tmp_path / "history.jsonl").write_text("{}")
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(BadHistory, match=r"plan\.json is a folder"):
        examine(tmp_path, inline=True)
