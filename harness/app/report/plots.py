"""Throughput, latency and faults over time, as three plots that share one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.embed import components
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure
from bokeh.resources import Resources

from harness.app.report.columns import FAIL, INFO, OK, Columns, Ints
from harness.app.report.faults import Fault, nodes

BIN_S = 0.5
BINS_MAX = 240
INK = "#7d8590"
"""For text and axes: legible on a light and on a dark page."""
GRID = "#8b949e"
ACKED, READ, FAILED, UNKNOWN = "#2ea36b", "#3f8fd9", "#d29922", "#d1495b"
RATES = {"acknowledged": ACKED, "read": READ, "failed ops": FAILED, "unknown ops": UNKNOWN}
LATENCIES = {"p50": ACKED, "p99": READ, "max": "#8a8fd6", "failed": FAILED, "unknown": UNKNOWN}
MARKS = 2000
"""Failed and unknown operations drawn one by one in the latency plot."""

Floats = npt.NDArray[np.float64]


def script() -> str:
    """The part of Bokeh that the plots need, to be put into the page."""
    (source, *_) = Resources(mode="inline", components=["bokeh"]).js_raw
    return str(source)


def edges_s(columns: Columns) -> Floats:
    """The borders of the bins over the whole run, in seconds."""
    end_s = max(float(columns.time_ns.max()) / 1e9, BIN_S) if len(columns) else BIN_S
    return np.linspace(0.0, end_s, min(BINS_MAX, round(end_s / BIN_S)) + 1)


def per_second(columns: Columns, edges: Floats, weights: Ints) -> Floats:
    """The sum of the weights in each bin, per second."""
    sums, _ = np.histogram(columns.time_ns / 1e9, bins=edges, weights=weights)
    return np.asarray(sums / np.diff(edges), dtype=np.float64)


def quantiles(times_s: Floats, values: Floats, edges: Floats, at: Sequence[float]) -> list[Floats]:
    """The quantiles of the values in each bin, one array per quantile; NaN in an empty bin."""
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
    """A plot for the page: its place there, and what its colours mean."""

    title: str
    div: str
    legend: dict[str, str]


def draw(
    columns: Columns, faults: Sequence[Fault], lanes: Sequence[str], colours: dict[str, str]
) -> tuple[str, list[Drawn]]:
    """The script that draws the plots, and the plots."""
    edges = edges_s(columns)
    shared = Range1d(start=0.0, end=float(edges[-1]), bounds=(0.0, float(edges[-1])))
    end_s = float(edges[-1])
    over_time = (_throughput(columns, edges, shared), _latency(columns, edges, shared))
    for plot in over_time:
        _bands(plot, faults, colours, end_s)
    plots = (*over_time, _lanes(faults, lanes, colours, end_s, shared))
    titles = (
        ("Records and operations per second", RATES),
        ("Latency of acknowledged sends, in ms (and of failed and unknown ones)", LATENCIES),
        ("Faults per node", colours),
    )
    made, divs = components(plots)
    return str(made), [
        Drawn(title, str(div), legend) for (title, legend), div in zip(titles, divs, strict=True)
    ]


def _figure(height: int, x_range: Range1d, **more: Any) -> Any:
    plot: Any = figure(
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range,
        min_border_left=58,
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


def _throughput(columns: Columns, edges: Floats, shared: Range1d) -> Any:
    plot = _figure(220, shared)
    clients = columns.clients()
    counted = (
        columns.sent,
        columns.read,
        (clients & (columns.type == FAIL)).astype(np.int64),
        (clients & (columns.type == INFO)).astype(np.int64),
    )
    for (name, colour), weights in zip(RATES.items(), counted, strict=True):
        data = ColumnDataSource({"s": edges[:-1], "rate": per_second(columns, edges, weights)})
        line = plot.step("s", "rate", source=data, mode="after", color=colour, line_width=1.6)
        tips = [(name, "@rate{0,0.[0]} /s"), ("from", "@s{0.00} s")]
        plot.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="mouse"))
    plot.y_range.start = 0
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[0]a")
    return plot


def _latency(columns: Columns, edges: Floats, shared: Range1d) -> Any:
    plot = _figure(220, shared, y_axis_type="log")
    done = columns.clients() & (columns.latency_ns >= 0)
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
    plot = _figure(56 + 22 * len(lanes), shared, y_range=list(reversed(lanes)))
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


def _bands(plot: Any, faults: Sequence[Fault], colours: dict[str, str], end_s: float) -> None:
    for fault in faults:
        window = fault.window_ns(int(end_s * 1e9))
        if window is not None:
            plot.add_layout(
                BoxAnnotation(
                    left=window[0] / 1e9,
                    right=window[1] / 1e9,
                    fill_color=colours[fault.fault],
                    fill_alpha=0.16,
                    line_color=None,
                    level="underlay",
                )
            )
