"""Renders the page of a judgement, with a section for each anomaly and each illegal key."""

from pathlib import Path

from checkers.objects import Judged
from harness.app.objects_page import drawings, sections
from harness.app.objects_page.cycle_drawing import MEANINGS
from harness.app.report import sheet

HERE = Path(__file__).parent


def render(path: Path, title: str, judged: Judged) -> Path:
    """Write the page about a judgement and return its path."""
    verdict = judged.verdict
    html = (
        drawings.environment()
        .get_template("objects.html")
        .render(
            word={True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[verdict.valid],
            title=title,
            verdict=verdict,
            consistency=judged.consistency,
            is_transactional=judged.result is not None,
            anomalies=sections.anomalies(judged.result),
            sections=sections.keys(judged),
            meanings=MEANINGS,
            style=sheet.style("page.css", "drawing.css", "objects.css", beside=HERE),
        )
    )
    return sheet.write(path, html)
