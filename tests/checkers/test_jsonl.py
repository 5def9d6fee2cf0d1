"""Histories in JSON lines, whole and damaged."""

from pathlib import Path
from typing import Any

import pytest

from checkers import history_file, jsonl, table_builder
from model.history import BadHistory, encode
from model.op import Op


def silent(done: float) -> None:
    """A progress callback that does nothing."""


def line(index: int, **changes: Any) -> bytes:
    fields: dict[str, Any] = {"time_ns": 0, "process": 0, "type": "invoke", "f": "send"}
    return encode(Op(index=index, **(fields | {"value": [["send", "x", 1]]} | changes)))


@pytest.mark.parametrize("end", range(1, len(line(1))))
def test_a_torn_last_line_is_left_out(tmp_path: Path, end: int) -> None:
    """A torn last line is left out, wherever it is cut."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(0) + line(1)[:end])
    events = history_file.read(path, silent).num_rows
    assert events == (2 if end == len(line(1)) - 1 else 1)  # only the line's end is missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "has no events"),
        (b"\n\n", "has no events"),
        (b"nonsense\n", "line 1: JSON is malformed"),
        (line(0) + b"{}\n" + line(1), "line 2: Object missing required field `index`"),
        (line(0) + b'{"index": "1"}\n', "line 2: Expected `int`, got `str` - at `$.index`"),
        (line(0).replace(b"invoke", b"maybe"), "line 1: Invalid enum value 'maybe'"),
        (line(0) + line(1)[:30] + b"\n" + line(2), "line 2: JSON is malformed"),
        (
            line(0, value=[["send", "x"]]),
            'line 1: event 0: ["send","x"] does not have the shape ["send", key, value]',
        ),
        (line(0, value=[["send", 3, 4]]), '["send",3,4] does not have the shape'),
        (line(0, value=[["send", "x", "y"]]), "the value of a record must be a whole number"),
        (line(0, value=[["send", "x", 1.5]]), "the value of a record must be a whole number"),
        (line(0, value=[["send", "x", 1 << 63]]), "a number of more than 64 bits"),
        (line(0, value=[["poll", [1]]]), '["poll",[1]] does not have the shape'),
        (line(0, value=[7]), "event 0: 7 is not a list of micro-operations"),
        (line(1) + line(0, process=1), "the index 0 follows 1"),
        (line(0) + line(0, process=1), "the index 0 follows 0"),
        (line(0) + line(1), "process 0 invoked event 1 before its event 0 was completed"),
        (b"\xff\xfe" + line(0), "line 1"),
    ],
)
def test_a_bad_history_is_told_in_one_sentence(tmp_path: Path, text: bytes, message: str) -> None:
    """A bad history is reported in one sentence, with the place and the reason."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(text)
    with pytest.raises(BadHistory) as told:
        table_builder.of_history(history_file.read(path, silent))
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    """Blank lines are ignored."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(0) + b"\n" + line(1, process=1) + b"\n")
    assert history_file.read(path, silent)["index"].to_pylist() == [0, 1]


def test_chunks_end_between_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of any size end between lines, and progress ends at 1."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(line(n, process=n) for n in range(20)))
    for size in (1, 50, 100, 1000):
        monkeypatch.setattr(jsonl, "CHUNK_BYTES", size)
        told: list[float] = []
        assert history_file.read(path, told.append)["index"].to_pylist() == list(range(20))
        assert told == sorted(told)
        assert told[-1] == 1.0


@pytest.mark.slow
def test_a_large_file_is_read_by_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves of a large file fit together, whatever their names are, and a bad line is
    reported."""
    path = tmp_path / "history.jsonl"
    lines = [line(n, process=n, value=[["send", f"x-{n}", n]], error=f"e{n}") for n in range(20)]
    path.write_bytes(b"".join(lines))
    whole = history_file.read(path, silent)
    monkeypatch.setattr(jsonl, "SPLIT_BYTES", 1)
    monkeypatch.setattr(jsonl, "THREADS", 2)
    split = history_file.read(path, silent)
    assert split.to_pylist() == whole.to_pylist()
    assert table_builder.of_history(split).sends.value.tolist() == list(range(20))
    path.write_bytes(b"".join([*lines, b"nonsense\n"]))
    with pytest.raises(BadHistory, match="line 21: JSON is malformed"):
        history_file.read(path, silent)
    path.write_bytes(b"".join(lines)[:-5])
    assert history_file.read(path, silent).num_rows == 19
