"""Renders drawings as SVG: within a page, or as files of their own."""

import re
from collections.abc import Iterator
from pathlib import Path

import jinja2

from checkers.objects import Judged
from harness.app.objects_page import sections
from harness.app.objects_page.cycle_drawing import Drawing
from harness.app.objects_page.timeline import Timeline
from harness.app.report import sheet

HERE = Path(__file__).parent
NAME_MAX = 60
"""Number of letters of a key in the name of a file."""


def environment() -> jinja2.Environment:
    """Return an environment for the templates of pages and drawings."""
    made = sheet.environment([HERE])
    made.filters["pixels"] = pixels
    return made


def pixels(length: float) -> str:
    """Return a length with at most one digit after the point."""
    return f"{length:.1f}".removesuffix(".0")


def write(folder: Path, judged: Judged) -> list[Path]:
    """Write each drawing about a judgement into a folder, which is made, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    template = environment().get_template("picture.svg")
    style = sheet.style("drawing.css", beside=HERE)
    found = []
    for name, label, drawing in _drawings(judged):
        kind = "cycle" if isinstance(drawing, Drawing) else "timeline"
        svg = template.render(kind=kind, drawing=drawing, label=label, style=style)
        found.append(sheet.write(folder / f"{name}.svg", f"{svg.strip()}\n"))
    return found


def _drawings(judged: Judged) -> Iterator[tuple[str, str, Drawing | Timeline]]:
    """Yield each drawing with the name of its file and its title."""
    for anomaly in sections.anomalies(judged.result):
        for one in anomaly.explained:
            if one.drawing is not None:
                yield file_name(one.title), f"{one.title}: a cycle of transactions", one.drawing
    used: set[str] = set()
    for section in sections.keys(judged):
        if section.timeline is not None:
            name = "timeline" if section.name is None else f"{file_name(section.name)}-timeline"
            unique, number = name, 1
            while unique in used:
                number += 1
                unique = f"{name}-{number}"
            used.add(unique)
            yield unique, f"Operations of {section.title}", section.timeline


def file_name(text: str) -> str:
    """Return a text as a part of the name of a file: letters, digits, points, dashes."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:NAME_MAX] or "key"
