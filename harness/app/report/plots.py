"""Plots throughput, unread records, latency and faults on one shared time axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.embed import components
from bokeh.models import (
    ColumnDataSource,
    HoverTool,
    NumeralTickFormatter,
    OpenURL,
    Range1d,
    TapTool,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from harness.app.log_lines import Level
from harness.app.report.columns import FAIL, INFO, OK, Columns, Ints
from harness.app.report.faults import Fault, nodes
from harness.app.report.marks import FOUND, LOST, Mark
from harness.app.report.node_warnings import NodeWarnings

BIN_S = 0.5
BINS_MAX = 240
INK = "#7d8590"
"""For text and axes: legible on a light and on a dark page."""
GRID = "#8b949e"
ACKED, READ, FAILED, UNKNOWN = "#2ea36b", "#3f8fd9", "#d29922", "#d1495b"
RATES = {
    "acknowledged": ACKED,
    "read": READ,
    "failed operations": FAILED,
    "unknown operations": UNKNOWN,
}
LATENCIES = {"p50": ACKED, "p99": READ, "max": "#8a8fd6", "failed": FAILED, "unknown": UNKNOWN}
UNSEEN = {"unread": UNKNOWN}
LEVELS = {Level.WARN: FAILED, Level.ERROR: UNKNOWN, Level.FATAL: "#8b1e6b"}
LEVEL_HEIGHTS = {Level.WARN: -0.16, Level.ERROR: 0.06, Level.FATAL: 0.26}
"""Where the marks of a level are in the lane of their node, from -0.5 to 0.5."""
LOST_INK, FOUND_INK = "#e11d48", "#f97316"
MARKS_INK = {LOST: LOST_INK, FOUND: FOUND_INK}
WITNESS = "witnesses of the first finding (dashed)"
FINDINGS = "findings"
"""The lane of the marks, below the lanes of the nodes."""
LOGGED = "WARN, ERROR and FATAL lines in the nodes' logs"
LOGGED_NOTE = (
    "A larger mark stands for more lines. Times are those of the nodes' own clocks. "
    "A click on a mark opens the log."
)
LOGGED_TIP = (
    '<div style="max-width: 420px; white-space: normal; overflow-wrap: anywhere; color: #1f2328">'
    "<b>@node</b>, @s{0.00} s: @level, lines: @count{0,0}<br>@text</div>"
)
"""Bokeh escapes the values that it puts into the places that begin with @."""
MARKS = 2000
"""The number of failed and unknown operations that the latency plot shows individually."""

Floats = npt.NDArray[np.float64]


def script() -> str:
    """Return the part of Bokeh that the plots need, for inclusion in the page."""
    (source, *_) = Resources(mode="inline", components=["bokeh"]).js_raw
    return str(source)


def edges_s(columns: Columns) -> Floats:
    """Return the edges of the bins over the whole run, in seconds."""
    end_s = max(float(columns.time_ns.max()) / 1e9, BIN_S) if len(columns) else BIN_S
    return np.linspace(0.0, end_s, min(BINS_MAX, round(end_s / BIN_S)) + 1)


def per_second(columns: Columns, edges: Floats, weights: Ints) -> Floats:
    """Return the sum of the weights in each bin, per second."""
    sums, _ = np.histogram(columns.time_ns / 1e9, bins=edges, weights=weights)
    return np.asarray(sums / np.diff(edges), dtype=np.float64)


def quantiles(times_s: Floats, values: Floats, edges: Floats, at: Sequence[float]) -> list[Floats]:
    """Return the quantiles of the values in each bin, one array each; NaN for an empty bin."""
    bins = np.clip(np.searchsorted(edges, times_s, side="right") - 1, 0, len(edges) - 2)
    order = np.argsort(bins, kind="stable")
    borders = np.searchsorted(bins[order], np.arange(len(edges)))
    found = np.full((len(at), len(edges) - 1), np.nan)
    for place in np.flatnonzero(np.diff(borders)):
        inside = values[order[borders[place] : borders[place + 1]]]
        found[:, place] = np.quantile(inside, at)
    return list(found)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plot of the page: its HTML element, the meaning of its colours, and a note."""

    title: str
    div: str
    legend: dict[str, str]
    note: str = ""


