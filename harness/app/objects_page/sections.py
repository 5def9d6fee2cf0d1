"""Selects what the page about a history shows: anomalies of transactions, or keys without order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.isolation import Found, Result
from checkers.linearizability import explanation
from checkers.objects import Judged
from harness.app.objects_page import cycle_drawing, read_table, timeline
from harness.app.objects_page.cycle_drawing import Drawing
from harness.app.objects_page.read_table import Table
from harness.app.objects_page.timeline import Timeline

KEYS = 10
"""How many keys have a section."""
EXPLAINED = 5
"""How many anomalies of each kind are explained."""


@dataclass(frozen=True)
class Explained:
    """An anomaly of transactions."""

    title: str
    transactions: list[str]
    """What each of its transactions did."""
    argument: list[str]
    drawing: Drawing | None
    """Its cycle, if it is one."""
    table: Table | None
    """What was read of the key, if reads contradict each other."""
    notes: list[str]


@dataclass(frozen=True)
class Anomaly:
    """All anomalies of a kind."""

    name: str
    count: int
    explained: list[Explained]


@dataclass(frozen=True)
class Section:
    """A key whose operations have no order."""

    title: str
    name: str | None
    """The key; ``None`` if the operations have no key."""
    why: list[str]
    timeline: Timeline | None


def anomalies(result: Result | None) -> list[Anomaly]:
    """Return the anomalies of transactions, the most severe kind first."""
    if result is None:
        return []
    return [
        Anomaly(name, result.counts.get(name, len(found)), list(_explained(name, found)))
        for name in result.anomaly_types
        if (found := result.anomalies.get(name, ())) or result.counts.get(name)
    ]


def _explained(name: str, found: Sequence[Found]) -> Iterator[Explained]:
    with_table: dict[str, str] = {}
    for number, each in enumerate(found[:EXPLAINED], 1):
        title = f"{name} {number}"
        named = zip(each.events, each.descriptions, strict=True)
        table = None if each.reads is None else read_table.of(each.reads)
        notes = []
        if table is not None and with_table.setdefault(table.key, title) != title:
            notes.append(f"The reads of {table.key} are in the table of {with_table[table.key]}.")
            table = None
        drawing = cycle_drawing.of(each)
        if each.steps and drawing is None:
            notes.append("The cycle is too long for a drawing.")
        yield Explained(
            title,
            [f"T{at} = {what} (event {event})" for at, (event, what) in enumerate(named, 1)],
            each.argument(),
            drawing,
            table,
            notes,
        )


def keys(judged: Judged) -> list[Section]:
    """Return the keys whose operations have no order."""
    illegal = [] if judged.judgement is None else judged.judgement.illegal
    return [
        Section(
            "The operations" if part.key is None else f"Key {explanation.name_of(part.key)}",
            None if part.key is None else explanation.name_of(part.key),
            list(explanation.sentences(part)),
            None if judged.model is None else timeline.of(part, judged.model),
        )
        for part in illegal[:KEYS]
    ]
