"""Writes a gate as text for a terminal: one line per case, and a table of all cases."""

from collections.abc import Sequence
from pathlib import Path

from harness.app import command_line
from harness.app.gate import side_by_side
from harness.app.gate.outcome import Case, Gate, by_urgency

NOTHING = "—"
COLUMNS = ("seconds", "acked/s", "longest wait", "recovery", "faults proved")


def figures(case: Case) -> tuple[str, ...]:
    """Return the figures in the order of :data:`COLUMNS`; a dash for what was not measured."""
    if case.status == "skipped":
        return (NOTHING,) * len(COLUMNS)
    return (
        f"{case.seconds:.0f} s",
        NOTHING if case.throughput_hz is None else f"{case.throughput_hz:,.0f}",
        _seconds(case.unavailable_s),
        _seconds(case.recovery_s),
        f"{case.faults_proved} of {len(case.faults)}",
    )


def line(case: Case, number: int, planned: int) -> str:
    """Return a progress line: the case that has just ended, and its result."""
    place = f"[{number:{len(str(planned))}}/{planned}]"
    seconds, acked, wait, recovery, proved = figures(case)
    if case.status == "skipped":
        detail = case.why[0]
    else:
        detail = (
            f"{seconds}, {acked} acked/s, longest wait {wait}, recovery {recovery},"
            f" {proved} faults proved"
        )
        detail = " · ".join((detail, *case.why))
    return f"{place} {case.status.upper():8} {case.name} · {detail}"


def headline(gate: Gate) -> str:
    """Return the gate's counts and duration in one line, without its verdict."""
    counts = ", ".join(f"{count} {status}" for status, count in gate.counts().items())
    ended = ", interrupted after" if gate.interrupted else " in"
    return f"{gate.suite}: {counts or 'none'} of {gate.planned} cases{ended} {clock(gate.seconds)}"


def table(gate: Gate, folder: Path) -> str:
    """Return the verdict and a table of all cases, the most urgent first.

    A second table compares the systems if there are several.
    """
    word = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[gate.valid]
    lines = [f"{word:9}{headline(gate)}", f"{'':9}{folder / 'index.html'}", ""]
    cases = by_urgency(gate.cases)
    rows = [("", "", *COLUMNS), *((case.status, case.name, *figures(case)) for case in cases)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for place, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        cells += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        lines.append("  ".join(cells).rstrip())
        if place:
            lines += [f"{'':{widths[0]}}  {detail}" for detail in _below(cases[place - 1], folder)]
    return "\n".join([*lines, *_systems(gate)])


def _systems(gate: Gate) -> list[str]:
    """Return the table that compares the systems of a gate; empty if there is only one."""
    comparison = side_by_side.compare(gate)
    if comparison is None:
        return []
    rows = side_by_side.table(comparison)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return ["", *lines]


def clock(seconds: float) -> str:
    """Format a duration as ``9:05 min``, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def replay(case: Case, folder: Path) -> str | None:
    """Return the command that runs a case again; ``None`` if its plan was removed."""
    return None if case.folder is None else command_line.command("replay", folder / case.folder)


def _below(case: Case, folder: Path) -> Sequence[str]:
    again = replay(case, folder)
    if case.status == "valid":
        return ()
    return (*case.why, *(() if again is None else (f"repeat: {again}",)))


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f} s"
