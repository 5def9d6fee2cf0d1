"""A file that only Spark reads gives what the whole history gives."""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import broker_model, corruptions
from bench.histories import World
from checkers import history_file
from checkers.distributed import held_source, plan
from checkers.distributed.held_source import HeldSource, Incomplete, Lines
from model import history
from model.history import BadHistory
from tests.checkers.distributed import group_world
from tests.checkers.distributed.test_plan import (
    ACK,
    BAD,
    SEND,
    Event,
    Outcome,
    at_once,
    concluded,
    written,
)

pytestmark = pytest.mark.spark

Judge = Callable[..., Outcome]


def nothing(done: float) -> None:
    """Ignore progress."""


@pytest.fixture
def held(spark: Any) -> Judge:
    """Judge a file in splits of so many bytes, or row groups."""

    def judge(path: Path, size: int = 20_000, rows_max: int = 150) -> Outcome:
        uri = path.as_uri()
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            schema, num_rows = file.schema_arrow, file.metadata.num_rows
            of_rows = held_source.rows(
                spark, uri, nothing, schema, num_rows, size=size, rows_max=rows_max
            )
            with of_rows as source:
                return judged(source)
        text = path.read_bytes()
        known = Lines(len(text), text.endswith(b"\n"))
        with held_source.lines(spark, uri, nothing, known, size=size) as source:
            return judged(source)

    return judge


def judged(source: HeldSource) -> Outcome:
    return concluded(plan.of_source(source, source.runner))


def named(path: Path, judge: Callable[[], Any]) -> str:
    """Return the refusal, with the path of the file in place of its URI."""
    with pytest.raises(BadHistory) as error:
        judge()
    return str(error.value).replace(path.as_uri(), str(path))


@pytest.mark.parametrize("seed", [3, 4])
def test_lines_with_defects(tmp_path: Path, held: Judge, seed: int) -> None:
    """Findings, verdict and counts are the same."""
    world = World(random.Random(seed), keys=7, lost=3, doubled=2, phantom=1, doubt=0.1, span=200)
    path = tmp_path / "history.jsonl"
    history.write(path, world.events(600))
    found, *_ = outcome = at_once(path)
    assert held(path) == outcome
    assert {"lost-write", "duplicate"} & {f.anomaly for f in found}


def test_lines_without_defects(tmp_path: Path, held: Judge) -> None:
    """A valid history is valid, also in chunks that are smaller than their split."""
    path = tmp_path / "history.jsonl"
    history.write(path, World(random.Random(1), keys=3).events(300))
    found, *_ = outcome = at_once(path)
    assert held(path, size=1 << 20) == outcome
    assert not [f for f in found if not f.legal]


def test_transactions(tmp_path: Path, held: Judge) -> None:
    """Every pass of a plan with transactions uses the chunks that Spark keeps."""
    rng = random.Random(80)
    model = broker_model.Model(rng, keys=5, doubt=0.1, transactional=4)
    model.run(200)
    path = tmp_path / "history.jsonl"
    history.write(path, corruptions.corrupt(model, rng, 3)[0])
    found, *_ = outcome = at_once(path)
    assert held(path) == outcome
    assert {"G0", "G1c"} & {f.anomaly for f in found}


def test_row_groups(tmp_path: Path, held: Judge) -> None:
    """The notes of the file's writer count once, and its rows are those of the lines."""
    path = tmp_path / "history.jsonl"
    history.write(path, World(random.Random(3), keys=5, lost=2, span=60).events(300))
    with path.open("a") as lines:
        lines.write('{"index"')
    typed = tmp_path / "history.parquet"
    table = history_file.read(path, lambda done: None)
    pq.write_table(table, typed, row_group_size=200)
    assert held(typed) == at_once(typed)
    assert b"is torn and was left out" in at_once(typed)[1]


@pytest.mark.parametrize("what", ["not invoked", "another value"])
def test_a_history_that_cannot_be_judged(tmp_path: Path, held: Judge, what: str) -> None:
    """The sentence names the file and the line, also if some lines are blank."""
    before: list[Event] = [(7, "invoke", "send", SEND), (7, "ok", "send", ACK)]
    path = written(tmp_path / "bad.jsonl", [*before, *BAD[what]])
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["", lines[0], " \t", *lines[1:], ""]) + "\n")
    for size in (150, 1 << 20):
        assert named(path, partial(held, path, size)) == named(path, partial(at_once, path))


@pytest.mark.parametrize("is_ended", [False, True])
@pytest.mark.parametrize("place", [2, 5])
def test_a_line_that_is_no_event(tmp_path: Path, held: Judge, place: int, is_ended: bool) -> None:
    """Only the last line of a file without a newline is left out."""
    path = written(tmp_path / "odd.jsonl", [(n, "invoke", "poll", [["poll"]]) for n in range(5)])
    lines = path.read_text().splitlines()
    lines.insert(place, '{"index": 3, "ti')
    path.write_text("\n".join(lines) + ("\n" if is_ended else ""))
    for size in (100, 1 << 20):
        if place == 5 and not is_ended:
            assert held(path, size) == at_once(path)
        else:
            assert named(path, partial(held, path, size)) == named(path, partial(at_once, path))


def test_a_null_in_parquet(tmp_path: Path, held: Judge) -> None:
    """Values are checked as they are where one process reads the file."""
    path = tmp_path / "history.jsonl"
    history.write(path, World(random.Random(3), keys=2).events(20))
    rows = history_file.read(path, lambda done: None)
    schema = rows.schema
    values = rows["time_ns"].to_pylist()
    values[7] = None
    field = schema.field("time_ns").with_nullable(True)
    typed = tmp_path / "null.parquet"
    changed = rows.set_column(1, field, pa.array(values, field.type))
    pq.write_table(changed, typed, row_group_size=10)
    refused = named(typed, partial(held, typed))
    assert refused == named(typed, partial(at_once, typed))
    assert "'time_ns' with null values" in refused


def test_a_file_that_is_not_read_to_its_end(tmp_path: Path, spark: Any) -> None:
    """What Spark has read is compared with the size of the file."""
    path = written(tmp_path / "short.jsonl", [(0, "invoke", "poll", [["poll"]])])
    size = path.stat().st_size + 5
    uri = path.as_uri()
    with (
        held_source.lines(spark, uri, nothing, Lines(size, True)) as source,
        pytest.raises(Incomplete, match=f"{size - 5} of {size} bytes"),
    ):
        judged(source)


def test_groups(tmp_path: Path, held: Judge) -> None:
    """Slices of the kept chunks share what members of groups did."""
    path = tmp_path / "history.jsonl"
    world = group_world.GroupWorld(random.Random(3), wrong=0.1, transactional=True)
    history.write(path, world.history(60))
    found, *_ = outcome = at_once(path)
    assert held(path, 4000) == outcome
    assert found


def test_fields_that_are_left_out(tmp_path: Path, held: Judge) -> None:
    """They are counted over all chunks."""
    path = written(tmp_path / "odd.jsonl", [(n, "invoke", "poll", [["poll"]]) for n in range(5)])
    events = [json.loads(line) | {"host": 3} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    outcome = at_once(path)
    assert held(path, 100) == outcome
    assert b"host" in outcome[1]
