"""A large partition is judged by few of its records, and gives what all of them give."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkers.distributed import blocks, cycle_task, plan, range_task, reduction, slicing
from checkers.distributed.reduction import Reduced
from model import history, transform
from tests.checkers.distributed import defects, group_world
from tests.checkers.distributed.seeds import seeds
from tests.checkers.distributed.test_plan import at_once, in_chunks


@pytest.fixture(autouse=True)
def _every_partition_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LARGE_ROWS", 1)


def written(path: Path, events: defects.Events) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


@pytest.mark.parametrize("seed", seeds(400))
def test_defects_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Within ranges and blocks, at their borders, and between them."""
    rng = random.Random(seed)
    events, _ = defects.history(seed)
    monkeypatch.setattr(range_task, "WIDTH", rng.choice((4, 16, 40, 120)))
    monkeypatch.setattr(blocks, "DIVIDED", rng.choice((1, 4, 8)))
    path = written(tmp_path / "history.jsonl", events)
    assert in_chunks(path, rng.choice((1500, 6000, 1 << 20))) == at_once(path)


@pytest.mark.parametrize("seed", seeds(1400))
def test_defects_of_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Cycles, reads of open transactions, fenced ones, and all that other records have."""
    rng = random.Random(seed)
    events, _ = defects.history(seed, transactional=True)
    monkeypatch.setattr(range_task, "WIDTH", rng.choice((4, 16, 40, 120)))
    monkeypatch.setattr(blocks, "DIVIDED", rng.choice((1, 4, 8)))
    monkeypatch.setattr(cycle_task, "EVENTS", rng.choice((10, 40, 1000)))
    path = written(tmp_path / "history.jsonl", events)
    assert in_chunks(path, rng.choice((1500, 6000, 1 << 20))) == at_once(path)


def _both(process: int, f: str, asked: Any, answered: Any, kind: str = "ok") -> defects.Events:
    common = {"process": process, "f": f, "time_ns": 0}
    return [
        {**common, "type": "invoke", "value": asked},
        {**common, "type": kind, "value": answered},
    ]


ASKED = [["send", "x-0", 1]]
SENT = _both(1, "send", ASKED, ASKED)
OTHER = _both(2, "send", [["send", "y-0", 5]], [["send", "y-0", [0, 5]]])


@pytest.mark.parametrize(
    "events",
    [
        SENT,
        SENT + _both(9, "poll", [["poll"]], [["poll", {"x-0": [[None, 1]]}]]),
        SENT + OTHER + _both(9, "poll", [["poll"]], [["poll", {"y-0": [[0, 5]]}]]),
        _both(1, "send", ASKED, ASKED, "fail"),
        _both(1, "send", ASKED, ASKED, "info") + _both(2, "send", ASKED, [["send", "x-0", [0, 1]]]),
    ],
)
def test_a_partition_without_any_place(tmp_path: Path, events: defects.Events) -> None:
    """No offset of any record is known, all sends failed, or all values are repeated."""
    numbered = [{"index": number, **event} for number, event in enumerate(events)]
    path = written(tmp_path / "history.jsonl", numbered)
    assert in_chunks(path, 1 << 20) == at_once(path)


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, transactional: bool
) -> None:
    """Partitions that groups use are judged whole, and all others, to which transactions of groups
    produce, in ranges."""
    rng = random.Random(5000 + seed)
    world = group_world.GroupWorld(
        rng,
        wrong=rng.choice((0.0, 0.02, 0.1)),
        doubt=rng.choice((0.0, 0.1)),
        transactional=transactional,
    )
    path = tmp_path / "history.jsonl"
    history.write(path, world.history(rng.randint(40, 100)))
    monkeypatch.setattr(range_task, "WIDTH", rng.choice((1, 4, 16)))
    monkeypatch.setattr(blocks, "DIVIDED", rng.choice((1, 4)))
    assert in_chunks(path, path.stat().st_size // rng.randint(1, 8)) == at_once(path)


def processed(*outputs: int) -> str:
    """Return a history in which the transactions of a member make outputs of five inputs, and
    others do that again with some of them. A reader has read all outputs."""
    sent = ",".join(f"x-0={n + 1}@{n}" for n in range(5))
    events = f"s:{sent} p8:{sent} m1:x m2:x p1:^x-0@0#1| "
    made: list[int] = []
    for process, value in (*((1, n + 1) for n in range(5)), *((2, value) for value in outputs)):
        made.append(transform.output(value, 7 + len(made)))
        events += f"t{process}:x-0={value}@{value - 1}|+y-0={made[-1]}@{len(made) - 1}"
        events += f"|!x-0@{value} "
    read = ",".join(f"y-0={each}@{place}" for place, each in enumerate(made))
    return events + f"a7:y-0 p7:{read} c7:y-0@{len(made)} "


def test_outputs_in_settled_blocks(
    histories: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An input with two outputs is found where a slice has no records of the outputs, and its
    transactions are looked up with the operation that read these."""
    path = tmp_path / "history.jsonl"
    history.write(path, histories.events(processed(3)))
    decided: list[bool] = []
    decide = range_task.decide

    def decides(*asked: Any) -> Any:
        answer = decide(*asked)
        decided.append(isinstance(answer.reduced, Reduced))
        return answer

    monkeypatch.setattr(range_task, "decide", decides)
    found, *_ = outcome = at_once(path)
    assert in_chunks(path, 200) == outcome
    assert "eos-mismatch" in {f.anomaly for f in found}
    assert sorted(decided) == [False, True]


