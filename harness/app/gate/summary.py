"""Writes a gate as a page in GitHub's Markdown, for the summary of a CI job."""

import html
import re
from pathlib import Path

from harness.app.gate import console, side_by_side
from harness.app.gate.outcome import Case, Gate, by_urgency

_MARKS = {"valid": "✅", "invalid": "❌", "unknown": "❔", "failed": "💥", "skipped": "⏭️"}
_WORDS = {True: "✅ valid", False: "❌ invalid", "unknown": "❔ unknown"}
_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
WHY_MAX = 3
"""The number of sentences shown for a case; the others are in its folder."""


def markdown(gate: Gate, folder: Path) -> str:
    """Return the verdict, the cases that need attention, and a table of all cases."""
    lines = [f"## Faultline gate {_text(console.headline(gate))}: {_WORDS[gate.valid]}", ""]
    cases = by_urgency(gate.cases)
    for case in cases:
        if case.status in ("invalid", "failed", "unknown"):
            lines += _case_lines(case, folder)
    lines += [f"| | case | {' | '.join(console.COLUMNS)} |"]
    lines += ["|---|---|" + "---:|" * len(console.COLUMNS)]
    lines += [
        f"| {_MARKS[case.status]} {case.status} | {_text(case.name)}"
        f" | {' | '.join(console.figures(case))} |"
        for case in cases
    ]
    lines += _systems(gate)
    skipped = sorted({why for case in cases if case.status == "skipped" for why in case.why})
    lines += ["", *(f"Skipped: {_text(why)}" for why in skipped)]
    return "\n".join(lines).rstrip() + "\n"


def _systems(gate: Gate) -> list[str]:
    """Return the table that compares the systems of a gate; empty if there is only one."""
    comparison = side_by_side.compare(gate)
    if comparison is None:
        return []
    first, *rows = (f"| {' | '.join(map(_text, row))} |" for row in side_by_side.table(comparison))
    return ["", first, "|---|" + "---:|" * (len(side_by_side.FIGURES) + 1), *rows]


def _case_lines(case: Case, folder: Path) -> list[str]:
    lines = [f"**{_MARKS[case.status]} {_text(case.name)}**", ""]
    lines += [f"- {_text(why)}" for why in case.why[:WHY_MAX]]
    if (more := len(case.why) - WHY_MAX) > 0:
        lines.append(f"- … and {more} more")
    if (again := console.replay(case, folder)) is not None:
        lines.append(f"- repeat: `{again}`")
    return [*lines, ""]


def _text(text: str) -> str:
    """Escape Markdown and HTML: the text may contain parts of histories and logs."""
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
