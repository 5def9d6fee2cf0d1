"""Row groups are joined into the same table that Arrow would make of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import row_groups
from checkers.pieces import SCHEMA


def event(index: int) -> dict[str, object]:
    """Return an event; several in a row have nulls, empty lists, and new names in all places."""
    number = index // 7
    records = None
    if index % 3:
        records = [
            {"key": f"k{(index + n) % (number + 2)}", "offset": None if n else n, "value": n}
            for n in range(index % 4)
        ]
    micro_op = {
        "op": f"op{number % 3}",
        "key": None if index % 5 == 0 else f"k{index % (number + 2)}",
        "offset": -1 if index % 2 else None,
        "value": index if index % 4 else None,
        "records": records,
        "name": f"group{index}" if index > 20 else None,
    }
    return {
        "index": index,
        "time_ns": index * 10,
        "process": index % 3,
        "type": ("ok", "invoke")[index % 2],
        "f": f"f{number}",
        "value": None if index % 6 == 0 else [micro_op] * (index % 3),
        "detail": f"détail {index}" if index % 8 == 7 else None,
        "error": None if index < 30 else f"error{index % 2}",
    }


EVENTS = pa.Table.from_pylist([event(index) for index in range(60)], schema=SCHEMA)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 7, 25, 60])
def test_groups_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, threads: int
) -> None:
    """The table is that of Arrow, also for groups that are read in batches."""
    path = tmp_path / "history.parquet"
    pq.write_table(EVENTS, path, row_group_size=size)
    groups = range(pq.ParquetFile(path).num_row_groups)
    for rows in (row_groups.BATCH_ROWS, 4):
        monkeypatch.setattr(row_groups, "BATCH_ROWS", rows)
        found = row_groups.joined(path, groups, SCHEMA, lambda part: part, threads)
        found.validate(full=True)
        assert found.to_pylist() == EVENTS.to_pylist()
        assert all(column.num_chunks == 1 for column in found.columns)


def test_names_have_codes_in_the_order_of_the_file(tmp_path: Path) -> None:
    """The dictionary of a nested column has each name once, in the order in which groups have it,
    like the dictionary that Arrow makes."""
    path = tmp_path / "history.parquet"
    pq.write_table(EVENTS, path, row_group_size=7)
    file = pq.ParquetFile(path)
    groups = range(file.num_row_groups)
    found = row_groups.joined(path, groups, SCHEMA, lambda part: part, 2)
    tables = [file.read_row_group(group) for group in groups]
    theirs = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    assert found.equals(theirs)
    for name in ("op", "key", "name"):
        ours, other = (each["value"].chunk(0).values.field(name) for each in (found, theirs))
        assert ours.dictionary.equals(other.dictionary)


def test_a_part_of_a_file_is_read(tmp_path: Path) -> None:
    """Some groups of a file are read, or none."""
    path = tmp_path / "history.parquet"
    pq.write_table(EVENTS, path, row_group_size=10)
    some = row_groups.joined(path, range(2, 4), SCHEMA, lambda part: part, 1)
    assert some["index"].to_pylist() == list(range(20, 40))
    none = row_groups.joined(path, range(0), SCHEMA, lambda part: part, 2)
    assert none.num_rows == 0
    none.validate(full=True)
    assert none.schema == SCHEMA


def test_slices_are_appended(tmp_path: Path) -> None:
    """A part that is a slice of a larger table, also within its lists, is appended as it is."""
    path = tmp_path / "history.parquet"
    pq.write_table(EVENTS, path, row_group_size=60)
    found = row_groups.joined(path, range(1), SCHEMA, lambda part: part.slice(13, 30), 1)
    assert found.to_pylist() == EVENTS.slice(13, 30).to_pylist()


def test_the_footer_says_how_long_columns_are(tmp_path: Path) -> None:
    """The counts are never below the numbers of values, for the wanted groups alone; the elements
    of lists may have any name."""
    path = tmp_path / "history.parquet"
    for compliant in (True, False):
        pq.write_table(EVENTS, path, row_group_size=25, use_compliant_nested_type=compliant)
        counts = row_groups._Counts(pq.read_metadata(path), range(1, 3))
        part = EVENTS.slice(25).combine_chunks()
        micro_ops = part["value"].chunk(0).flatten()
        inner = counts.element("value")
        assert counts.rows == 35
        assert len(micro_ops) <= counts.within(inner) <= len(micro_ops) + 35
        records = counts.element(f"{inner}.records")
        assert counts.within(records) >= len(micro_ops.field("records").flatten())
    assert counts.within("value.of.another.writer") == 0


def test_columns_without_values_are_null(tmp_path: Path) -> None:
    """A column of texts or names is null until its first value, in whichever group that is."""
    path = tmp_path / "history.parquet"
    pq.write_table(EVENTS, path, row_group_size=6)
    for end in (1, 2, 10):
        found = row_groups.joined(path, range(end), SCHEMA, lambda part: part, 1)
        found.validate(full=True)
        assert found.to_pylist() == EVENTS.slice(0, 6 * end).to_pylist()
    first = row_groups.joined(path, range(1), SCHEMA, lambda part: part, 1)
    for name in ("detail", "error"):
        assert first[name].null_count == 6
        assert first.schema.field(name).type == first[name].type
