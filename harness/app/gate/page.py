"""Renders the page of a gate: verdict, reasons, all cases, and trends over earlier gates."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
from markupsafe import Markup

from harness.app import command_line, run_folder
from harness.app.gate import side_by_side, trends
from harness.app.gate.outcome import Case, Gate, Status, by_urgency, read
from harness.app.report import faults, findings, plots, sheet
from harness.systems.catalogue import OURS

HERE = Path(__file__).parent
OPENED = 12
"""The number of cases that are shown in full; the details of others open on a click."""
LOOKS = {"invalid": "invalid", "failed": "invalid", "unknown": "unknown", "valid": "valid"}
"""The colours of statuses; a skipped case has none."""
MARKS: dict[Status, str] = {
    "valid": "✓", "invalid": "✗", "unknown": "?", "failed": "!", "skipped": "/",
}  # fmt: skip
"""The symbols of statuses, because some readers cannot tell the colours apart."""

INKS = (plots.READ, plots.FAILED, plots.ACKED, "#8a8fd6", plots.UNKNOWN)
"""The colours of systems."""


class NoGate(Exception):
    """A folder does not contain a gate; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class CaseText:
    """A case as the page shows it."""

    case: Case
    anchor: str
    folder: str | None
    """The run's folder, relative to the page; ``None`` if it was not kept."""
    link: str | None
    """The run's report, relative to the page; ``None`` if it no longer exists."""
    replay: str | None
    headlines: list[findings.Headline]
    """The findings in the run's own folder, if that was kept."""

    @property
    def why(self) -> list[str]:
        """The reasons that the headlines do not mention already."""
        said = [headline.finding.why for headline in self.headlines]
        return [text for text in self.case.why if not any(part in text for part in said)]

    @property
    def red(self) -> bool:
        """True if a user should look into the case."""
        return self.case.status in ("invalid", "failed", "unknown")


def render(folder: Path, earlier: Sequence[Gate]) -> Path:
    """Write ``index.html`` into a gate's folder and return its path.

    ``earlier`` are the earlier gates of the same suite, oldest first. The page of a gate that is
    still running, or was killed, shows the cases that have ended. Raises :class:`NoGate` if there
    is no ``gate.json`` that can be read.
    """
    gate = read(folder)
    if gate is None:
        raise NoGate(f"{folder} has no gate.json that can be read")
    texts = [case_text(folder, case, place) for place, case in enumerate(by_urgency(gate.cases))]
    struck = [fault for one in texts for line in one.headlines for fault in line.blamed]
    comparison = side_by_side.compare(gate)
    system = trends.system_of(gate)
    alike = [other for other in (one.of_system(system) for one in earlier) if other.cases]
    series = [*alike, gate.of_system(system)]
    script, drawn = trends.draw(series) if alike and gate.cases else ("", [])
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
            texts=texts,
            red=[one for one in texts if one.red],
            opened=OPENED,
            first=next((one for one in texts if one.case.status == "invalid"), None),
            reasons=reasons(gate),
            acked=sum(case.evidence.get("acked", 0) for case in tried),
            faults=sum(len(case.faults) for case in tried),
            proved=sum(case.faults_proved for case in tried),
            colours=faults.colours(struck),
            comparison=comparison,
            figures=side_by_side.FIGURES,
            inks=[INKS[place % len(INKS)] for place in range(len(gate.systems))],
            ratio=side_by_side.ratio,
            names_systems=gate.systems not in ((), (OURS,)),
            trends_of=system,
            marks=MARKS,
            written=trends.written,
            looks=LOOKS,
            trends=trends.TRENDS,
            history=[(row, word(row.gate)) for row in reversed(trends.rows(series))],
            left=max(0, len(series) - trends.GATES),
            style=sheet.style("page.css", "gate.css", beside=HERE),
            bokeh=Markup(plots.script()) if script else "",
            plot_script=Markup(script),
            plots=[(plot.title, Markup(plot.div), plot.legend, plot.note) for plot in drawn],
        )
    )
    return sheet.write(folder / "index.html", html)


def word(gate: Gate) -> str:
    """Return the gate's verdict as a word; unknown while there is none."""
    return {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[gate.valid]


def case_text(folder: Path, case: Case, place: int) -> CaseText:
    """Return a case with the data that its folder still contains."""
    run = kept(folder, case)
    if run is None:
        return CaseText(case, f"case-{place}", None, None, None, [])
    report = run / "report.html"
    link = quote(report.relative_to(folder).as_posix()) if report.is_file() else None
    replay = command_line.command("replay", run) if (run / "plan.json").is_file() else None
    found: list[findings.Headline] = []
    if case.status == "invalid":
        try:
            struck = faults.load(run / "schedule.jsonl")
            found = findings.headlines(findings.load(run / "findings.parquet"), struck)
        except (OSError, pa.ArrowException, msgspec.MsgspecError, LookupError):
            found = []  # gate.json also has the first sentence of each anomaly
    return CaseText(case, f"case-{place}", case.folder, link, replay, found)


def kept(folder: Path, case: Case) -> Path | None:
    """Return the folder of a case's run, if it exists and is inside the gate's folder."""
    if case.folder is None:
        return None
    named, run = Path(case.folder), folder / case.folder
    inside = not named.is_absolute() and run.resolve().is_relative_to(folder.resolve())
    is_there = inside and ".." not in named.parts and run.is_dir()
    return run if is_there and run_folder.refusal(run) is None else None


def reasons(gate: Gate) -> list[str]:
    """Return the reasons for the verdict other than anomalies."""
    found = []
    if not gate.cases:
        found.append("No case has run.")
    if not gate.finished:
        state = "The gate was interrupted" if gate.interrupted else "The gate has not finished"
        found.append(f"{state}: {len(gate.cases)} of {gate.planned} cases have ended.")
    counts = gate.counts()
    if failed := counts.get("failed"):
        found.append(f"Faultline itself failed in {cases(failed)}.")
    if unknown := counts.get("unknown"):
        found.append(f"{cases(unknown)} had too little evidence for a verdict.")
    excused = sum(case.excused for case in gate.cases if case.status == "skipped")
    if missed := counts.get("skipped", 0) - excused:
        found.append(f"{cases(missed)} did not run.")
    if excused:
        found.append(f"{cases(excused)} did not run, as the suite or the command line permits.")
    return found


def cases(count: int) -> str:
    """Return a number of cases as text."""
    return f"{count:,} case" if count == 1 else f"{count:,} cases"