def draw(
    columns: Columns,
    faults: Sequence[Fault],
    lanes: Sequence[str],
    colours: dict[str, str],
    main_s: float | None = None,
    marks: Sequence[Mark] = (),
    witnesses_s: Sequence[float] = (),
    unseen: Mapping[int, int] | None = None,
    warnings: Sequence[NodeWarnings] = (),
) -> tuple[str, list[Drawn]]:
    """Return the script that draws the plots, and the plots.

    The workload ends after ``main_s``. ``marks`` are findings, and ``witnesses_s`` the times of the
    events that witness the first of them. ``unseen`` maps each second to the change in the number
    of acknowledged records that no client had read. ``warnings`` are the nodes' log lines to mark.
    """
    edges = edges_s(columns)
    shared = Range1d(start=0.0, end=float(edges[-1]), bounds=(0.0, float(edges[-1])))
    end_s = float(edges[-1])
    by_name = dict(zip(RATES, rates(columns, edges), strict=True))
    top = ceiling(by_name, edges, main_s)
    over_time = [_throughput(by_name, edges, shared, top), _latency(columns, edges, shared)]
    titles = [
        ("Records and operations per second", RATES),
        ("Latency of acknowledged sends, in ms (and of failed and unknown ones)", LATENCIES),
    ]
    notes = [beyond(by_name, edges, top), ""]
    if unseen:
        over_time.append(_unseen(unseen, end_s, shared))
        titles.append(("Acknowledged records that no client had read yet", UNSEEN))
        notes.append("")
    for plot in over_time:
        _bands(plot, bands(faults, colours, end_s))
    lane = [FINDINGS] if marks else []
    plots = [*over_time, _lanes(faults, [*lanes, *lane], colours, end_s, shared)]
    over_time[0].add_tools(_marked(over_time[0], marks, top * 0.05))
    plots[-1].add_tools(_marked(plots[-1], marks, FINDINGS))
    logged = [node for node in warnings if node.marks]
    if logged:
        plots.append(_logged(logged, shared))
        _bands(plots[-1], bands(faults, colours, end_s))
    for plot in plots:
        plot.vspan(x=list(witnesses_s), line_color=INK, line_dash="dashed")
    marked = {mark.meaning: MARKS_INK[mark.meaning] for mark in marks}
    marked |= {WITNESS: INK} if len(witnesses_s) else {}
    titles[0] = (titles[0][0], RATES | marked)
    titles.append(("Faults per node", colours | marked))
    notes.append("")
    if logged:
        used = sorted({mark.level for node in logged for mark in node.marks})
        titles.append((LOGGED, {level.name: LEVELS[level] for level in used}))
        notes.append(LOGGED_NOTE)
    made, divs = components(plots)
    return str(made), [
        Drawn(title, str(div), legend, note)
        for (title, legend), div, note in zip(titles, divs, notes, strict=True)
    ]


