"""The typed copy of a history stands for its text only as long as the text is the same."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import history_file, jsonl
from checkers.pieces import Progress
from harness.app import typed_history
from model.history import BadHistory
from tests.checkers.test_wellformed import Event, base, write


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose text was read."""
    found: list[Path] = []
    reader = jsonl.read

    def read(path: Path, progress: Progress) -> object:
        found.append(path)
        return reader(path, progress)

    monkeypatch.setattr(jsonl, "read", read)
    return found


def written(folder: Path, events: Sequence[Event]) -> Path:
    return write(folder, [*events])


def read(folder: Path) -> pa.Table:
    return typed_history.read(folder, folder / "history.jsonl", lambda _: None)


def test_the_text_is_read_once(tmp_path: Path, texts: list[Path]) -> None:
    """The copy gives the same table, with the notes about what was left out."""
    file = written(tmp_path, [event | {"node": "n1"} for event in base()])
    first = read(tmp_path)
    assert (tmp_path / typed_history.NAME).is_file()
    again = read(tmp_path)
    assert texts == [file]
    assert again == first
    assert again.schema.metadata == first.schema.metadata


def test_a_changed_text_counts(tmp_path: Path, texts: list[Path]) -> None:
    """A history that was edited is read, and its copy is replaced."""
    written(tmp_path, base())
    read(tmp_path)
    file = written(tmp_path, base()[:-2])
    changed = read(tmp_path)
    assert len(texts) == 2
    assert changed == history_file.read(file, lambda _: None)
    assert read(tmp_path) == changed
    assert len(texts) == 3, "the line above reads no text; the one before it does"


def test_the_copy_is_named_only_while_it_counts(tmp_path: Path) -> None:
    """Other readers of the history may read the copy in its place."""
    file = written(tmp_path, base())
    assert typed_history.copy_of(tmp_path, file) == file
    read(tmp_path)
    copy = tmp_path / typed_history.NAME
    assert typed_history.copy_of(tmp_path, file) == copy
    assert typed_history.copy_of(None, file) == file
    assert typed_history.copy_of(tmp_path, copy) == copy
    written(tmp_path, base()[:-2])
    assert typed_history.copy_of(tmp_path, file) == file


def test_copies_of_others_do_not_count(
    tmp_path: Path, texts: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy without a source, of other readers, or damaged is replaced."""
    written(tmp_path, base())
    history = read(tmp_path)
    copy = tmp_path / typed_history.NAME
    pq.write_table(pq.read_table(copy).replace_schema_metadata(None).slice(1), copy)
    assert read(tmp_path) == history
    monkeypatch.setattr(typed_history, "_readers", lambda: "others")
    assert read(tmp_path) == history
    assert len(texts) == 3
    whole = copy.read_bytes()
    copy.write_bytes(whole[:100])
    assert read(tmp_path) == history
    copy.write_bytes(whole[:4] + bytes(60) + whole[64:])
    assert read(tmp_path) == history
    assert len(texts) == 5


def test_a_pipe_is_no_copy(tmp_path: Path, texts: list[Path]) -> None:
    """A pipe, which would block the reader, is replaced."""
    os.mkfifo(tmp_path / typed_history.NAME)
    written(tmp_path, base())
    assert read(tmp_path) == read(tmp_path)
    assert len(texts) == 1


def test_a_bare_history_has_no_copy(tmp_path: Path) -> None:
    """Nothing is written next to a file that belongs to no run; a copy alone is a history."""
    file = written(tmp_path, base())
    typed_history.read(None, file, lambda _: None)
    assert list(tmp_path.iterdir()) == [file]
    history = read(tmp_path)
    file.unlink()
    alone = typed_history.read(tmp_path, tmp_path / typed_history.NAME, lambda _: None)
    assert alone == history


def test_a_bad_history_leaves_no_copy(tmp_path: Path) -> None:
    """The refusal names file and line, each time."""
    file = write(tmp_path, [*base(), "{"])
    file.write_text(file.read_text() + "\n{}\n")
    for _ in range(2):
        with pytest.raises(BadHistory, match=r"history\.jsonl"):
            read(tmp_path)
    assert not (tmp_path / typed_history.NAME).exists()
