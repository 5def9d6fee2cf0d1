"""Summarises the warnings and errors in the nodes' logs: when they were logged, and of which kinds.

A log may have a hundred thousand warnings, so the page shows a limited number of marks and kinds.
Two lines are of the same kind if they differ only in numbers and ids.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.app import log_lines
from harness.app.log_lines import Level
from harness.app.report import sheet
from harness.app.report.node_logs import NodeLog
from harness.app.run_start import RunStart

BINS = 400
"""The number of equal parts of the run's time in which lines of one level become one mark."""
MARKS = 200
"""The maximum number of marks for one node; with more, the bins become larger."""
KINDS = 8
"""The number of kinds that the page shows for one node: the most serious and frequent ones."""
KINDS_COUNTED = 5000
"""The number of kinds of one node that are counted; lines of further kinds share one row."""
CHARACTERS = 240
"""The maximum length of a line in the page."""
OTHER = "lines of other kinds"

_IDS = re.compile(r"\b(?=[\w-]*\d)[\w-]{16,}\b|\b0x[0-9a-fA-F]+\b|@[0-9a-f]{5,8}\b|\d+")
"""What differs between two lines of a kind: long ids, addresses of objects, and numbers."""
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


@dataclass(frozen=True, slots=True)
class LogMark:
    """The lines of one level in one bin of the time axis."""

    node: str
    level: Level
    seconds: float
    """The time of the first of them."""
    count: int
    text: str
    """The first of them."""
    link: str
    """The link to the log."""


@dataclass(slots=True)
class LogKind:
    """All lines of a node that have one level and the same text, apart from numbers and ids."""

    level: Level
    sample: str
    """The first of them."""
    number: int
    """The number of that line in the log, from 1."""
    first_ns: int
    last_ns: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class NodeWarnings:
    """The warnings and errors of one node."""

    node: str
    link: str
    total: int
    marks: list[LogMark]
    kinds: list[LogKind]
    """The kinds to show."""
    kinds_left: int
    """The number of kinds that are not shown."""
    lines_left: int
    """The number of lines of those kinds."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    level: Level
    time_ns: int
    text: str


@dataclass(slots=True)
class _Bin:
    """The lines of one level in one part of the run's time: the first of them, and their number."""

    first_ns: int
    text: str
    count: int = 0

    def add(self, first_ns: int, text: str, count: int) -> None:
        if first_ns < self.first_ns:
            self.first_ns, self.text = first_ns, text
        self.count += count


_Bins = dict[tuple[Level, int], _Bin]


def of(logs: Sequence[NodeLog], start: RunStart | None, end_ns: int) -> list[NodeWarnings]:
    """Return the warnings of each node that has some; none if the start of the run is unknown.

    Marks are between second 0 and ``end_ns``; kinds also count the lines from before and after.
    """
    if start is None:
        return []
    start_ns = log_lines.epoch_ns(start.started)
    found = (_of_log(log, start_ns, max(end_ns, 1)) for log in logs)
    return [each for each in found if each.total]


def kind_text(text: str) -> str:
    """Return what the lines of one kind have in common: the text with numbers and ids removed."""
    return _IDS.sub("#", text)


class _Kinds:
    """Counts the lines of each kind; most lines are recognized by their text without digits."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Level, str], LogKind] = {}
        self._known: dict[str, str] = {}

    def count(self, line: _Line) -> None:
        key = (line.level, self._text(line.text[:CHARACTERS]))
        if key not in self._kinds and len(self._kinds) >= KINDS_COUNTED:
            key = (line.level, OTHER)
        kind = self._kinds.get(key)
        if kind is None:
            sample = OTHER if key[1] == OTHER else line.text
            kind = LogKind(line.level, sample, line.number, line.time_ns, line.time_ns)
            self._kinds[key] = kind
        kind.count += 1
        kind.first_ns = min(kind.first_ns, line.time_ns)
        kind.last_ns = max(kind.last_ns, line.time_ns)

    def ordered(self) -> list[LogKind]:
        """Return all kinds, the most serious and most frequent first."""
        kinds = self._kinds.values()
        return sorted(kinds, key=lambda kind: (-kind.level, -kind.count, kind.first_ns))

    def _text(self, text: str) -> str:
        rough = text.translate(_NO_DIGITS)
        known = self._known.get(rough)
        if known is None:
            known = kind_text(text)
            if len(self._known) < KINDS_COUNTED:
                self._known[rough] = known
        return known


def _lines(log: NodeLog, start_ns: int) -> Iterator[_Line]:
    for number, (_, line) in enumerate(log_lines.lines(log.path), start=1):
        level = log_lines.level(line)
        if level is None:
            continue
        stamp_ns = log_lines.stamp(line)
        if stamp_ns is not None:
            text = log_lines.plain(line.decode(errors="replace").rstrip())
            yield _Line(number, level, stamp_ns - start_ns, text)


def _of_log(log: NodeLog, start_ns: int, end_ns: int) -> NodeWarnings:
    """Read one log; only one line of each kind and of each bin is kept in memory."""
    kinds, bins, total = _Kinds(), _Bins(), 0
    for line in _lines(log, start_ns):
        total += 1
        kinds.count(line)
        if 0 <= line.time_ns <= end_ns:
            place = min(line.time_ns * BINS // end_ns, BINS - 1)
            _add(bins, (line.level, place), line.time_ns, line.text, 1)
    ordered = kinds.ordered()
    left = ordered[KINDS:]
    return NodeWarnings(
        node=log.node,
        link=log.link,
        total=total,
        marks=_marks(log, _limited(bins)),
        kinds=[replace(kind, sample=_shown(kind.sample)) for kind in ordered[:KINDS]],
        kinds_left=len(left),
        lines_left=sum(kind.count for kind in left),
    )


def _add(bins: _Bins, key: tuple[Level, int], first_ns: int, text: str, count: int) -> None:
    if key not in bins:
        bins[key] = _Bin(first_ns, text)
    bins[key].add(first_ns, text, count)


def _limited(bins: _Bins) -> _Bins:
    """Merge pairs of neighbouring bins until the bins are few enough."""
    while len(bins) > MARKS:
        wider = _Bins()
        for (level, place), each in bins.items():
            _add(wider, (level, place // 2), each.first_ns, each.text, each.count)
        bins = wider
    return bins


def _marks(log: NodeLog, bins: _Bins) -> list[LogMark]:
    """Return the marks by level and time."""
    return [
        LogMark(log.node, level, each.first_ns / 1e9, each.count, _shown(each.text), log.link)
        for (level, _), each in sorted(bins.items(), key=lambda item: item[0])
    ]


def _shown(text: str) -> str:
    """Return a line as the page shows it: short, without secrets and invisible characters."""
    shown = sheet.visible(sheet.masked(text))
    return shown if len(shown) <= CHARACTERS else shown[: CHARACTERS - 1] + "…"
