"""Findings: anomalies with the transactions that show them, and the argument in words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

SHOWN_MAX = 100
"""Number of findings of one anomaly that are kept; all are counted."""


@dataclass(frozen=True)
class Step:
    """An edge of a cycle: one transaction precedes another one."""

    source: int
    """The event that ended the earlier transaction."""
    target: int
    """The event that ended the later one."""
    kind: str
    """ww, wr, rw, wwp, wrp, rwp (the last three by a predicate), process or realtime."""
    key: Any = None
    value: Any = None
    """The version that was written or read first; ``None`` for the initial version."""
    next_value: Any = None
    """The version that follows it, in ww and rw."""
    why: str = ""
    """Why the earlier one precedes the later one; names them T1, T2, … of the argument."""
    source_at: int | None = None
    """Which micro-operation of the earlier transaction shows it, if it is one."""
    target_at: int | None = None
    """Which micro-operation of the later transaction shows it, if it is one."""


@dataclass(frozen=True)
class ReadVersion:
    """A list that transactions read, in a table."""

    event: int
    """The event that ended the first of these transactions."""
    transactions: int
    """How many transactions read it."""
    length: int
    elements: tuple[Any, ...]
    """Its elements in the columns of the table."""
    repeats: bool = False
    """Whether the reads list an element more than once. Each is in the table once."""


@dataclass(frozen=True)
class ReadTable:
    """The versions of a list that were read, in the order of their first reads."""

    key: Any
    first: int
    """The position in the list of the first column."""
    longest: tuple[Any, ...]
    """The elements of the longest version in the columns."""
    length: int
    """The length of the longest version."""
    rows: tuple[ReadVersion, ...]
    left_out: int = 0
    """How many versions have no row."""


@dataclass(frozen=True)
class Found:
    """An anomaly and its witnesses."""

    anomaly: str
    events: tuple[int, ...]
    """The events that ended the transactions T1, T2, … of the argument."""
    descriptions: tuple[str, ...]
    """What each of these transactions did."""
    why: str
    """The argument, which names the transactions T1, T2, …"""
    steps: tuple[Step, ...] = ()
    """The edges of the cycle, if it is one."""
    key: Any = None
    values: tuple[Any, ...] = ()
    """The elements or versions that the argument is about."""
    micro_ops: tuple[tuple[str, ...], ...] = ()
    """The micro-operations of each transaction, as texts."""
    reads: ReadTable | None = None
    """What was read of the key, if its versions contradict each other."""

    def text(self) -> str:
        """Return the whole explanation: the transactions and the argument."""
        named = zip(self.events, self.descriptions, strict=True)
        parts = [f"T{n} = {what} (event {event})" for n, (event, what) in enumerate(named, 1)]
        return f"Let {', '.join(parts)}. {self.why}" if parts else self.why

    def argument(self) -> list[str]:
        """Return the argument as lines: one for each step of a cycle."""
        if not self.steps:
            return [self.why]
        return step_lines([step.why for step in self.steps])


def step_lines(reasons: Sequence[str]) -> list[str]:
    """Return a line for each step of a cycle over T1, T2, …; the last one is the contradiction."""
    count = len(reasons)
    lines = [
        f"T{at} precedes T{at % count + 1}, because {reason}"
        for at, reason in enumerate(reasons, 1)
    ]
    return [*(f"{line}." for line in lines[:-1]), f"However, {lines[-1]}: a contradiction."]


@dataclass
class Findings:
    """Collects findings: the first of each anomaly, and how many there are."""

    shown: dict[str, list[Found]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, anomaly: str, number: int) -> None:
        """Count findings of an anomaly that are not added, perhaps none."""
        if number:
            self.counts[anomaly] = self.counts.get(anomaly, 0) + number
            self.shown.setdefault(anomaly, [])

    def add(self, found: Found) -> None:
        """Add a finding."""
        self.count(found.anomaly, 1)
        if len(self.shown[found.anomaly]) < SHOWN_MAX:
            self.shown[found.anomaly].append(found)

    def add_rows(self, anomaly: str, rows: Sequence[int], finding: Callable[[int], Found]) -> None:
        """Add a finding for each row, but describe only the first ones."""
        for row in rows[:SHOWN_MAX]:
            self.add(finding(row))
        self.count(anomaly, len(rows) - SHOWN_MAX if len(rows) > SHOWN_MAX else 0)

    def merge(self, other: "Findings") -> None:
        """Add all findings of another collection."""
        for anomaly, number in other.counts.items():
            shown = other.shown[anomaly]
            for found in shown:
                self.add(found)
            self.count(anomaly, number - len(shown))


@dataclass(frozen=True)
class Result:
    """What a history shows about its isolation."""

    valid: bool | Literal["unknown"]
    """False if a prohibited anomaly was found. True means that none was found, not that the history
    satisfies the model: some models cannot be decided by such a search."""
    anomaly_types: tuple[str, ...]
    """The reported anomalies, the most severe first; ``empty-transaction-graph`` is one of them."""
    anomalies: Mapping[str, Sequence[Found]]
    """The first findings of each reported anomaly."""
    counts: Mapping[str, int]
    """How many findings there are of each reported anomaly."""
    allowed: Mapping[str, int]
    """How many findings there are of each anomaly that the options do not prohibit."""
    ruled_out: tuple[str, ...]
    """The weakest consistency models that the found anomalies rule out, allowed ones included."""
    also_ruled_out: tuple[str, ...]
    """All other models that they rule out."""
    unknown_because: tuple[str, ...]
    """Why the history, or a part of the search, could not be judged."""
    transactions: int
    """How many transactions were judged."""


def listed(parts: Iterable[str]) -> str:
    """Join parts of a sentence: ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
