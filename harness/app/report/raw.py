"""Raw events: the lines of ``history.jsonl`` that the page quotes, each with an anchor."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harness.app.report.columns import Columns
from harness.app.report.findings import FindingRow
from model.finding import Finding

EVENTS = 100
"""The number of lines that a page quotes; the others are in ``history.jsonl``."""
CHARACTERS = 1600
"""The number of characters quoted of a line; a poll may deliver thousands of records."""
HEAD = 240
"""The number of characters from the start of a longer line: index, time and process."""


class Part(NamedTuple):
    """A part of a line."""

    text: str
    is_hit: bool = False
    """True if this is the record that the finding is about."""
    begins: bool = False
    """True if characters before this part are not quoted."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """A line of the history."""

    index: int
    file: str
    """The name of the file, one of the history's segments."""
    line: int
    """The number of the line in the file, from 1."""
    time_ns: int
    parts: tuple["Part", ...]
    """The line, or the parts of it that are quoted."""
    left: int
    """The number of characters that are not quoted."""
    number: int
    """The number on the page of the first finding that this event witnesses."""


def quote(columns: Columns, shown: Iterable[FindingRow]) -> list[RawEvent]:
    """Return the witnesses of these findings in the order of the history.

    At most :data:`EVENTS` are returned; the first findings take precedence.
    """
    wanted: dict[int, FindingRow] = {}
    for each in shown:
        for witness in each.witnesses:
            row = columns.row_of(witness.index)
            if row is not None:
                wanted.setdefault(row, each)
        if len(wanted) >= EVENTS:
            break
    return [_event(columns, row, wanted[row]) for row in sorted(list(wanted)[:EVENTS])]


def _event(columns: Columns, row: int, shown: FindingRow) -> RawEvent:
    text = columns.text(row)
    parts = stretches(text, shown.finding)
    return RawEvent(
        index=int(columns.index[row]),
        file=columns.path(row).name,
        line=int(columns.line[row]),
        time_ns=int(columns.time_ns[row]),
        parts=parts,
        left=len(text) - sum(len(part.text) for part in parts),
        number=shown.number,
    )


def hit(text: str, finding: Finding) -> tuple[int, int] | None:
    """Return the position of the finding's record in a line.

    The search is by offset and value, else by offset, else by value, and starts after the name of
    the partition if the line contains it.
    """
    begin = max(0, text.find(f'"{finding.key}"')) if finding.key else 0
    offset, value = finding.offset, finding.value
    wanted = []
    if offset is not None and value is not None:
        wanted.append(rf"\[{offset},{value}\]")
    if offset is not None:
        wanted.append(rf"\[{offset},[^\[\]]*\]")
    if value is not None:
        wanted.append(rf"(?<![\d.-]){value}(?![\d.])")
    for form in wanted:
        found = re.compile(form).search(text, begin)
        if found is not None:
            return found.span()
    return None


def stretches(text: str, finding: Finding) -> tuple[Part, ...]:
    """Return the whole line; of a long one its beginning and the surroundings of the record."""
    found = hit(text, finding)
    if len(text) <= CHARACTERS:
        return _split(text, 0, found)
    around = CHARACTERS - HEAD
    middle = 0 if found is None else found[0]
    begin = min(middle - around // 2, len(text) - around)
    if begin <= HEAD:
        return _split(text[:CHARACTERS], 0, found)
    return (Part(text[:HEAD]), *_split(text[begin : begin + around], begin, found))


def _split(stretch: str, begin: int, found: tuple[int, int] | None) -> tuple[Part, ...]:
    """Split a stretch that begins at this position of its line around the finding's record."""
    start, end = (0, 0) if found is None else (found[0] - begin, found[1] - begin)
    if not 0 <= start < end <= len(stretch):
        return (Part(stretch, begins=begin > 0),)
    return (
        Part(stretch[:start], begins=begin > 0),
        Part(stretch[start:end], is_hit=True),
        Part(stretch[end:]),
    )
