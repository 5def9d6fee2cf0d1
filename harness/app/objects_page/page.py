"""Renders the page of a judgement: one section for each key that is not linearizable."""

from dataclasses import dataclass
from pathlib import Path

from checkers.linearizability import explanation
from checkers.objects import Judged
from harness.app.objects_page import timeline
from harness.app.objects_page.timeline import Timeline
from harness.app.report import sheet

HERE = Path(__file__).parent
SHOWN = 10
"""How many keys have a section."""


@dataclass(frozen=True)
class Section:
    """A key."""

    title: str
    why: list[str]
    timeline: Timeline | None

    @property
    def first(self) -> str:
        """What is said before an operation is chosen: why the blocked one is illegal."""
        bars = [] if self.timeline is None else self.timeline.bars
        return next((bar.says for bar in bars if bar.look == "blocked"), "")


def render(path: Path, title: str, judged: Judged) -> Path:
    """Write the page about a judgement and return its path."""
    judgement, verdict = judged.judgement, judged.verdict
    parts = [] if judgement is None else judgement.illegal[:SHOWN]
    sections = [
        Section(
            "The operations" if part.key is None else f"Key {explanation.name_of(part.key)}",
            list(explanation.sentences(part)),
            None if judged.model is None else timeline.of(part, judged.model),
        )
        for part in parts
    ]
    html = (
        sheet.environment([HERE])
        .get_template("objects.html")
        .render(
            word={True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[verdict.valid],
            title=title,
            verdict=verdict,
            consistency=judged.consistency,
            sections=sections,
            style=sheet.style("page.css", "objects.css", beside=HERE),
        )
    )
    return sheet.write(path, html)
