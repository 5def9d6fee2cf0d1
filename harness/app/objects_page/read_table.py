"""Shows what was read of a list as a table, and marks where versions differ from the longest."""

from dataclasses import dataclass

from checkers.isolation.findings import ReadTable, ReadVersion
from harness.app.objects_page.cycle_drawing import shortened
from model.text import brief

ELEMENT_MAX = 12
"""Number of letters of an element."""


@dataclass(frozen=True)
class Cell:
    """An element of a version, or the empty place after its last one."""

    text: str
    differs: bool = False
    """Whether the longest version has another element here."""
    is_first: bool = False
    """Whether it is the first element of its version that differs."""


@dataclass(frozen=True)
class Row:
    """A version."""

    event: int
    """The event that ended the first transaction that read it."""
    transactions: int
    """How many transactions read it."""
    cells: list[Cell]
    is_longest: bool


@dataclass(frozen=True)
class Table:
    """The versions of a key."""

    key: str
    positions: list[int]
    """The number of each column, from 1."""
    rows: list[Row]
    notes: list[str]
    """What the table does not show."""


def of(reads: ReadTable) -> Table:
    """Return the table of a key."""
    columns = max([len(reads.longest), *(len(each.elements) for each in reads.rows)])
    positions = list(range(reads.first + 1, reads.first + columns + 1))
    rows = [_row(each, reads, columns) for each in reads.rows]
    return Table(brief(reads.key), positions, rows, _notes(reads, columns))


def _row(version: ReadVersion, reads: ReadTable, columns: int) -> Row:
    cells = _cells(version, reads)
    is_longest = version.length == reads.length and not any(cell.differs for cell in cells)
    empty = [Cell("")] * (columns - len(cells))
    return Row(version.event, version.transactions, [*cells, *empty], is_longest)


def _cells(version: ReadVersion, reads: ReadTable) -> list[Cell]:
    cells: list[Cell] = []
    is_same = True
    for at, element in enumerate(version.elements):
        differs = at >= len(reads.longest) or element != reads.longest[at]
        text = "nil" if element is None else str(element)
        cells.append(Cell(shortened(text, ELEMENT_MAX), differs, differs and is_same))
        is_same = is_same and not differs
    return cells


def _notes(reads: ReadTable, columns: int) -> list[str]:
    found = []
    if reads.left_out:
        found.append(f"{reads.left_out:,} other versions are not shown.")
    if columns < reads.length:
        last = reads.first + columns
        found.append(
            f"Positions {reads.first + 1:,} to {last:,} of {reads.length:,} are shown, around the"
            " first one that two versions disagree about."
        )
    if any(row.repeats for row in reads.rows):
        found.append("Of reads that list an element more than once, each element is shown once.")
    return found
