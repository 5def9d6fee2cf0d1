"""Renders the page of a lake's trends: what changed, and plots of the figures by version."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bokeh.embed import components
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, NumeralTickFormatter, Range1d
from markupsafe import Markup

from harness.app.gate import trends as gate_trends
from harness.app.lake import significance
from harness.app.lake import trends as trends_
from harness.app.lake.series import MEASURES, Measure, Series
from harness.app.lake.trends import Change, Trends
from harness.app.report import plots, sheet
from harness.app.report.plots import ACKED, READ, UNKNOWN, Drawn

HERE = Path(__file__).parent
VERSIONS = 40
"""The number of latest versions that are plotted."""
RUNS_MAX = 3000
"""The number of runs that a plot shows individually; of more, every n-th is shown."""
SHARE_LEAST = 0.1
"""An axis of percents ends there or later: its labels have no decimals."""
SPREAD = 0.28
"""How far from the place of their version runs are drawn, to either side."""
RUN, MIDDLE = "#8b949e", READ
INKS = {"worse": UNKNOWN, "better": ACKED}


class Section(NamedTuple):
    """A series as the page shows it."""

    title: str
    versions: int
    runs: int
    plots: list[Drawn]


def render(path: Path, found: Trends, series: Sequence[Series]) -> Path:
    """Write the page to this path; its folder must exist."""
    script, sections = draw(found, series)
    shown = [each for each in found.comparisons if each.verdict != "same"]
    html = (
        sheet.environment([HERE])
        .get_template("trends.html")
        .render(
            trends=found,
            worse=found.worse,
            changes=[(each, trends_.sentence(each)) for each in shown],
            rows=[(each, *_figures(each)) for each in found.comparisons],
            short=trends_.short,
            alpha=significance.ALPHA,
            sections=sections,
            style=sheet.style("page.css", "gate.css", beside=HERE.parent / "gate"),
            bokeh=Markup(plots.script()) if script else "",
            plot_script=Markup(script),
            markup=Markup,
        )
    )
    return sheet.write(path, html)


def _figures(change: Change) -> tuple[str, str, str, str]:
    """Return a comparison's title, its two values, and by which part they differ."""
    measure = next(each for each in MEASURES if each.name == change.measure)
    before, after = (trends_.shown(measure, value) for value in (change.before, change.after))
    ratio = "" if change.ratio is None else f"{change.ratio:+.0%}"
    return measure.title, before, after, ratio


def draw(found: Trends, series: Sequence[Series]) -> tuple[str, list[Section]]:
    """Return the script that draws all plots, and the sections of the page."""
    made: list[tuple[Series, Measure, Any]] = []
    for each in series:
        changes = [
            change
            for change in found.comparisons
            if (change.suite, change.system) == (each.suite, each.system)
        ]
        for measure in MEASURES:
            of_it = [change for change in changes if change.measure == measure.name]
            if (plot := _plot(each, measure, of_it)) is not None:
                made.append((each, measure, plot))
    script, divs = components([plot for *_, plot in made]) if made else ("", ())
    drawn: dict[str, list[Drawn]] = {}
    for (each, measure, _), div in zip(made, divs, strict=True):
        middle = "share of the version" if measure.is_share else "median of the version"
        legend = {middle: MIDDLE} if measure.is_share else {middle: MIDDLE, "each run": RUN}
        title = f"{measure.title}{f', {measure.unit}' if measure.unit else ''}"
        drawn.setdefault(each.name, []).append(Drawn(title, str(div), legend))
    return str(script), [
        Section(each.name, len(each.versions), len(each.runs), drawn.get(each.name, []))
        for each in series
    ]


def _plot(of: Series, measure: Measure, changes: Sequence[Change]) -> Any:
    """Draw a figure over the versions; ``None`` if no run has it."""
    versions = of.versions[-VERSIONS:]
    places = {name: place for place, name in enumerate(versions)}
    runs = [run for run in of.runs if run.version in places and measure.name in run.values]
    if not runs:
        return None
    values = np.array([run.values[measure.name] for run in runs])
    at = np.array([places[run.version] for run in runs])
    middle = np.mean if measure.is_share else np.median
    used = np.unique(at)
    medians = [float(middle(values[at == place])) for place in used]
    top = max(medians) if measure.is_share else float(np.quantile(values, 0.99))
    shared = Range1d(start=-0.6, end=len(versions) - 0.4)
    least = SHARE_LEAST if measure.is_share else measure.least
    plot = plots.frame(
        gate_trends.HEIGHT, shared, y_range=Range1d(start=0.0, end=1.15 * max(top, least))
    )
    _label(plot, of, versions)
    plot.yaxis.formatter = NumeralTickFormatter(format="0%" if measure.is_share else "0.[00]a")
    if not measure.is_share:
        step = -(-len(runs) // RUNS_MAX)
        offsets = SPREAD * np.sin(np.arange(len(runs)) * 2.399963)  # the golden angle: no pattern
        plot.scatter((at + offsets)[::step], values[::step], size=3, color=RUN, alpha=0.35)
    names = [trends_.short(versions[place]) for place in used]
    source = ColumnDataSource(
        {"x": used.tolist(), "y": medians, "version": names,
         "runs": [int((at == place).sum()) for place in used]}
    )  # fmt: skip
    plot.line("x", "y", source=source, color=MIDDLE, line_width=2)
    dots = plot.scatter("x", "y", source=source, color=MIDDLE, size=7)
    form = "@y{0.[0]%}" if measure.is_share else f"@y{{0,0.[00]}} {measure.unit}"
    tips = [("@version", form), ("runs", "@runs")]
    plot.add_tools(HoverTool(renderers=[dots], tooltips=tips, attachment="above"))
    for change in changes:
        place = places.get(change.versions_after[0])
        if change.verdict in INKS and place is not None:
            ink = INKS[change.verdict]
            plot.vspan(x=[place - 0.5], line_color=ink, line_width=2, line_dash="dashed")
    return plot


def _label(plot: Any, of: Series, versions: Sequence[str]) -> None:
    """Label some of the versions with their dates."""
    last = len(versions) - 1
    ticks = sorted({round(last * part / (gate_trends.TICKS - 1)) for part in
                    range(gate_trends.TICKS)})  # fmt: skip
    plot.xaxis.ticker = FixedTicker(ticks=ticks)
    plot.xaxis.major_label_overrides = {
        place: f"{of.began(versions[place]):%m-%d}\n{trends_.short(versions[place])[:7]}"
        for place in ticks
    }
    plot.xgrid.grid_line_color = None
    plot.min_border_left = 44
    plot.min_border_right = 34
