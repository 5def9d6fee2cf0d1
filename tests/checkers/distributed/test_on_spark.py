"""Spark judges a history in chunks as this process judges it whole."""

import random
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import broker_model, corruptions
from bench.histories import World
from checkers.distributed import chunks, cycle_task, on_spark, plan
from harness.app import check, spark_judge, typed_history
from model import history
from tests.checkers.distributed.group_world import GroupWorld
from tests.checkers.distributed.test_plan import at_once, concluded

pytestmark = pytest.mark.spark


def made(path: Path) -> Path:
    """Write a history with defects."""
    world = World(random.Random(5), keys=9, lost=3, doubled=2, phantom=1, doubt=0.1, span=200)
    history.write(path, world.events(2000))
    return path


def test_executors_read_and_judge(tmp_path: Path, spark: Any) -> None:
    """Findings and verdict are the same, and all of the work is reported as done."""
    path = made(tmp_path / "history.jsonl")
    done: list[float] = []
    runner = on_spark.OnSpark(spark, done.append)
    whole = plan.judge(path, chunks.of_file(path, size=100_000), runner, tmp_path)
    assert concluded(whole) == at_once(path)
    assert done[-1] == 1.0


def test_executors_judge_transactions(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cycles are searched in windows; those over their borders are found, too."""
    rng = random.Random(80)
    model = broker_model.Model(rng, keys=5, doubt=0.1, transactional=4)
    model.run(200)
    path = tmp_path / "history.jsonl"
    history.write(path, corruptions.corrupt(model, rng, 3)[0])
    monkeypatch.setattr(cycle_task, "EVENTS", 40)
    runner = on_spark.OnSpark(spark, lambda done: None)
    whole = plan.judge(path, chunks.of_file(path, size=20_000), runner, tmp_path)
    found, *_ = outcome = concluded(whole)
    assert outcome == at_once(path)
    assert {"G0", "G1c"} & {f.anomaly for f in found}


def test_executors_judge_groups(tmp_path: Path, spark: Any) -> None:
    """What coordinators knew, and exactly-once processing, have passes of their own."""
    world = GroupWorld(random.Random(19), wrong=0.2, transactional=True)
    path = tmp_path / "history.jsonl"
    history.write(path, world.history(250))
    runner = on_spark.OnSpark(spark, lambda done: None)
    cut = chunks.of_file(path, size=path.stat().st_size // 3)
    found, *_ = outcome = concluded(plan.judge(path, cut, runner, tmp_path))
    assert outcome == at_once(path)
    assert {"eos-mismatch", "lost-commit"} <= {f.anomaly for f in found}


def test_a_task_that_fails(tmp_path: Path, spark: Any) -> None:
    """The error of a slice reaches the plan, and the other slices are judged."""
    runner = on_spark.OnSpark(spark, lambda done: None)
    said, judged = runner.grouped(_cut, ["a", "b"], _judge)
    assert said == ["about a", "about b"]
    assert judged[0] == [b"a0", b"b0"]
    assert str(judged[1]) == "ValueError: no slice 1"
    parts, again = runner.regrouped(_cut, ["a", "b"], _split, _judge)
    assert str(parts[1]) == "ValueError: no slice 1"
    assert parts[0] == "two parts"
    assert again[0] == [b"a0+b0"]
    assert str(again[1]) == "ValueError: no slice 1"


def test_kept_parts_are_made_once(tmp_path: Path, spark: Any) -> None:
    """A cut that is kept runs once for all uses, of all numbers or some, until it is forgotten."""
    runner = on_spark.OnSpark(spark, lambda done: None)
    cut = partial(_counted, tmp_path)
    runner.keep(cut)
    said, judged = runner.grouped(cut, ["a", "b"], _join)
    assert (said, judged) == (["about a", "about b"], [b"a0b0", b"a1b1"])
    assert runner.grouped(cut, ["a", "b"], _join, [1])[1] == [b"a1b1"]
    assert runner.regrouped(cut, ["a", "b"], _again, _join)[1] == [b"a0b0a1b1"]
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["a", "b"]
    before = len(spark.sparkContext._jsc.getPersistentRDDs())
    runner.forget()
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == before - 1
    runner.grouped(cut, ["a", "b"], _join)
    assert len(list(tmp_path.iterdir())) == 4


def _counted(folder: Path, item: str) -> Any:
    Path(tempfile.mkstemp(dir=folder)[1]).write_text(item)
    return _cut(item)


def _join(number: int, parts: Any) -> bytes:
    return b"".join(parts)


def _again(number: int, parts: Any) -> Any:
    return "about", iter([(0, b"".join(parts))])


def _cut(item: str) -> Any:
    return f"about {item}", ((number, f"{item}{number}".encode()) for number in range(2))


def _split(number: int, parts: Any) -> Any:
    return "two parts", ((of, b"+".join(_judge(number, parts))) for of in range(2))


def _judge(number: int, parts: Any) -> Any:
    if number == 1:
        raise ValueError(f"no slice {number}")
    return parts


@pytest.mark.parametrize("is_damaged", [False, True])
def test_the_typed_copy_of_a_run_is_read(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """A folder's text is read only if its copy cannot be."""
    made(tmp_path / "history.jsonl")
    here = check.examine(tmp_path, inline=True)
    copy = tmp_path / typed_history.NAME
    if is_damaged:
        content = bytearray(copy.read_bytes())
        content[100:2000] = bytes(1900)
        copy.write_bytes(content)
    of_file = chunks.of_file
    read: list[str] = []

    def cut(path: Path) -> list[chunks.Chunk]:
        read.append(path.name)
        return of_file(path)

    monkeypatch.setattr(spark_judge, "LARGE_BYTES", {".jsonl": 1000})
    monkeypatch.setattr(chunks, "of_file", cut)
    there = check.examine(tmp_path, inline=False, session=spark)
    assert there.findings == here.findings
    assert read == ["history.parquet", "history.jsonl"][: 1 + is_damaged]


def test_a_run_gets_the_typed_copy_of_a_large_history(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunks that executors read are its rows; no later judgement reads the text."""
    path = made(tmp_path / "history.jsonl")
    with path.open("a") as lines:
        lines.write('{"index"')
    of_file = chunks.of_file
    monkeypatch.setattr(spark_judge, "LARGE_BYTES", {".jsonl": 1000})
    monkeypatch.setattr(chunks, "of_file", lambda path: of_file(path, size=50_000))
    first = check.examine(tmp_path, inline=False, session=spark)
    monkeypatch.undo()
    copy = tmp_path / typed_history.NAME
    assert copy.is_file()
    typed = typed_history.read(tmp_path, path, lambda done: None)
    copy.unlink()
    whole = typed_history.read(tmp_path, path, lambda done: None)
    assert typed.schema.metadata == whole.schema.metadata
    assert typed.to_pylist() == whole.to_pylist()
    assert first.findings == check.examine(tmp_path, inline=True).findings


def test_a_large_history(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judgement on Spark does not read a large history itself."""
    path = made(tmp_path / "history.jsonl")
    monkeypatch.setattr(spark_judge, "LARGE_BYTES", {".jsonl": 1000})
    monkeypatch.setattr(typed_history, "read", None)
    there = check.examine(path, inline=False, session=spark)
    monkeypatch.undo()
    here = check.examine(path, inline=True)
    assert there.findings == here.findings
    assert there.verdict.anomalies == here.verdict.anomalies
    assert there.verdict.valid is False
