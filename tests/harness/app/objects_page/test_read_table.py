"""The table of lists marks where each one differs from the longest one."""

from checkers import objects
from checkers.isolation.findings import ReadTable, ReadVersion
from harness.app.objects_page import read_table
from tests.checkers.test_aggregates import done, events


def test_lists_that_differ() -> None:
    """Only the first difference of a list is marked as such, and short lists have empty cells."""
    said = [each for n in (1, 2, 3) for each in done("txn", [["append", "x", n]])]
    for versions in ([1, 2, 3], [2, 1], [1]):
        said += done("txn", [["r", "x", None]], [["r", "x", versions]])
    result = objects.judged(events(*said), "list-append").result
    assert result is not None
    (found,) = result.anomalies["incompatible-order"]
    assert found.reads is not None
    table = read_table.of(found.reads)
    assert (table.key, table.positions, table.notes) == ("x", [1, 2, 3], [])
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["1", "2", "3"],
        ["2", "1", ""],
        ["1", "", ""],
    ]
    assert [row.is_longest for row in table.rows] == [True, False, False]
    assert [cell.differs for cell in table.rows[1].cells] == [True, True, False]
    assert [cell.is_first for cell in table.rows[1].cells] == [True, False, False]
    assert not any(cell.differs for cell in table.rows[2].cells)


def test_what_is_left_out_is_named() -> None:
    """Notes count the versions and positions that are not shown, and mention repeated elements."""
    rows = (ReadVersion(5, 2, 40, (7, None)), ReadVersion(6, 1, 12, (7, 8), repeats=True))
    table = read_table.of(ReadTable("k" * 300, 10, (7, 8), 40, rows, left_out=1234))
    assert table.positions == [11, 12]
    assert table.rows[0].cells[1].text == "nil"
    assert len(table.key) < 110
    assert [note.split(" ", 2)[:2] for note in table.notes] == [
        ["1,234", "other"],
        ["Positions", "11"],
        ["Of", "reads"],
    ]
