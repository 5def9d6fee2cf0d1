"""Shows what was read of a list as a table, and where versions contradict each other."""

from dataclasses import dataclass

from checkers.isolation.findings import ReadTable, ReadVersion
from harness.app.objects_page.cycle_drawing import shortened

ELEMENT_MAX = 12
"""Number of letters of an element."""


@dataclass(frozen=True)
class Cell:
    """An element of a version."""

    text: str
    differs: bool
    """Whether the longest version has another element here."""
    is_first: bool = False
    """Whether it is the first element of its version that differs."""


@dataclass(frozen=True)
class Row:
    """A version."""

    event: int
    transactions: int
    length: int
    cells: list[Cell]
    is_longest: bool
    repeats: bool

    @property
    def differs(self) -> bool:
        """Whether the version contradicts the longest one in a column of the table."""
        return any(cell.differs for cell in self.cells)


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
    rows = []
    for each in reads.rows:
        cells = _cells(each, reads)
        is_longest = each.length == reads.length and not any(cell.differs for cell in cells)
        rows.append(
            Row(each.event, each.transactions, each.length, cells, is_longest, each.repeats)
        )
    columns = max([len(reads.longest), *(len(row.cells) for row in rows)])
    positions = list(range(reads.first + 1, reads.first + columns + 1))
    return Table(str(reads.key), positions, rows, _notes(reads, columns))


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
