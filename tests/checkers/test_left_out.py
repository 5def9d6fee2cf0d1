"""What a reader ignores is mentioned, and a duplicate field is not ignored."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from checkers import jsonl, left_out
from harness.app import check
from model.history import BadHistory
from tests.checkers.test_wellformed import Event, added, base, event, write


def notes(path: Path) -> tuple[str, ...]:
    return check.examine(path, inline=True).verdict.notes


def test_fields_that_no_checker_knows_are_mentioned(tmp_path: Path) -> None:
    """Each name with the number of events that have it; a misspelt name does not go unnoticed."""
    events = [event | {"node": "n1"} for event in base()]
    events[3] |= {"errror": "Timeout"}
    note = "fields that no checker knows were ignored: errror (1), node (8)"
    assert notes(write(tmp_path, [*events])) == (note,)


def test_fields_that_the_harness_writes_are_not_mentioned(tmp_path: Path) -> None:
    """Every field of an operation is known."""
    events: list[Event | str] = [*base()]
    events[3] = base()[3] | {"error": "Timeout"}
    assert notes(write(tmp_path, events)) == ()


def test_an_end_of_a_log_that_no_checker_knows_is_mentioned(tmp_path: Path) -> None:
    """Watermarks have three names."""
    lines = added(
        event(8, 9, "invoke", "watermarks", [["watermarks", "x-0"]]),
        event(9, 9, "ok", "watermarks", [["watermarks", "x-0", {"hihg": 3, "high": 2}]]),
    )
    assert notes(write(tmp_path, lines)) == ("fields that no checker knows were ignored: hihg (1)",)


def test_unknown_fields_are_mentioned_in_edn_too(tmp_path: Path) -> None:
    """The rule is the same for every kind of file."""
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0, :f :send, :value [[:send 1 5]], :node :n1}\n"
        "{:type :ok, :process 0, :f :send, :value [[:send 1 [0 5]]], :node :n1}\n"
        "{:type :invoke, :process 1, :f :poll, :value [[:poll]]}\n"
        "{:type :ok, :process 1, :f :poll, :value [[:poll {1 [[0 5]]}]], :rebalance-log []}\n"
    )
    assert notes(path) == ("fields that no checker knows were ignored: node (2)",)


def test_unknown_fields_go_along_with_the_typed_history(tmp_path: Path) -> None:
    """The history that a run's folder gets as Parquet is judged with the same notes."""
    write(tmp_path, [*base()[:3], base()[3] | {"node": "n1"}, *base()[4:]])
    check.examine(tmp_path, inline=True)
    note = "fields that no checker knows were ignored: node (1)"
    assert notes(tmp_path / "history.parquet") == (note,)


@pytest.mark.parametrize("space", ["  ", "\\u0020", "\t "])
def test_a_doubled_field_hides_behind_no_white_space(tmp_path: Path, space: str) -> None:
    """Fields are counted by their colons, and a colon may stand away from its name."""
    line = json.dumps(base()[3], separators=(",", ":"))
    hidden = line.replace('"f":', '"index":3,"f"' + space.replace("\\u0020", " ") + ":", 1)
    lines = [*(json.dumps(e, separators=(",", ":")) for e in base()[:3]), hidden]
    with pytest.raises(BadHistory, match="line 4: an object has two fields"):
        check.examine(write(tmp_path, [*lines]), inline=True)


def test_a_doubled_field_hides_behind_no_backslash(tmp_path: Path) -> None:
    """The name of a key may end in a backslash, which makes its quotation mark look escaped."""
    events = json.loads(json.dumps(base()).replace("x-0", "x\\\\-0\\\\"))
    lines = [json.dumps(e, separators=(",", ":")) for e in events]
    lines[5] = lines[5].replace('"index":5,', '"index":5,"index":5,')
    with pytest.raises(BadHistory, match="line 6: an object has two fields"):
        check.examine(write(tmp_path, [*lines]), inline=True)


def test_a_number_of_any_length_in_an_unknown_field(tmp_path: Path) -> None:
    """A number of any length in an unknown field is ignored, even if Python could not convert
    it."""
    lines = [json.dumps(event) for event in base()]
    lines[3] = lines[3][:-1] + ', "more": ' + "7" * 5000 + "}"
    assert notes(write(tmp_path, [*lines])) == (
        "fields that no checker knows were ignored: more (1)",
    )


def test_two_processes_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file is read in halves."""
    monkeypatch.setattr(jsonl, "SPLIT_BYTES", 1)
    monkeypatch.setattr(jsonl, "THREADS", 2)
    events = [event | {"node": "n1"} for event in base()]
    history = jsonl.read(write(tmp_path, [*events]), lambda done: None)
    assert left_out.fields_of(history) == {"node": 8}


def test_what_only_invocations_have_is_known(tmp_path: Path) -> None:
    """A transaction that asks for records about what it polls is known to the checkers."""
    path = write(
        tmp_path,
        added(
            event(8, 4, "invoke", "txn", [["poll"], ["transform", "y", 1], ["commit", "g", None]]),
            event(9, 4, "ok", "txn", [["poll", {}]]),
        ),
    )
    assert notes(path) == ()


def test_a_torn_end_is_mentioned(tmp_path: Path) -> None:
    """A torn end is mentioned in the verdict."""
    path = write(tmp_path, [*base()])
    with path.open("a") as file:
        file.write('{"index": 8, "ti')
    verdict = check.examine(path, inline=True).verdict
    assert verdict.valid is True
    assert verdict.notes == ("line 9 is torn and was left out",)


def test_a_file_of_one_torn_line_is_refused(tmp_path: Path) -> None:
    """A file of one torn line is rejected, because it holds no event."""
    path = tmp_path / "history.jsonl"
    path.write_text('{"index": 0, "ti')
    with pytest.raises(BadHistory, match="line 1"):
        notes(path)


def test_the_order_of_the_fields_does_not_matter() -> None:
    """Tables of one history are equal, in whichever order its fields were found."""
    tables = [
        left_out.noted(pa.table({}), None, fields)
        for fields in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert tables[0].schema.metadata == tables[1].schema.metadata
    assert left_out.fields_of(tables[0]) == {"a": 1, "b": 2}
