"""A history that is judged in chunks and slices gives what the whole history gives."""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import broker_model, corruptions
from bench.histories import World
from checkers import findings, history_file, inline, overview, table_builder, verdict
from checkers.counts import Counts
from checkers.distributed import (
    chunks,
    cycle_task,
    plan,
    range_task,
    slicing,
    transactions,
)
from checkers.distributed.here import Here
from checkers.expectations import Contract
from checkers.overview import Whole
from model import history
from model.finding import Finding
from model.history import BadHistory
from tests.checkers.distributed import group_world
from tests.checkers.distributed.seeds import seeds

Event = tuple[int, str, str, Any]
Outcome = tuple[list[Finding], bytes, Counts]

SIZES = (400, 1500, 6000, 1 << 20)
"""Sizes of chunks in bytes: from a few events to the whole history."""


def concluded(whole: Whole) -> Outcome:
    found = findings.findings(whole.found.found, whole.overview, Contract())
    concluded = verdict.conclude(
        whole.overview, whole.reports, found, run=None, plan={}, of_history=whole.found.checker_runs
    )
    return found, verdict.essence(concluded), whole.overview.counts


def at_once(path: Path) -> Outcome:
    """Judge a whole history in memory."""
    events = history_file.read(path, lambda done: None)
    tables = table_builder.build(history_file.columns(events, path))
    return concluded(overview.concluded(tables, inline.judge(tables, lambda done: None)))


def in_chunks(path: Path, size: int) -> Outcome:
    """Judge a history in chunks of so many bytes."""
    scratch = path.parent / f"{path.stem}-{size}"
    scratch.mkdir()
    return concluded(plan.judge(path, chunks.of_file(path, size=size), Here(), scratch))


def refusal(judge: Callable[[], Any]) -> str:
    with pytest.raises(BadHistory) as error:
        judge()
    return str(error.value)


@pytest.mark.parametrize("seed", seeds(0))
def test_records_of_plain_writers(tmp_path: Path, seed: int) -> None:
    """Histories with and without defects, with readers that change, and operations in doubt."""
    rng = random.Random(seed)
    world = World(
        rng,
        keys=rng.randint(1, 12),
        writers=rng.randint(1, 5),
        readers=rng.randint(1, 4),
        doubt=rng.choice((0.0, 0.05, 0.3)),
        restarts=rng.choice((0.0, 0.02, 0.2)),
        lost=rng.randint(0, 3),
        doubled=rng.randint(0, 2),
        phantom=rng.randint(0, 2),
        span=60,
    )
    path = tmp_path / "history.jsonl"
    history.write(path, world.events(rng.randint(1, 400)))
    assert in_chunks(path, rng.choice(SIZES)) == at_once(path)


@pytest.mark.parametrize("seed", seeds(0))
def test_corrupted_histories(tmp_path: Path, seed: int) -> None:
    """Defects of all kinds, requested log ends, deleted records, and sends to several
    partitions."""
    rng = random.Random(seed)
    model = broker_model.Model(
        rng,
        keys=rng.randint(1, 4),
        doubt=rng.choice((0.0, 0.1, 0.3)),
        deletes=0.05,
        transactional=0,
    )
    model.run(rng.randint(20, 120))
    events, _ = corruptions.corrupt(model, rng, rng.randint(1, 3))
    path = tmp_path / "history.jsonl"
    history.write(path, events)
    assert in_chunks(path, rng.choice(SIZES)) == at_once(path)


