from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.app.report import columns
from model import history
from model.op import NEMESIS, Op


def written(path: Path, *ops: Op) -> columns.Columns:
    """Write a history of these events and load its columns."""
    history.write(path / "history.jsonl", ops)
    return columns.load(path / "history.jsonl")


def op(index: int, **more: Any) -> Op:
    fields = {"index": index, "time_ns": index * 10, "process": 0, "type": "ok", "f": "send"}
    return msgspec.convert(fields | more, Op)


@pytest.mark.parametrize(
    ("value", "keys", "records"),
    [
        ([["send", "a-0", [7, 1]]], ["a-0"], (1, 0)),
        ([["send", "a-0", [7, 1]], ["send", "a-0", [8, 2]]], ["a-0"], (2, 0)),
        ([["poll", {"a-0": [[7, 1], [8, 2]], "a-1": []}]], ["a-0", "a-1"], (0, 2)),
        ([["send", "a-0", [7, 1]], ["poll", {"a-1": [[0, 9]]}]], ["a-0", "a-1"], (1, 1)),
        ([["poll"]], [], (0, 0)),
        ([["subscribe", "g", ["a"], {}]], [], (0, 0)),
        ([["freeze", "g", 9], ["commit", "g", {"a-0": 3}, "sync"]], ["a-0"], (0, 0)),
        ([["committed", "g", {"a-0": None, "a-1": 3}]], ["a-0", "a-1"], (0, 0)),
        (
            [
                ["revoked", "g", 3, ["a-0"]],
                ["assigned", "g", 4, {"b-0": 7}],
                ["poll", {"b-1": [[7, 1]]}],
            ],
            ["a-0", "b-0", "b-1"],
            (0, 1),
        ),
        ([["watermarks", "a-0", {"high": 3}]], ["a-0"], (0, 0)),
        (["a-0", "a-1"], [], (0, 0)),
        ({"id": 3, "targets": ["broker-1"]}, [], (0, 0)),
        (None, [], (0, 0)),
        ({"path": "/q/n-1", "place": "/q"}, ["/q"], (1, 0)),
        ({"path": "/r"}, ["/r"], (1, 0)),
    ],
)
def test_what_an_event_touches(value: Any, keys: list[str], records: tuple[int, int]) -> None:
    """Partitions and records are found in micro-operations, and nowhere else."""
    assert columns.keys_of(value) == keys
    assert columns.records_of(value) == records


def test_reads_and_writes_of_znodes() -> None:
    """An operation on ZooKeeper is one read or one write, by its name."""
    assert columns.records_of({"path": "/r"}, "get") == (0, 1)
    assert columns.records_of({"path": "/r"}, "set") == (1, 0)


def test_latency_is_from_an_invocation_to_its_own_completion(tmp_path: Path) -> None:
    """Latency is measured per process; an invocation without a completion has none."""
    found = written(
        tmp_path,
        op(0, type="invoke", process=1),
        op(1, type="invoke", process=2),
        op(2, type="info", process=2, error="_TIMED_OUT"),
        op(3, process=1, value=[["send", "a-0", [0, 5]]]),
        op(4, type="invoke", process=3),
    )
    assert found.latency_ns.tolist() == [-1, -1, 10, 30, -1]
    assert found.errors == {("info", "_TIMED_OUT"): 1}


def test_columns_hold_what_the_file_says(tmp_path: Path) -> None:
    """Codes map back to names, rows back to events, and the nemesis is not a client."""
    ops = [
        op(0, value=[["send", "a-0", [0, 5]]]),
        op(1, f="poll", value=[["poll", {"a-1": [[3, 9]]}]]),
        op(2, f="poll", value=[["poll", {"a-0": [[0, 5]], "a-1": [[4, 8]]}]]),
        op(3, f="kill", process=NEMESIS, type="info", value=[["send", "a-9", 1]]),
    ]
    found = written(tmp_path, *ops)
    assert [found.op(row) for row in range(len(found))] == ops
    assert found.key.tolist() == [0, 1, columns.SEVERAL_KEYS, columns.NO_KEY]
    assert found.key_names == ("a-0", "a-1")
    assert [found.f_names[code] for code in found.f] == ["send", "poll", "poll", "kill"]
    assert (found.sent.tolist(), found.read.tolist()) == ([1, 0, 0, 0], [0, 1, 2, 0])
    assert found.clients().tolist() == [True, True, True, False]


def test_rows_are_found_by_index_even_where_some_are_missing(tmp_path: Path) -> None:
    """Rows are found by index in a part of a history, which keeps its indices."""
    found = written(tmp_path, op(5), op(7), op(1))
    assert [found.row_of(index) for index in (5, 7, 1, 0, 99)] == [0, 1, 2, None, None]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    """A torn last line, left by a killed writer, is ignored. Any other broken line is an error."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(history.encode(op(0)) + history.encode(op(1))[:-9])
    assert columns.load(path).index.tolist() == [0]
    path.write_bytes(b"{}\n" + history.encode(op(1)))
    with pytest.raises(history.BadHistory):
        columns.load(path)


def test_a_history_of_several_files_is_one(tmp_path: Path) -> None:
    """The rows of all files follow each other; each is read from its own file and place."""
    ops = [op(number, process=number % 3, time_ns=number * 7) for number in range(9)]
    ops[2:2] = [op(2, type="invoke", process=5), op(3, process=5, time_ns=90)]
    ops = [msgspec.structs.replace(each, index=index) for index, each in enumerate(ops)]
    whole = written(tmp_path, *ops)
    assert [whole.path(row).name for row in (0, 10)] == ["history.jsonl"] * 2
    for number, part in enumerate((ops[:3], ops[3:5], [], ops[5:])):
        history.write(history.segment(tmp_path / "history.jsonl", number), part)
    found = columns.load(tmp_path / "history.jsonl")
    assert [found.op(row) for row in range(len(found))] == ops
    assert found.latency_ns.tolist() == whole.latency_ns.tolist()
    assert found.line.tolist() == [1, 2, 3, 1, 2, 1, 2, 3, 4, 5, 6]
    assert [found.path(row).name for row in (2, 3, 5)] == [
        "history.jsonl", "history-000001.jsonl", "history-000003.jsonl",
    ]  # fmt: skip
    assert found.row_of(8) == 8


def test_no_history_is_an_empty_one(tmp_path: Path) -> None:
    """A run without any event still has a page."""
    found = columns.load(tmp_path / "absent")
    assert len(found) == 0
    assert found.time_ns.dtype == np.int64