@pytest.mark.parametrize("value", [1, 9])
def test_outputs_that_show_that_an_input_was_processed(
    histories: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: int
) -> None:
    """It is unknown what a transaction in doubt processed. That the first input has an
    output is shown by a record that is no end of a settled block."""
    monkeypatch.setattr(range_task, "WIDTH", 4)
    monkeypatch.setattr(blocks, "DIVIDED", 1)
    made = [transform.output(each, n) for n, each in enumerate((7, value, 8, 5, 2))]
    sent = ",".join(f"y-0={each}@{place}" for place, each in enumerate(made[:4]))
    read = ",".join(f"y-0={each}@{place}" for place, each in enumerate(made))
    path = tmp_path / "history.jsonl"
    text = (
        "s:x-0=1@0,x-0=2@1,x-0=3@2 p8:x-0=1@0,x-0=2@1,x-0=3@2 m1:x m2:x p1:^x-0@0#1| "
        f"p2:^x-0@0#2| t2?:|!? s:{sent} t1:x-0=2@1|+y-0={made[4]}@4|!x-0@2 "
        f"a7:y-0 p7:{read} c7:y-0@5 "
    )
    history.write(path, histories.events(text))
    found, *_ = outcome = at_once(path)
    assert in_chunks(path, 200) == outcome
    assert ("eos-mismatch" in {f.anomaly for f in found}) == (value == 9)


