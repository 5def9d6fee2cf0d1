"""The table of reads marks where versions contradict the longest one."""

from checkers import isolation
from checkers.isolation.findings import ReadTable, ReadVersion
from harness.app.objects_page import read_table
from tests.checkers.isolation.histories import history


def test_differences_are_marked() -> None:
    """The first difference of each version is marked, and all after it."""
    lines = ["x+1", "x+2", "x+3", "x=1", "x=1,2,3", "x=1,3,2"]
    found = isolation.judge(history(*lines)).anomalies["incompatible-order"][0]
    assert found.reads is not None
    table = read_table.of(found.reads)
    assert table.positions == [1, 2, 3]
    assert [(row.is_longest, row.differs) for row in table.rows] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    cells = [(cell.text, cell.differs, cell.is_first) for cell in table.rows[2].cells]
    assert cells == [("1", False, False), ("3", True, True), ("2", True, False)]
    assert table.notes == []


def test_what_is_not_shown_is_noted() -> None:
    """Columns and versions that are left out, and repeated elements, have a sentence."""
    version = ReadVersion(7, 2, 90, (None, "v" * 40), repeats=True)
    table = read_table.of(ReadTable("k", 20, (None, "a"), 90, (version,), left_out=3))
    assert [cell.text for cell in table.rows[0].cells] == ["nil", "v" * 11 + "…"]
    assert table.notes == [
        "3 other versions are not shown.",
        "Positions 21 to 22 of 90 are shown, around the first one that two versions disagree"
        " about.",
        "Of reads that list an element more than once, each element is shown once.",
    ]