@pytest.mark.parametrize("seed", seeds(0))
def test_large_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Plain partitions are checked in ranges, and others are found not to be plain."""
    rng = random.Random(2000 + seed)
    has_defects = rng.random() < 0.3
    world = World(
        rng,
        keys=rng.randint(1, 4),
        writers=rng.randint(1, 5),
        readers=rng.randint(1, 4),
        doubt=rng.choice((0.0, 0.05)) if has_defects else 0.0,
        restarts=0.02 if has_defects else 0.0,
        lost=rng.randint(0, 2) if has_defects else 0,
        doubled=rng.randint(0, 1) if has_defects else 0,
        span=60,
    )
    path = tmp_path / "history.jsonl"
    history.write(path, world.events(rng.randint(30, 400)))
    monkeypatch.setattr(plan, "LARGE_ROWS", rng.choice((1, 50, 200)))
    monkeypatch.setattr(range_task, "WIDTH", rng.choice((1, 7, 50, 1000)))
    assert in_chunks(path, rng.choice(SIZES)) == at_once(path)


IN_ORDER: list[Event] = [
    (8, "invoke", "assign", ["x"]), (8, "ok", "assign", ["x"]),
    (0, "invoke", "send", [["send", "x", 1], ["send", "x", 2]]),
    (0, "ok", "send", [["send", "x", [0, 1]], ["send", "x", [1, 2]]]),
    (1, "invoke", "send", [["send", "x", 3]]), (1, "ok", "send", [["send", "x", [2, 3]]]),
    (8, "invoke", "poll", [["poll"]]), (8, "ok", "poll", [["poll", {"x": [[0, 1], [1, 2]]}]]),
    (8, "invoke", "poll", [["poll"]]), (8, "ok", "poll", [["poll", {"x": [[2, 3]]}]]),
    (8, "invoke", "catch-up", [["catch-up", "x"]]),
    (8, "ok", "catch-up", [["catch-up", "x", 3, 3]]),
]  # fmt: skip
"""A plain partition that was read to its end."""
NOT_PLAIN: dict[str, dict[int, Any]] = {
    "a record is missing": {9: [["poll", {}]]},
    "a record is read twice": {9: [["poll", {"x": [[1, 2], [2, 3]]}]]},
    "records are read in the wrong order": {
        7: [["poll", {"x": [[0, 1], [2, 3]]}]], 9: [["poll", {"x": [[1, 2]]}]],
    },
    "a record has another value": {9: [["poll", {"x": [[2, 4]]}]]},
    "records were sent in the wrong order": {
        3: [["send", "x", [1, 1]], ["send", "x", [0, 2]]],
        7: [["poll", {"x": [[0, 2], [1, 1]]}]],
    },
    "a record is at two places": {9: [["poll", {"x": [[2, 3], [3, 3]]}]]},
}  # fmt: skip


@pytest.mark.parametrize("width", [1, 2, 100])
@pytest.mark.parametrize("what", ["nothing", *NOT_PLAIN])
def test_a_partition_is_plain_if_its_ranges_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, width: int
) -> None:
    """What is wrong between two ranges is seen as well as what is wrong within one."""
    events = [*IN_ORDER]
    for place, value in NOT_PLAIN.get(what, {}).items():
        events[place] = (*events[place][:3], value)
    path = written(tmp_path / "history.jsonl", events)
    monkeypatch.setattr(plan, "LARGE_ROWS", 1)
    monkeypatch.setattr(range_task, "WIDTH", width)
    plain: list[bool] = []
    decide = range_task.decide

    def decided(*asked: Any) -> Any:
        answer = decide(*asked)
        plain.append(answer.judged is not None)
        return answer

    monkeypatch.setattr(range_task, "decide", decided)
    assert in_chunks(path, 200) == at_once(path)
    assert plain == [what == "nothing"]


@pytest.mark.parametrize("seed", seeds(0))
def test_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Defects of transactions, with windows for cycles that are narrower than some of these."""
    rng = random.Random(1000 + seed)
    model = broker_model.Model(
        rng,
        keys=rng.randint(1, 6),
        doubt=rng.choice((0.0, 0.1, 0.3)),
        deletes=rng.choice((0.0, 0.05)),
        transactional=rng.choice((1, 2, 4)),
    )
    model.run(rng.randint(20, 160))
    events, _ = corruptions.corrupt(model, rng, rng.randint(0, 3))
    path = tmp_path / "history.jsonl"
    history.write(path, events)
    monkeypatch.setattr(cycle_task, "EVENTS", rng.choice((10, 40, 1000)))
    monkeypatch.setattr(slicing, "SLICES_MIN", rng.choice((2, 8)))
    assert in_chunks(path, rng.choice(SIZES)) == at_once(path)


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, transactional: bool
) -> None:
    """Members, commits in all outcomes, wrong answers, freezes, faults, and transactions that
    produce from inputs; with a slice per partition, and with several partitions in a slice."""
    rng = random.Random(3000 + seed)
    world = group_world.GroupWorld(
        rng,
        wrong=rng.choice((0.0, 0.02, 0.1, 0.3)),
        doubt=rng.choice((0.0, 0.1, 0.3)),
        transactional=transactional,
        faults=rng.choice((0.0, 0.02)),
    )
    path = tmp_path / "history.jsonl"
    history.write(path, world.history(rng.randint(20, 100)))
    monkeypatch.setattr(cycle_task, "EVENTS", rng.choice((10, 1000)))
    monkeypatch.setattr(slicing, "SLICES_MIN", rng.choice((2, 8)))
    assert in_chunks(path, path.stat().st_size // rng.randint(1, 8)) == at_once(path)


def test_a_value_that_two_transactions_sent(tmp_path: Path) -> None:
    """A transaction is not counted if all of its values are left out."""
    lines = [
        (0, "invoke", "txn", SEND), (0, "ok", "txn", ACK),
        (1, "invoke", "txn", SEND), (1, "info", "txn", SEND),
        (2, "invoke", "txn", [["send", "y", 1]]), (2, "ok", "txn", [["send", "y", [0, 1]]]),
    ]  # fmt: skip
    path = written(tmp_path / "history.jsonl", lines)
    assert at_once(path)[2].transactions == 1
    assert in_chunks(path, 100) == at_once(path)


def test_too_many_suspects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolation is unknown, and all other checkers have found what they find."""
    lines = [
        (0, "invoke", "txn", SEND),
        (1, "invoke", "poll", [["poll"]]), (1, "ok", "poll", [["poll", {"x": [[0, 1]]}]]),
        (2, "invoke", "send", [["send", "x", 2]]), (2, "ok", "send", [["send", "x", [1, 2]]]),
        (0, "ok", "txn", ACK),
    ]  # fmt: skip
    path = written(tmp_path / "history.jsonl", lines)
    assert in_chunks(path, 100) == at_once(path)
    monkeypatch.setattr(transactions, "SUSPECTS_MAX", 0)
    outcome = in_chunks(path, 1 << 20)
    because = json.loads(outcome[1])["unknown_because"]
    assert any("more than 0 transactions may have been read too early" in each for each in because)


def test_an_operation_that_one_slice_proves_happened_in_all(tmp_path: Path) -> None:
    """A record is lost, of an operation in doubt whose other record was read from another slice."""
    send = [["send", "x", 1], ["send", "y", 2]]
    lines = [
        (0, "invoke", "send", send),
        (0, "info", "send", [["send", "x", 1], ["send", "y", [0, 2]]]),
        (1, "invoke", "send", [["send", "y", 3]]),
        (1, "ok", "send", [["send", "y", [1, 3]]]),
        (2, "invoke", "poll", [["poll"]]),
        (2, "ok", "poll", [["poll", {"x": [[0, 1]], "y": [[1, 3]]}]]),
    ]
    path = written(tmp_path / "lost.jsonl", lines)
    found, *_ = at_once(path)
    assert [(f.anomaly, f.key) for f in found if not f.legal] == [("lost-write", "y")]
    assert in_chunks(path, 100) == at_once(path)
    lines[-1] = (2, "ok", "poll", [["poll", {"y": [[1, 3]]}]])
    path = written(tmp_path / "unproven.jsonl", lines)
    assert not [f for f in at_once(path)[0] if not f.legal]
    assert in_chunks(path, 100) == at_once(path)


def written(path: Path, events: list[Event]) -> Path:
    lines = [
        {"index": index, "time_ns": index, "process": process, "type": kind, "f": f, "value": value}
        for index, (process, kind, f, value) in enumerate(events)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


SEND = [["send", "x", 1]]
ACK = [["send", "x", [0, 1]]]
BAD: dict[str, list[Event]] = {
    "not invoked": [(0, "invoke", "send", SEND), (1, "ok", "send", ACK)],
    "two at once": [(0, "invoke", "send", SEND), (1, "invoke", "poll", [["poll"]]),
                    (0, "invoke", "send", [["send", "x", 2]])],
    "after info": [(0, "invoke", "send", SEND), (0, "info", "send", SEND),
                   (0, "invoke", "send", [["send", "x", 2]])],
    "another function": [(0, "invoke", "send", SEND), (0, "ok", "poll", None)],
    "another value": [(0, "invoke", "send", SEND), (0, "ok", "send", [["poll", {"x": [[0, 1]]}]])],
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("size", [1, 150, 1 << 20])
def test_a_history_that_cannot_be_judged(tmp_path: Path, what: str, size: int) -> None:
    """The same sentence, with the same line, wherever the borders of chunks are."""
    before: list[Event] = [
        (7, "invoke", "send", [["send", "y", 9]]),
        (7, "ok", "send", [["send", "y", [0, 9]]]),
    ]
    path = written(tmp_path / "bad.jsonl", [*before, *BAD[what], (8, "invoke", "poll", [["poll"]])])
    assert refusal(lambda: in_chunks(path, size)) == refusal(lambda: at_once(path))


@pytest.mark.parametrize("change", ['"index": 1,', '"time_ns": 0,', "no event"])
def test_events_that_are_out_of_order(tmp_path: Path, change: str) -> None:
    """Indices and times go on from chunk to chunk, and every line is an event."""
    path = written(tmp_path / "good.jsonl", [(n, "invoke", "poll", [["poll"]]) for n in range(9)])
    lines = path.read_text().splitlines()
    field = change.partition(":")[0]
    lines[6] = lines[6].replace(f"{field}: 6,", change) if ":" in change else change
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(lines) + "\n")
    for size in (1, 200, 1 << 20):
        assert refusal(partial(in_chunks, bad, size)) == refusal(lambda: at_once(bad))


def test_what_is_left_out(tmp_path: Path) -> None:
    """An incomplete last line, fields and operations that are unknown are noted as for a whole."""
    events = [(0, "invoke", "send", SEND), (0, "ok", "send", ACK), (1, "invoke", "dance", [["a"]])]
    path = written(tmp_path / "odd.jsonl", events)
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:-1] + ', "host": 3}'
    path.write_text("\n".join(lines) + '\n\n{"index": 3, "ti')
    for size in (1, 200, 1 << 20):
        assert in_chunks(path, size) == at_once(path)
    assert b"line 5 is torn" in at_once(path)[1]


def test_a_record_in_the_log_of_another_partition(tmp_path: Path) -> None:
    """The chunks are searched for the send of a record that a slice does not know."""
    events = [
        (0, "invoke", "send", SEND), (0, "ok", "send", ACK),
        (1, "invoke", "poll", [["poll"]]), (1, "ok", "poll", [["poll", {"y": [[0, 1]]}]]),
    ]  # fmt: skip
    path = written(tmp_path / "strayed.jsonl", events)
    assert [f.anomaly for f in at_once(path)[0] if not f.legal] == ["misrouted"]
    assert in_chunks(path, 100) == at_once(path)


def test_parquet_is_cut_by_its_row_groups(tmp_path: Path) -> None:
    """A typed history gives what its lines give, and its notes count once."""
    import pyarrow.parquet as pq

    path = tmp_path / "history.jsonl"
    history.write(path, World(random.Random(3), keys=5, lost=2, span=60).events(300))
    with path.open("a") as lines:
        lines.write('{"index"')
    typed = tmp_path / "history.parquet"
    pq.write_table(history_file.read(path, lambda done: None), typed, row_group_size=100)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    cut = chunks.of_file(typed, events=150)
    assert len(cut) > 2
    whole = plan.judge(typed, cut, Here(), scratch)
    assert concluded(whole) == at_once(typed)
    assert not list(scratch.iterdir())