def test_inputs_that_cannot_be_judged(
    histories: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly-once processing is unknown, too, though nothing else was found."""
    path = tmp_path / "history.jsonl"
    history.write(path, histories.events(processed()))
    valid = json.loads(in_chunks(path, 200)[1])
    assert not [each for each in valid["unknown_because"] if "too many" in each]
    monkeypatch.setattr(slicing, "WHOLE_ROWS", 20)
    verdict = json.loads(in_chunks(path, 201)[1])
    because = [each for each in verdict["unknown_because"] if "too many operations of x-0" in each]
    assert any("outputs" in each for each in because)


def sequence(count: int, f: str = "send") -> defects.Events:
    """Return a history in which every record is sent, acknowledged and then read by two readers,
    and which ends with a final read."""
    events: defects.Events = []

    def done(process: int, f: str, asked: object, answered: object) -> None:
        about = {"time_ns": len(events), "process": process, "f": f}
        for kind, value in (("invoke", asked), ("ok", answered)):
            events.append({"index": len(events), **about, "type": kind, "value": value})

    for reader in (8, 9):
        done(reader, "assign", ["x"], ["x"])
    for n in range(count):
        done(n % 3, f, [["send", "x", n]], [["send", "x", [n, n]]])
        for reader in (8, 9):
            done(reader, "poll", [["poll"]], [["poll", {"x": [[n, n]]}]])
    done(8, "catch-up", [["catch-up", "x"]], [["catch-up", "x", count, count]])
    return events


def test_few_records_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two hundred records, only those near the one that is lost are judged."""
    events = sequence(200)
    for event in events:
        if event["f"] == "poll" and event["value"] == [["poll", {"x": [[77, 77]]}]]:
            event["value"] = [["poll", {}]]
    monkeypatch.setattr(range_task, "WIDTH", 64)
    monkeypatch.setattr(blocks, "DIVIDED", 8)
    path = written(tmp_path / "history.jsonl", events)
    decided: list[Reduced] = []
    decide = reduction.reduced

    def reduced(*asked: object) -> object:
        found = decide(*asked)  # type: ignore[arg-type]
        assert isinstance(found, Reduced)
        decided.append(found)
        return found

    monkeypatch.setattr(reduction, "reduced", reduced)
    assert in_chunks(path, 1500) == at_once(path)
    assert [f.anomaly for f in at_once(path)[0] if not f.legal] == ["lost-write"]
    [found] = decided
    kept = np.flatnonzero(found.kept.has(np.arange(200)))
    assert {*range(72, 80)} <= {*kept.tolist()}
    assert len(kept) < 40


def test_transactions_that_depend_on_each_other_in_settled_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle leads over records of which no slice has any: each of two transactions reads what the
    other one sent to another partition, or has a record after it."""
    events = sequence(200, "txn")
    for first in range(0, 1200, 200):
        place = next(n for n in range(first, len(events)) if events[n]["f"] == "txn")
        one, other = (events[n] for n in (place + 1, place + 7))
        assert (one["f"], other["f"]) == ("txn", "txn")
        key = f"y{first}"
        for event, more in (
            (events[place], [["poll"]]),
            (one, [["poll", {key: [[0, first]]}]]),
            (events[place + 6], [["send", key, first]]),
            (other, [["send", key, [0, first]]]),
        ):
            event["value"] = [*event["value"], *more]
    monkeypatch.setattr(range_task, "WIDTH", 64)
    monkeypatch.setattr(cycle_task, "EVENTS", 100)
    path = written(tmp_path / "history.jsonl", events)
    found, *_ = at_once(path)
    assert {"G1c-process", "G1c-realtime", "G1c"} & {f.anomaly for f in found}
    assert in_chunks(path, 1500) == at_once(path)


@pytest.mark.parametrize("f", ["send", "txn"])
@pytest.mark.parametrize("what", ["too many", "special"])
def test_a_partition_that_cannot_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, f: str
) -> None:
    """The verdict is unknown, and says why in one sentence."""
    events = sequence(40, f)
    if what == "special":
        value = [["watermarks", "x"]], [["watermarks", "x", {"high": 0}]]
        about = {"time_ns": 0, "process": 7, "f": "watermarks"}
        events[:0] = [
            {"index": 0, **about, "type": kind, "value": each}
            for kind, each in zip(("invoke", "ok"), value, strict=True)
        ]
        for index, event in enumerate(events):
            event["index"] = index
    else:
        for event in events:
            if event["f"] == "poll":
                event["value"] = [["poll", {}]]
    path = written(tmp_path / "history.jsonl", events)
    assert in_chunks(path, 1500) == at_once(path)
    monkeypatch.setattr(slicing, "WHOLE_ROWS", 20)
    monkeypatch.setattr(reduction, "ROWS_MAX", 20)
    outcome = in_chunks(path, 1501)
    assert outcome is not None
    verdict = json.loads(outcome[1])
    assert verdict["valid"] == "unknown"
    because = [each for each in verdict["unknown_because"] if "too many operations of x" in each]
    assert because
    assert any("cycles" in each for each in because) == (f == "txn")
