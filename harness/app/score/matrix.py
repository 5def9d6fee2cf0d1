"""The detection matrix: a file with rows of measurements, and the page that is generated from it.

The page is never edited by hand. Rows are replaced one by one, so that a score that is interrupted
can be continued.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.app import files, private
from harness.app.refused import Refused
from harness.app.search.outcome import Status

DATA, PAGE = "detection-matrix.json", "detection-matrix.md"
FIRST = 1
"""The tier of the mutants that drawn seeds must find, too."""


class Scripted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the plan written for a mutant has shown."""

    without: Status
    """The verdict on the correct broker, with every fault proved."""
    anomalies: dict[str, int]
    """The number of illegal findings by anomaly, with the bug planted."""
    faults: int
    cpu_seconds: float
    """The CPU time of both runs."""
    commit: str | None = None
    """The commit that was measured; ``None`` outside a repository."""


class Drawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a search with plans drawn from seeds has shown."""

    seed: int
    """The first seed."""
    runs: int
    found: int
    """The number of runs with an illegal finding."""
    first: int | None
    """The first of those runs, counted from 1; ``None`` if there is none."""
    failed: int
    reached: int | None = None
    """The number of runs that went otherwise than without the bug; ``None``: not measured."""
    anomalies: dict[str, int]
    """The number of runs with each anomaly."""
    cpu_seconds: float
    workload: str = "idempotent"
    """The workload of all runs."""
    commit: str | None = None
    """The commit that was measured; ``None`` outside a repository."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two searches from the same first seed: by chance, and guided by what runs reach."""

    chance: Drawn
    guided: Drawn


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, and how reliably it is found."""

    name: str
    source: str
    tier: int
    symptom: str
    """The anomaly as which it must be reported."""
    scripted: Scripted | None = None
    drawn: Drawn | None = None
    compared: Compared | msgspec.UnsetType = msgspec.UNSET
    """Unset if that was not measured."""

    @property
    def is_shown(self) -> bool:
        """True if its schedule shows its symptom, and is valid without the mutant."""
        seen = self.scripted
        return seen is not None and seen.without == "valid" and self.symptom in seen.anomalies

    @property
    def is_found(self) -> bool:
        """True if drawn seeds found it."""
        return self.drawn is not None and self.drawn.found > 0


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A loss that a configuration permits: it must be found, and judged by what was promised."""

    name: str
    status: Status
    """The verdict by its own contract."""
    allowed: dict[str, int]
    strict: dict[str, int]
    """The illegal findings by the strictest contract."""

    @property
    def is_distinguished(self) -> bool:
        """True if the loss is found under both contracts, and permitted by one only."""
        return self.status == "valid" and bool(self.allowed) and bool(self.strict)


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All rows and controls."""

    rows: dict[str, Row] = {}
    controls: dict[str, Control] = {}

    def with_row(self, row: Row) -> "Matrix":
        """Return the matrix with this row, which replaces one of the same name."""
        rows = self.rows | {row.name: row}
        return msgspec.structs.replace(self, rows=dict(sorted(rows.items())))

    def with_control(self, control: Control) -> "Matrix":
        """Return the matrix with this control, which replaces one of the same name."""
        controls = self.controls | {control.name: control}
        return msgspec.structs.replace(self, controls=dict(sorted(controls.items())))

    def of(self, names: Iterable[str]) -> "Matrix":
        """Return the matrix without mutants that no longer exist."""
        kept = {name: self.rows[name] for name in names if name in self.rows}
        return msgspec.structs.replace(self, rows=kept)


def read(folder: Path) -> Matrix:
    """Return the matrix measured so far; raises :class:`Refused` for a file of another kind."""
    path = folder / DATA
    if not path.exists():
        return Matrix()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Matrix)
    except msgspec.MsgspecError as error:
        raise Refused(f"{path}: {error}") from None


def write(matrix: Matrix, folder: Path) -> None:
    """Write the data file and the page."""
    document = msgspec.json.format(msgspec.json.encode(matrix), indent=2)
    with private.as_asked():  # they belong to the repository
        files.replace(folder / DATA, document + b"\n")
        files.replace(folder / PAGE, page(matrix).encode())


def page(matrix: Matrix) -> str:
    """Return the matrix as a page in Markdown."""
    rows = sorted(matrix.rows.values(), key=lambda row: (row.source, row.name))
    return "\n".join(
        [*_HEAD, *_summary(rows), "", *_mutants(rows), *_guidance(rows), *_controls(matrix), ""]
    )


_HEAD = (
    "# Detection matrix",
    "",
    "`faultline mutants score` writes this page, which lists only what it has measured.",
    "",
    "Each planted bug has a schedule of its own (`examples/mutants/`). With the bug, this schedule",
    "must show the anomaly, invariant or `stuck` that the mutant declares; without it, the run",
    "must be valid. In addition, seeds are drawn as `faultline search` draws them, until the third",
    "run shows an illegal anomaly. *found* is the number of such runs and of all runs, *reached*",
    "the number of runs that went otherwise than with the same seed and without the bug, *first*",
    "the number of the first run that shows an anomaly. *of* is the workload of these runs, and",
    "*as* lists the anomalies that they show. *commits* lists the commits of the measurements by",
    "schedule and by seeds.",
    "",
)


def _summary(rows: Sequence[Row]) -> list[str]:
    shown = sum(row.is_shown for row in rows)
    lines = [f"Bugs that their schedules show: {shown} of {len(rows)}."]
    for tier in sorted({row.tier for row in rows}):
        lines += _tier_summary(tier, [row for row in rows if row.tier == tier])
    return lines


def _tier_summary(tier: int, rows: Sequence[Row]) -> list[str]:
    """Return the sentence about a tier; none if no seeds were drawn for any of its bugs."""
    measured = [row.drawn for row in rows if row.drawn is not None]
    if not measured:
        return []
    missed = [drawn for drawn in measured if not drawn.found]
    parts = (
        ("reached but not seen", sum(bool(drawn.reached) for drawn in missed)),
        ("never reached", sum(drawn.reached == 0 for drawn in missed)),
        (
            "not found, and not recorded whether reached",
            sum(drawn.reached is None for drawn in missed),
        ),
        ("not measured", len(rows) - len(measured)),
    )
    more = "".join(f"; {count} {what}" for what, count in parts if count)
    found = len(measured) - len(missed)
    return [f"Bugs of tier {tier} that drawn seeds show: {found} of {len(measured)}{more}."]


def _mutants(rows: Sequence[Row]) -> list[str]:
    return [
        "| mutant | source | tier | must show as | schedule | of | found | reached | first | as |"
        " commits |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in rows),
    ]


def _line(row: Row) -> str:
    schedule = workload = found = reached = first = how = "not measured"
    if row.scripted is not None:
        schedule = "yes" if row.is_shown else f"**no**: {_counted(row.scripted.anomalies)}"
    if row.drawn is not None:
        found = f"{row.drawn.found} of {row.drawn.runs}"
        if row.drawn.failed:
            found += f" ({row.drawn.failed} failed)"
        first = str(row.drawn.first or "never")
        reached = "not measured" if row.drawn.reached is None else str(row.drawn.reached)
        workload = row.drawn.workload
        how = _named(row.drawn.anomalies)
    measured = (row.scripted, row.drawn)
    commits = dict.fromkeys(each.commit for each in measured if each and each.commit)
    cells = (
        *(f"`{row.name}`", row.source, str(row.tier), row.symptom),
        *(schedule, workload, found, reached, first, how, ", ".join(commits) or "not recorded"),
    )
    return f"| {' | '.join(cells)} |"


def _guidance(rows: Sequence[Row]) -> list[str]:
    """Return the table of the rows that were searched by chance and guided."""
    compared = [(row, row.compared) for row in rows if isinstance(row.compared, Compared)]
    if not compared:
        return []
    chance = [both.chance for _, both in compared]
    guided = [both.guided for _, both in compared]
    return [
        "",
        "## Guided searches",
        "",
        "These bugs were searched twice from the same first seed, by chance and with `--guided`,",
        "until one run showed them. *first* is the number of that run.",
        "",
        f"Found by chance: {_found(chance)}. Found guided: {_found(guided)}.",
        "",
        "| mutant | of | by chance: first | runs | CPU s | guided: first | runs | CPU s | commit |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            f"| `{row.name}` | {both.chance.workload} | {_searched(both.chance)} |"
            f" {_searched(both.guided)} | {both.guided.commit or 'not recorded'} |"
            for row, both in compared
        ),
    ]


def _found(searches: Sequence[Drawn]) -> str:
    runs, cpu_s = sum(each.runs for each in searches), sum(each.cpu_seconds for each in searches)
    found = sum(each.found > 0 for each in searches)
    return f"{found} of {len(searches)}, in {runs:,} runs and {cpu_s:,.0f} seconds of CPU"


def _searched(drawn: Drawn) -> str:
    return f"{drawn.first or 'never'} | {drawn.runs} | {drawn.cpu_seconds:.0f}"


def _controls(matrix: Matrix) -> list[str]:
    if not matrix.controls:
        return []
    return [
        "",
        "## Controls",
        "",
        "Losses that follow from a configuration (`examples/plans/`). They must be found, must be",
        "permitted by the contract of the run, and must be illegal by the strictest contract.",
        "",
        "| control | permitted | illegal by the strictest contract | distinguished |",
        "|---|---|---|---|",
        *(
            f"| `{control.name}` | {_counted(control.allowed)} | {_counted(control.strict)} |"
            f" {'yes' if control.is_distinguished else '**no**'} |"
            for control in matrix.controls.values()
        ),
    ]


def _counted(anomalies: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in anomalies.items()) or "nothing"


def _named(anomalies: dict[str, int]) -> str:
    return ", ".join(anomalies) or "nothing"