def frame(height: int, x_range: Range1d, **more: Any) -> Any:
    """Return an empty plot in the page's colours, as wide as its place in the page."""
    plot: Any = figure(
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range,
        min_border_left=68,
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        active_drag="xbox_zoom",
        active_scroll=None,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **more,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    for axis in plot.axis:
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = GRID
        axis.axis_label_text_font_style = "normal"
    plot.grid.grid_line_color = GRID
    plot.grid.grid_line_alpha = 0.25
    plot.xaxis.formatter = NumeralTickFormatter(format="0.[0] a")
    return plot


def _asking(columns: Columns) -> npt.NDArray[np.bool_]:
    """Return which rows are requests of clients; a crash is only the end of a client process."""
    crash = [code for code, name in enumerate(columns.f_names) if name == "crash"]
    return columns.clients() & ~np.isin(columns.f, crash)


def rates(columns: Columns, edges: Floats) -> list[Floats]:
    """Return the rates per second, in the order of :data:`RATES`."""
    clients = _asking(columns)
    counted = (
        columns.sent,
        columns.read,
        (clients & (columns.type == FAIL)).astype(np.int64),
        (clients & (columns.type == INFO)).astype(np.int64),
    )
    return [per_second(columns, edges, weights) for weights in counted]


def ceiling(by_name: Mapping[str, Floats], edges: Floats, main_s: float | None) -> float:
    """Return the upper end of the axis of rates, so that the main phase is readable.

    Readers that start from the beginning (all of them, at the end) read a hundred times faster than
    any client writes. On an axis that shows such a burst nothing else is visible.
    """
    main = edges[:-1] < (edges[-1] if main_s is None else main_s)
    tops = [
        float(np.quantile(values[main], 0.97) if name == "read" else values[main].max())
        for name, values in by_name.items()
        if main.any()
    ]
    return 1.15 * max(tops, default=0.0) or 1.0


def beyond(by_name: Mapping[str, Floats], edges: Floats, top: float) -> str:
    """Return what the axis cuts off, in one sentence; empty if it cuts nothing off."""
    name, highest = max(by_name.items(), key=lambda rate: float(rate[1].max()))
    if highest.max() <= top:
        return ""
    at_s = float(edges[int(highest.argmax())])
    return (
        f"Peaks above the axis are marked ▲ at its top; the highest is {highest.max():,.0f}"
        f" {name} per second at {at_s:.1f} s."
    )


def _throughput(by_name: Mapping[str, Floats], edges: Floats, shared: Range1d, top: float) -> Any:
    plot = frame(220, shared, y_range=Range1d(start=0.0, end=top))
    for name, values in by_name.items():
        colour = RATES[name]
        tips = [(name, "@rate{0,0.[0]} /s"), ("from", "@s{0.00} s")]
        data = ColumnDataSource({"s": edges[:-1], "rate": values})
        drawn = [plot.step("s", "rate", source=data, mode="after", color=colour, line_width=1.6)]
        over = values > top
        if over.any():
            middles = edges[:-1][over] + np.diff(edges)[over] / 2
            marks = {"s": middles, "rate": values[over], "y": np.full(int(over.sum()), top * 0.97)}
            source = ColumnDataSource(marks)
            drawn.append(
                plot.scatter("s", "y", source=source, marker="triangle", size=8, color=colour)
            )
        plot.add_tools(HoverTool(renderers=drawn, tooltips=tips, mode="mouse"))
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
    return plot


def running(changes: Mapping[int, int], end_s: float) -> tuple[Floats, Floats]:
    """Return seconds, and the running sum of the changes up to the end of each second.

    They are the steps of a curve that begins at zero and extends to the end of the run.
    """
    at = sorted(changes)
    sums = np.cumsum([changes[second] for second in at], dtype=np.float64)
    ends = np.minimum(np.array(at, dtype=np.float64) + 1.0, end_s)
    return (
        np.concatenate(([0.0], ends, [end_s])),
        np.concatenate(([0.0], sums, sums[-1:] if len(sums) else [0.0])),
    )


def _unseen(changes: Mapping[int, int], end_s: float, shared: Range1d) -> Any:
    plot = frame(150, shared)
    seconds, count = running(changes, end_s)
    data = ColumnDataSource({"s": seconds, "count": count})
    (colour,) = UNSEEN.values()
    line = plot.step("s", "count", source=data, mode="after", color=colour, line_width=1.6)
    tips = [("unread", "@count{0,0}"), ("from", "@s{0.0} s")]
    plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="mouse"))
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
    return plot


