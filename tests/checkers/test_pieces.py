"""A history that is read in pieces is the same table as one that is read whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkers import history_file, jsonl, pieces
from model.history import encode

TEXT = "a:x,y s:x=a@0,x=b s1?:y=c p:x=a@0,x=b@1|y=c@0 m2:x s2!:x=d p8?: c:x@2 >s3:x=e"


@pytest.mark.parametrize("events", [1, 2, 3, 1000])
def test_pieces_of_any_size_make_the_same_table(
    histories: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    """Pieces of any size make the same table: list ends, codes of names, and details fit
    together."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(map(encode, histories.events(TEXT))))
    whole = history_file.read(path, lambda done: None)
    monkeypatch.setattr(jsonl, "PIECE_EVENTS", events)
    monkeypatch.setattr(jsonl, "CHUNK_BYTES", 1)
    again = history_file.read(path, lambda done: None)
    again.validate(full=True)
    assert again.to_pylist() == whole.to_pylist()


def test_columns_grow_where_they_are() -> None:
    """A column keeps all numbers while it grows."""
    column, numbers = pieces.Growing(np.int32), np.arange(100_000, dtype=np.int64)
    column.extend(numbers[:0])
    column.extend(numbers[:10])
    column.extend(numbers[10:])
    assert column.array().tolist() == numbers.tolist()
    assert column.array().dtype == np.int32
    assert len(pieces.Growing(np.int64).array()) == 0


@pytest.mark.parametrize("count", [0, 10, 100_000, 1 << 62])
def test_reserved_columns_hold_more_and_fewer_numbers_than_expected(count: int) -> None:
    """The expected length is that of a file's footer, which may be wrong or absurd."""
    column, numbers = pieces.Reserved(np.int32, count), np.arange(50_000, dtype=np.int64)
    column.extend(numbers[:0])
    column.extend(numbers[:10])
    column.extend(numbers[10:])
    assert column.array().tolist() == numbers.tolist()
    assert column.array().dtype == np.int32


def test_an_operation_is_stored_once(histories: Any) -> None:
    """An operation is stored once, and the columns of its records are made from it."""
    tables = histories.tables(TEXT)
    for rows in (tables.sends, tables.polls):
        whole = rows.where(np.arange(len(rows)))
        for name in whole._fields:
            assert getattr(rows, name).tolist() == getattr(whole, name).tolist()
        some = np.arange(len(rows)) % 2 == 0
        assert rows.only(some).op.tolist() == whole.op[some].tolist()
