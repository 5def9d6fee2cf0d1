"""Renders drawings as SVG: within a page, or as files of their own."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from checkers.objects import Judged
from harness.app.objects_page import sections
from harness.app.objects_page.cycle_drawing import PROSE, Drawing
from harness.app.objects_page.timeline import Timeline
from harness.app.report import sheet

HERE = Path(__file__).parent
NAME_MAX = 40
"""Number of letters of a key in the name of a file."""
CAPTION_LINE, MARGIN = 16.0, 14.0
"""Pixels: the height of a line of a caption, and the space around it."""


@dataclass(frozen=True)
class Picture:
    """What a drawing has in addition as a file of its own."""

    style: Markup
    caption: list[str]
    """Why the marked operation has no place in any order."""

    @property
    def height(self) -> float:
        """How many pixels the caption takes."""
        return CAPTION_LINE * len(self.caption) + MARGIN if self.caption else 0.0


def environment() -> jinja2.Environment:
    """Return an environment for the templates of pages and drawings."""
    made = sheet.environment([HERE])
    made.filters["pixels"] = pixels
    return made


def pixels(length: float) -> str:
    """Return a length with at most one digit after the point."""
    return f"{length:.1f}".removesuffix(".0")


def write(folder: Path, history: str, judged: Judged) -> list[Path]:
    """Write each drawing about a judgement into a folder, and return the files.

    Their names begin with that of the history, so that one folder can have those of several.
    """
    template = environment().get_template("picture.svg")
    style = sheet.style("drawing.css", "picture.css", beside=HERE)
    found = []
    for name, label, drawing in _drawings(judged):
        kind = "cycle" if isinstance(drawing, Drawing) else "timeline"
        picture = Picture(style, _caption(drawing))
        svg = template.render(kind=kind, drawing=drawing, label=label, picture=picture)
        path = folder / f"{file_name(history)}-{name}.svg"
        found.append(sheet.write(path, f"{svg.strip()}\n"))
    return found


def _drawings(judged: Judged) -> Iterator[tuple[str, str, Drawing | Timeline]]:
    """Yield each drawing with the name of its file and its title."""
    for anomaly in sections.anomalies(judged.result):
        for one in anomaly.explained:
            if one.drawing is not None:
                yield file_name(one.title), f"{one.title}: a cycle of transactions", one.drawing
    used: set[str] = set()
    for number, section in enumerate(sections.keys(judged), 1):
        if section.timeline is not None:
            name = "operations" if section.name is None else f"key-{file_name(section.name)}"
            while name in used:  # another key has the same letters
                name += f"-{number}"
            used.add(name)
            yield name, section.label, section.timeline


def _caption(drawing: Drawing | Timeline) -> list[str]:
    """Return the lines below a drawing; the steps of a cycle have their reasons at their sides."""
    if isinstance(drawing, Drawing):
        return []
    letters = int((drawing.width - 2 * MARGIN) / PROSE)
    return [line for text in drawing.first for line in textwrap.wrap(text, letters)]


def file_name(text: str) -> str:
    """Return a text as a part of the name of a file: letters, digits, points and dashes."""
    return re.sub(r"[^\w.-]+", "-", text)[:NAME_MAX].strip("-.") or "unnamed"