def _latency(columns: Columns, edges: Floats, shared: Range1d) -> Any:
    plot = frame(220, shared, y_axis_type="log")
    done = _asking(columns) & (columns.latency_ns >= 0)
    acked = done & (columns.type == OK) & (columns.sent > 0)
    times_s, latency_ms = columns.time_ns / 1e9, np.maximum(columns.latency_ns, 1000) / 1e6
    found = quantiles(times_s[acked], latency_ms[acked], edges, (0.5, 0.99, 1.0))
    for (name, colour), values in zip(list(LATENCIES.items())[:3], found, strict=True):
        data = ColumnDataSource({"s": edges[:-1], "ms": values})
        line = plot.step("s", "ms", source=data, mode="after", color=colour, line_width=1.6)
        tips = [(name, "@ms{0,0.00} ms"), ("from", "@s{0.00} s")]
        plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="mouse"))
    for name, colour, code in (("failed", FAILED, FAIL), ("unknown", UNKNOWN, INFO)):
        rows = np.flatnonzero(done & (columns.type == code))
        rows = rows[:: max(1, -(-len(rows) // MARKS))]
        if not len(rows):
            continue
        data = ColumnDataSource(
            {
                "s": times_s[rows],
                "ms": latency_ms[rows],
                "index": columns.index[rows],
                "f": [columns.f_names[code] for code in columns.f[rows]],
            }
        )
        marks = plot.scatter("s", "ms", source=data, size=4, color=colour, alpha=0.7)
        tips = [(name, "@f, event @index"), ("after", "@ms{0,0.0} ms"), ("at", "@s{0.00} s")]
        plot.add_tools(HoverTool(renderers=[marks], tooltips=tips))
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    return plot


def _lanes(
    faults: Sequence[Fault],
    lanes: Sequence[str],
    colours: dict[str, str],
    end_s: float,
    shared: Range1d,
) -> Any:
    plot = frame(56 + 22 * len(lanes), shared, y_range=list(reversed(lanes)))
    rows: dict[str, list[Any]] = {
        name: [] for name in ("node", "from", "to", "fault", "id", "colour", "how")
    }
    for fault in faults:
        window = fault.window_ns(int(end_s * 1e9))
        for node in nodes(fault) if window else ():
            assert window is not None, "no node of an unapplied fault is drawn"
            times_s = (window[0] / 1e9, window[1] / 1e9)
            what = (fault.fault, fault.id, colours[fault.fault], fault.effect.how or "not proved")
            for name, part in zip(rows, (node, *times_s, *what), strict=True):
                rows[name].append(part)
    bars = plot.hbar(
        y="node", left="from", right="to", height=0.66, source=ColumnDataSource(rows),
        fill_color="colour", line_color="colour", fill_alpha=0.7,
    )  # fmt: skip
    tips = [("@fault #@id", "@node"), ("s", "@from{0.00} to @to{0.00}"), ("effect", "@how")]
    plot.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    plot.ygrid.grid_line_alpha = 0.0
    plot.xaxis.axis_label = "seconds since the run began"
    return plot


def _logged(warnings: Sequence[NodeWarnings], shared: Range1d) -> Any:
    """Draw the nodes' warnings and errors, in a lane for each node; larger marks are more lines."""
    names = [node.node for node in warnings]
    plot = frame(56 + 30 * len(names), shared, y_range=list(reversed(names)))
    marks = [mark for node in warnings for mark in node.marks]
    data = {
        "s": [mark.seconds for mark in marks],
        "y": [(mark.node, LEVEL_HEIGHTS[mark.level]) for mark in marks],
        "size": [5.0 + 1.7 * float(np.log10(mark.count)) for mark in marks],
        "colour": [LEVELS[mark.level] for mark in marks],
        "level": [mark.level.name for mark in marks],
        "node": [mark.node for mark in marks],
        "count": [mark.count for mark in marks],
        "text": [mark.text for mark in marks],
        "link": [mark.link for mark in marks],
    }
    drawn = plot.scatter(
        "s", "y", source=ColumnDataSource(data), size="size", color="colour", alpha=0.75,
        nonselection_alpha=0.75,
    )  # fmt: skip
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=LOGGED_TIP))
    plot.add_tools(TapTool(renderers=[drawn], callback=OpenURL(url="@link")))
    plot.ygrid.grid_line_alpha = 0.0
    plot.xaxis.axis_label = "seconds since the run began"
    return plot


def _marked(plot: Any, marks: Sequence[Mark], height: float | str) -> HoverTool:
    """Draw a cross for each mark at this height of the plot, and return its tooltip."""
    data = {
        "s": [mark.seconds for mark in marks],
        "y": [height] * len(marks),
        "colour": [MARKS_INK[mark.meaning] for mark in marks],
        "count": [mark.count for mark in marks],
        "anomaly": [mark.anomaly for mark in marks],
        "first": [mark.first for mark in marks],
    }
    drawn = plot.scatter(
        "s", "y", source=ColumnDataSource(data), marker="x", size=9, line_width=2.2, color="colour"
    )
    tips = [("@anomaly", "@count{0,0}"), ("first", "@first"), ("at", "@s{0.00} s")]
    return HoverTool(renderers=[drawn], tooltips=tips)


def bands(
    faults: Sequence[Fault], colours: Mapping[str, str], end_s: float
) -> dict[str, list[float | str]]:
    """Return start, end and colour of each fault that was applied, with times in seconds."""
    data: dict[str, list[float | str]] = {"from": [], "to": [], "colour": []}
    for fault in faults:
        window = fault.window_ns(int(end_s * 1e9))
        if window is not None:
            data["from"].append(window[0] / 1e9)
            data["to"].append(window[1] / 1e9)
            data["colour"].append(colours[fault.fault])
    return data


def _bands(plot: Any, data: dict[str, list[float | str]]) -> None:
    """Draw the faults behind the lines, with one glyph for all: a model for each costs far more."""
    plot.vstrip(
        x0="from", x1="to", source=ColumnDataSource(data), fill_color="colour", fill_alpha=0.16,
        line_color=None, level="underlay",
    )  # fmt: skip
