"""Renders the HTML report of a run from the files of the run's folder."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from checkers.material import MATERIAL
from harness.app import command_line, judgements, run_start, service
from harness.app.report import (
    availability,
    columns,
    faults,
    findings,
    links,
    marks,
    node_logs,
    node_warnings,
    plots,
    raw,
    sheet,
    timeline,
)
from harness.app.run_start import RunStart
from model import masking

CRASH = "crash"
"""The error of events that record the crash of a client process; no broker returned it."""


def render(folder: Path, judged: Path | None = None) -> Path:
    """Write ``report.html`` into a run's folder, and return its path.

    The report uses those files of the folder that exist. If the run was judged again into another
    folder, ``judged`` is that folder: its verdict and findings are used, and the report is written
    there. Raises :class:`model.history.BadHistory` or :class:`msgspec.DecodeError` for a file that
    cannot be decoded.
    """
    plan: dict[str, Any] = _json(folder / "plan.json")
    judged = judged or folder
    verdict: dict[str, Any] = _json(judged / "verdict.json")
    events = columns.load(folder / "history.jsonl")
    struck = faults.load(folder / "schedule.jsonl")
    table = findings.load(judged / "findings.parquet")
    found = findings.groups(table, events, struck)
    first = next((group for group in found if not group.legal and group.shown), None)
    shown = [each for group in found for each in group.shown]
    start = run_start.read(folder)
    nodes = node_logs.find(folder, judged)
    logs = node_logs.Logs(nodes, start)
    end_ns = int(events.time_ns.max()) if len(events) else 0
    warnings = node_warnings.of(nodes, start, end_ns)
    quoted = raw.quote(events, shown)
    brokers = plan.get("brokers", 0)
    colours = faults.colours(struck)
    count = brokers if isinstance(brokers, int) else 0
    lanes = faults.lanes(struck, count, faults.keepers(folder))
    limit_s = plan.get("time_limit_s")
    main_s = float(limit_s) if isinstance(limit_s, int | float) else None
    plot_script, drawn = plots.draw(
        events,
        struck,
        lanes,
        colours,
        main_s,
        marks.of(table, events, plots.edges_s(events)),
        witnesses_s(first),
        unseen_of(verdict),
        warnings,
    )
    unknown = ["this folder has not been judged"] if not verdict else []
    html = (
        sheet.environment()
        .get_template("page.html")
        .render(
            name=folder.resolve().name,
            plan=plan,
            places=service.PLACES[service.of(plan.get("workload"))],
            settings=list(settings(plan)),
            verdict=verdict,
            contract=judgements.contract_of(verdict),
            word={True: "valid", False: "invalid"}.get(verdict.get("valid", "unknown"), "unknown"),
            unknown_because=verdict.get("unknown_because", unknown) or [],
            headline=first,
            groups=found,
            timelines={
                each.number: timeline.of(each, struck, logs) for each in shown[: timeline.TIMELINES]
            },
            quoted=quoted,
            anchors={event.index for event in quoted},
            start=start,
            clock=clock(start),
            nodes=nodes,
            warnings=warnings,
            node_links={log.node: log.link for log in nodes},
            files=dict(links.files(folder, judged)),
            histories=[segment.path.name for segment in events.segments],
            units={name: material.unit for name, material in MATERIAL.items()},
            impacts=availability.impacts(events, struck),
            faults=struck,
            colours=colours,
            errors=[found for found in events.errors.most_common(20) if found[0][1] != CRASH],
            seconds=end_ns / 1e9,
            replay=command_line.command("replay", folder),
            shrink=command_line.command("shrink", folder),
            check=command_line.command("check", folder),
            style=sheet.style("page.css"),
            bokeh=Markup(plots.script()),
            plot_script=Markup(plot_script),
            plots=[(plot.title, Markup(plot.div), plot.legend, plot.note) for plot in drawn],
        )
    )
    return sheet.write(judged / "report.html", html)


def clock(start: RunStart | None) -> Callable[[int | None], str]:
    """Return a function that formats a time of the run as the time of day.

    The date is included if it differs from the date of the start. The text is empty if the start is
    unknown.
    """

    def written(time_ns: int | None) -> str:
        at = None if start is None or time_ns is None else start.at(time_ns)
        if start is None or at is None:
            return ""
        first = start.at(0)
        is_same_day = first is not None and at.date() == first.date()
        form = "%H:%M:%S" if is_same_day else "%Y-%m-%d %H:%M:%S"
        return f"{at.strftime(form)}.{at.microsecond // 1000:03}"

    return written


def unseen_of(verdict: Mapping[str, Any]) -> dict[int, int]:
    """Return by how much the number of unseen records rose or fell, by second of the run.

    A record is unseen from its acknowledgement until a process first reads it. Verdicts of earlier
    versions do not contain these numbers; the result is then empty.
    """
    changes = verdict.get("consumption", {}).get("unseen_changes", {})
    return {int(second): by for second, by in changes.items()}


def witnesses_s(group: findings.Group | None) -> list[float]:
    """Return the times, in seconds of the run, of the witnesses of the group's first finding."""
    if group is None:
        return []
    return [each.line.seconds for each in group.shown[0].witnesses if each.line is not None]


def settings(plan: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every setting of a plan as (dotted name, value); secrets are masked."""
    for name, value in plan.items():
        full = f"{prefix}{name}"
        if masking.is_secret(full):
            yield full, sheet.MASK
        elif isinstance(value, Mapping) and value:
            yield from settings(value, f"{full}.")
        elif isinstance(value, str):
            yield full, value
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield full, ", ".join(value) or "none"
        elif full == "schedule" and value:
            yield full, f"{len(value)} faults; see the table of faults"
        else:
            yield full, msgspec.json.encode(value).decode()


def _json(path: Path) -> dict[str, Any]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.exists() else {}
