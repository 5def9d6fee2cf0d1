"""A large partition is judged by few of its records, and gives what all of them give."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from checkers.distributed import blocks, cycle_task, plan, range_task, reduction, slicing
from checkers.distributed.reduction import Reduced
from tests.checkers.distributed import defects
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
