"""Selects what the page about a history shows: anomalies of transactions, or keys without order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.isolation import Found, Result
from checkers.linearizability import explanation, judging
from checkers.linearizability.judging import Budget, Part
from checkers.linearizability.models import Model
from checkers.objects import Judged
from harness.app.objects_page import cycle_drawing, read_table, timeline
from harness.app.objects_page.cycle_drawing import Drawing
from harness.app.objects_page.read_table import Table
from harness.app.objects_page.timeline import Timeline
from model.text import brief

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

    @property
    def label(self) -> str:
        """The title of the drawing."""
        return "Operations" if self.name is None else f"Operations of key {self.name}"


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
        if table is not None and (shown := with_table.setdefault(str(each.key), title)) != title:
            notes.append(f"The reads of {table.key} are in the table of {shown}.")
            table = None
        drawing = cycle_drawing.of(each)
        if each.steps and drawing is None:
            notes.append("The cycle is too long for a drawing.")
        yield Explained(
            title,
            [f"T{at} = {brief(what)} (event {event})" for at, (event, what) in enumerate(named, 1)],
            each.argument(),
            drawing,
            table,
            notes,
        )


def keys(judged: Judged) -> list[Section]:
    """Return the keys whose operations have no order."""
    illegal = [] if judged.judgement is None else judged.judgement.illegal[:KEYS]
    return [_section(part, judged.model) for part in illegal]


def _section(part: Part, model: Model | None) -> Section:
    if model is not None:
        part = _searched(part, model)
    name = None if part.key is None else brief(explanation.name_of(part.key))
    return Section(
        "The operations" if name is None else f"Key {name}",
        name,
        [line[:1].upper() + line[1:] for line in explanation.sentences(part)],
        None if model is None else timeline.of(part, model),
    )


def _searched(part: Part, model: Model) -> Part:
    """Search for the longest order of a key that was not searched, because a monitor has found it
    illegal and another key was searched first."""
    if part.outcome is not None or len(part.operations) > judging.EXPLAINED_OPERATIONS:
        return part
    (again,) = judging.judge(part.operations, model.inner, Budget().for_explanations).parts
    return part._replace(outcome=again.outcome)
