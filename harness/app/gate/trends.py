"""Plots how a suite's figures changed from gate to gate: small multiples over the same gates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bokeh.embed import components
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, NumeralTickFormatter, Range1d

from harness.app.gate.outcome import Case, Gate
from harness.app.report import faults, sheet
from harness.app.report.plots import ACKED, FAILED, READ, UNKNOWN, Drawn, frame
from harness.systems.catalogue import OURS

GATES = 40
"""The number of latest gates that are plotted: as many as a narrow screen shows distinctly."""
TICKS = 3
HEIGHT = 190
TOOLTIP_CASES = 3
"""The number of cases that a tooltip names."""
CASE = "#8b949e"
NO_VERDICT = "no verdict"

Measure = Callable[[Case], float | None]


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure of every case, and how a gate's values are reduced to one."""

    title: str
    unit: str
    of: Measure
    all_of: Callable[[Sequence[float]], float]
    spoken: str
    colour: str
    least: float
    """The smallest upper end of the axis, so that noise does not fill the plot."""


TRENDS = (
    Trend("Availability: longest wait for an acknowledgement, s", "s",
          lambda case: case.unavailable_s, max, "the worst case", FAILED, 1.0),
    Trend("Recovery: slowest recovery after a heal, s", "s",
          lambda case: case.recovery_s, max, "the worst case", READ, 1.0),
    Trend("Throughput: records acknowledged per second", "/s",
          lambda case: case.throughput_hz, median, "the median case", ACKED, 10.0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one gate."""

    when: str
    commit: str
    gate: Gate
    anomalies: dict[str, int]
    """The number of cases that show each anomaly."""
    values: tuple[float | None, ...]
    """The values in the order of :data:`TRENDS`."""


def rows(gates: Sequence[Gate]) -> list[Row]:
    """Return the figures of the latest gates, oldest first."""
    return [
        Row(
            moment(gate.began),
            short(gate.commit),
            gate,
            anomalies(gate),
            tuple(
                trend.all_of(values) if (values := measured(gate, trend.of)) else None
                for trend in TRENDS
            ),
        )
        for gate in gates[-GATES:]
    ]


def anomalies(gate: Gate) -> dict[str, int]:
    """Return the number of cases that show each anomaly."""
    kinds = sorted({kind for case in gate.cases for kind in case.anomalies})
    return {kind: sum(kind in case.anomalies for case in gate.cases) for kind in kinds}


def system_of(gate: Gate) -> str:
    """Return the system whose cases the trends of a gate's page show: the first one that ran.

    Figures of different systems are not comparable over time.
    """
    tried = [case.system for case in gate.cases if case.status != "skipped"]
    return next(iter((*tried, *gate.systems)), OURS)


def measured(gate: Gate, of: Measure) -> list[float]:
    """Return the values of the cases that have one."""
    return [value for case in gate.cases if (value := of(case)) is not None]


def moment(began: str) -> str:
    """Format the start time of a gate."""
    return began.replace("T", " ").removesuffix("Z")[:16]


def short(commit: str) -> str:
    """Shorten a commit's hash; the suffix for local changes stays."""
    return commit[:9] + commit[40:]


def draw(gates: Sequence[Gate]) -> tuple[str, list[Drawn]]:
    """Return the script that draws the plots, and the plots; a sentence replaces an empty plot."""
    found = rows(gates)
    shared = Range1d(start=-0.6, end=len(found) - 0.4)
    parts = [_anomalies(found, shared), *(_trend(place, found, shared) for place in range(3))]
    plots = [plot for plot, _ in parts if plot is not None]
    script, divs = components(plots) if plots else ("", ())
    left = iter(divs)
    drawn = [
        Drawn(labels.title, next(left) if plot is not None else "", labels.legend, labels.note)
        for plot, labels in parts
    ]
    return str(script), drawn


def _anomalies(found: Sequence[Row], shared: Range1d) -> tuple[Any, Drawn]:
    title = "Anomalies: cases that show one, by kind"
    kinds = sorted({kind for row in found for kind in row.anomalies})
    colours = {
        kind: (UNKNOWN, *faults.PALETTE)[place % (1 + len(faults.PALETTE))]
        for place, kind in enumerate(kinds)
    }
    bars: dict[str, list[int]] = {
        kind: [row.anomalies.get(kind, 0) for row in found] for kind in kinds
    }
    without = [
        sum(case.status in ("unknown", "failed") for case in row.gate.cases) for row in found
    ]
    if any(without):
        bars[NO_VERDICT], colours[NO_VERDICT] = without, FAILED
    if not bars:
        return None, Drawn(title, "", {}, f"No case of these {len(found)} gates shows one.")
    tops = [sum(column) for column in zip(*bars.values(), strict=True)]
    plot = _frame(found, shared, max(tops))
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.yaxis.ticker.num_minor_ticks = 0
    plot.yaxis.ticker.min_interval = 1
    floor = [0] * len(found)
    for name, counts in bars.items():
        top = [low + count for low, count in zip(floor, counts, strict=True)]
        data = {**_named(found), "low": floor, "top": top, "count": counts}
        drawn = plot.vbar(
            x="x", bottom="low", top="top", width=0.6, source=ColumnDataSource(data),
            fill_color=colours[name], line_color=None,
        )  # fmt: skip
        tips = [(name, "@count cases"), ("gate", "@when @commit")]
        plot.add_tools(HoverTool(renderers=[drawn], tooltips=tips))
        floor = top
    red = sum(bool(row.anomalies) for row in found[:-1])
    note = (
        f"This gate has {sum(found[-1].anomalies.values())};"
        f" {red} of {len(found) - 1} earlier gates had some."
    )
    return plot, Drawn(title, "", colours, note)


def _trend(place: int, found: Sequence[Row], shared: Range1d) -> tuple[Any, Drawn]:
    trend = TRENDS[place]
    points: dict[str, list[Any]] = {"x": [], "y": [], "when": [], "commit": [], "case": []}
    for x, row in enumerate(found):
        for case in row.gate.cases:
            if (value := trend.of(case)) is not None:
                what = (x, value, row.when, row.commit, sheet.masked(case.name))
                for name, part in zip(points, what, strict=True):
                    points[name].append(part)
    if not points["y"]:
        return None, Drawn(trend.title, "", {}, "No case has a value.")
    plot = _frame(found, shared, max(trend.least, *points["y"]))
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[00]a")
    tips = [("", "@case"), ("", f"@y{{0,0.[00]}} {trend.unit}"), ("gate", "@when @commit")]
    marks = plot.scatter("x", "y", source=ColumnDataSource(points), size=4, color=CASE, alpha=0.45)
    plot.add_tools(
        HoverTool(renderers=[marks], tooltips=tips, attachment="below", limit=TOOLTIP_CASES)
    )
    values = [row.values[place] for row in found]
    known = [(x, value) for x, value in enumerate(values) if value is not None]
    data = ColumnDataSource(
        {
            "x": [x for x, _ in known],
            "y": [value for _, value in known],
            "when": [found[x].when for x, _ in known],
            "commit": [found[x].commit for x, _ in known],
        }
    )
    plot.line("x", "y", source=data, color=trend.colour, line_width=2)
    dots = plot.scatter("x", "y", source=data, color=trend.colour, size=7)
    tips = [(trend.spoken, f"@y{{0,0.[00]}} {trend.unit}"), ("gate", "@when @commit")]
    plot.add_tools(HoverTool(renderers=[dots], tooltips=tips, attachment="above"))
    return plot, Drawn(
        trend.title, "", {trend.spoken: trend.colour, "each case": CASE}, compared(trend, values)
    )


def compared(trend: Trend, values: Sequence[float | None]) -> str:
    """Compare the last gate's value with those before it, in a sentence."""
    *others, now = values
    before = [value for value in others if value is not None]
    if now is None and not before:
        return "This gate has no value."
    if now is None:
        return (
            "This gate has no value;"
            f" median of earlier gates: {written(median(before), trend.unit)}."
        )
    if not before:
        return f"This gate: {written(now, trend.unit)}; no earlier gate has a value."
    usual = median(before)
    is_comparable = usual > 0 and max(now, usual) > trend.least / 10
    change = f" ({(now - usual) / usual:+.0%})" if is_comparable else ""
    earlier = f"median of earlier gates: {written(usual, trend.unit)}{change}"
    return f"This gate: {written(now, trend.unit)}; {earlier}."


def written(value: float | None, unit: str) -> str:
    """Format a value with its unit and a useful number of digits; a dash stands for none."""
    if value is None:
        return "—"
    digits = 0 if value >= 100 else 1 if value >= 1 or value == 0 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f} {unit}"


def _named(found: Sequence[Row]) -> dict[str, list[Any]]:
    return {
        "x": list(range(len(found))),
        "when": [row.when for row in found],
        "commit": [row.commit for row in found],
    }


def _frame(found: Sequence[Row], shared: Range1d, top: float) -> Any:
    """Return an empty plot of gates from left to right, some labelled with date and commit."""
    plot = frame(HEIGHT, shared, y_range=Range1d(start=0.0, end=1.12 * top or 1.0))
    plot.min_border_left = 44
    plot.min_border_right = 34
    last = len(found) - 1
    ticks = sorted({round(last * part / (TICKS - 1)) for part in range(TICKS)})
    plot.xaxis.ticker = FixedTicker(ticks=ticks)
    plot.xaxis.major_label_overrides = {
        x: f"{found[x].when[5:]}\n{found[x].commit[:7]}" for x in ticks
    }
    plot.xgrid.grid_line_color = None
    return plot
