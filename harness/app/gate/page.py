"""The page of a gate: what was tested, the word, why, and how it went before."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
from markupsafe import Markup

from harness.app import program, run_folder
from harness.app.gate import trends
from harness.app.gate.outcome import Case, Gate, Status, by_urgency, read
from harness.app.report import faults, findings, plots, sheet

HERE = Path(__file__).parent
OPENED = 12
"""Cases that are told in full; further ones have to be clicked on."""
LOOKS = {"invalid": "invalid", "failed": "invalid", "unknown": "unknown", "valid": "valid"}
"""The colour of a status; one that was skipped has none."""
MARKS: dict[Status, str] = {
    "valid": "✓", "invalid": "✗", "unknown": "?", "failed": "!", "skipped": "/",
}  # fmt: skip
"""The shape of a status: colours alone do not tell everybody apart."""


class NoGate(Exception):
    """A folder without a gate in it, in one sentence."""


@dataclass(frozen=True, slots=True)
class Told:
    """A case as the page tells it."""

    case: Case
    anchor: str
    folder: str | None
    """Of its run, relative to the page; ``None`` when it is not kept."""
    link: str | None
    """Of its report, relative to the page; ``None`` when there is none any more."""
    replay: str | None
    headlines: list[findings.Headline]
    """From the run's own folder, where that is kept."""

    @property
    def why(self) -> list[str]:
        """What the headlines do not say already."""
        said = [headline.finding.why for headline in self.headlines]
        return [text for text in self.case.why if not any(part in text for part in said)]

    @property
    def red(self) -> bool:
        """Has somebody to look into it?"""
        return self.case.status in ("invalid", "failed", "unknown")


def render(folder: Path, earlier: Sequence[Gate]) -> Path:
    """Write ``index.html`` into a gate's folder; the earlier gates of its suite, oldest first.

    A gate that is still running, or was killed, has a page of the cases that have ended. Returns
    the page's path. Raises :class:`NoGate` when there is no ``gate.json`` that can be read.
    """
    gate = read(folder)
    if gate is None:
        raise NoGate(f"{folder}: no gate.json that can be read")
    told = [tell(folder, case, place) for place, case in enumerate(by_urgency(gate.cases))]
    struck = [fault for one in told for line in one.headlines for fault in line.blamed]
    script, drawn = trends.draw([*earlier, gate]) if earlier and gate.cases else ("", [])
    tried = [case for case in gate.cases if case.status != "skipped"]
    html = (
        sheet.environment([HERE])
        .get_template("gate.html")
        .render(
            gate=gate,
            word=word(gate),
            look=word(gate).lower(),
            began=f"{gate.began.replace('T', ' ').removesuffix('Z')} UTC",
            commit=trends.short(gate.commit) or "—",
            told=told,
            red=[one for one in told if one.red],
            opened=OPENED,
            first=next((one for one in told if one.case.status == "invalid"), None),
            reasons=reasons(gate),
            acked=sum(case.evidence.get("acked", 0) for case in tried),
            faults=sum(len(case.faults) for case in tried),
            proved=sum(case.faults_proved for case in tried),
            colours=faults.colours(struck),
            marks=MARKS,
            written=trends.written,
            looks=LOOKS,
            trends=trends.TRENDS,
            history=[(row, word(row.gate)) for row in reversed(trends.rows([*earlier, gate]))],
            left=max(0, len(earlier) + 1 - trends.GATES),
            style=sheet.style("page.css", "gate.css", beside=HERE),
            bokeh=Markup(plots.script()) if script else "",
            plot_script=Markup(script),
            plots=[(plot.title, Markup(plot.div), plot.legend, plot.note) for plot in drawn],
        )
    )
    return sheet.write(folder / "index.html", html)


def word(gate: Gate) -> str:
    """The gate's answer; unknown while there is none."""
    return {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[gate.valid]


def tell(folder: Path, case: Case, place: int) -> Told:
    """A case with what its folder still says about it."""
    run = kept(folder, case)
    if run is None:
        return Told(case, f"case-{place}", None, None, None, [])
    report = run / "report.html"
    link = quote(report.relative_to(folder).as_posix()) if report.is_file() else None
    replay = program.command("replay", run) if (run / "plan.json").is_file() else None
    found: list[findings.Headline] = []
    if case.status == "invalid":
        try:
            struck = faults.load(run / "schedule.jsonl")
            found = findings.headlines(findings.load(run / "findings.parquet"), struck)
        except (OSError, pa.ArrowException, msgspec.MsgspecError, LookupError):
            found = []  # gate.json has the first sentence of each anomaly, too
    return Told(case, f"case-{place}", case.folder, link, replay, found)


def kept(folder: Path, case: Case) -> Path | None:
    """The folder of a case's run, if it is there and inside the gate's."""
    if case.folder is None:
        return None
    named, run = Path(case.folder), folder / case.folder
    inside = not named.is_absolute() and run.resolve().is_relative_to(folder.resolve())
    is_there = inside and ".." not in named.parts and run.is_dir()
    return run if is_there and run_folder.refusal(run) is None else None


def reasons(gate: Gate) -> list[str]:
    """Why the word is what it is, as far as no anomaly says so."""
    found = []
    if not gate.cases:
        found.append("No case has been tried.")
    if not gate.finished:
        state = "The gate was interrupted" if gate.interrupted else "Not at its end yet"
        found.append(f"{state}: {len(gate.cases)} of {gate.planned} cases have ended.")
    counts = gate.counts()
    if failed := counts.get("failed"):
        found.append(f"{cases(failed)} failed: the harness could not run it to its end.")
    if unknown := counts.get("unknown"):
        found.append(f"{cases(unknown)} had too little evidence for a verdict.")
    excused = sum(case.excused for case in gate.cases if case.status == "skipped")
    if missed := counts.get("skipped", 0) - excused:
        found.append(f"{cases(missed)} not tried.")
    if excused:
        found.append(f"{cases(excused)} left out on purpose, which the suite permits.")
    return found


def cases(count: int) -> str:
    """So many cases."""
    return f"{count:,} case" if count == 1 else f"{count:,} cases"
