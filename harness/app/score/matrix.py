"""The detection matrix: rows of measurements in a file, and the page that is written from it.

The page is never written by hand, and the rows are replaced one by one, so that a score that is
interrupted goes on where it was.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.app import files, private
from harness.app.refused import Refused
from harness.app.search.outcome import Status

DATA, PAGE = "detection-matrix.json", "detection-matrix.md"
FIRST = 1
"""The tier of those that must be found by chance, too."""


class Scripted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the plan of a mutant's own has shown."""

    without: Status
    """Of the correct broker, every fault proved."""
    anomalies: dict[str, int]
    """With the bug planted: how many findings of each, illegal ones."""
    faults: int
    cpu_seconds: float
    """Of both runs."""
    commit: str | None = None
    """What was measured; none outside of a repository."""


class Drawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a search has shown, with plans drawn from seeds."""

    seed: int
    """The first one."""
    runs: int
    found: int
    """In how many of them something illegal was found."""
    first: int | None
    """The first run of these, counted from 1."""
    failed: int
    anomalies: dict[str, int]
    """In how many runs each was found."""
    cpu_seconds: float
    workload: str = "idempotent"
    """That was asked of all of them."""
    commit: str | None = None
    """What was measured; none outside of a repository."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A mutant, and how surely it is found."""

    name: str
    source: str
    tier: int
    symptom: str
    """What it must be reported as."""
    scripted: Scripted | None = None
    drawn: Drawn | None = None

    @property
    def is_shown(self) -> bool:
        """By its schedule, as its story has it, which is green without it."""
        seen = self.scripted
        return seen is not None and seen.without == "valid" and self.symptom in seen.anomalies

    @property
    def is_found(self) -> bool:
        """By chance."""
        return self.drawn is not None and self.drawn.found > 0


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A loss that follows from a configuration: found, and judged by what was promised."""

    name: str
    status: Status
    """By its own contract."""
    allowed: dict[str, int]
    strict: dict[str, int]
    """What is illegal by the strictest contract."""

    @property
    def is_told_apart(self) -> bool:
        """Found under both, permitted by one only."""
        return self.status == "valid" and bool(self.allowed) and bool(self.strict)


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known."""

    rows: dict[str, Row] = {}
    controls: dict[str, Control] = {}

    def with_row(self, row: Row) -> "Matrix":
        """This one instead of the one of its name."""
        rows = self.rows | {row.name: row}
        return msgspec.structs.replace(self, rows=dict(sorted(rows.items())))

    def with_control(self, control: Control) -> "Matrix":
        """The same of a control."""
        controls = self.controls | {control.name: control}
        return msgspec.structs.replace(self, controls=dict(sorted(controls.items())))

    def of(self, names: Iterable[str]) -> "Matrix":
        """Without mutants that there are no more."""
        kept = {name: self.rows[name] for name in names if name in self.rows}
        return msgspec.structs.replace(self, rows=kept)


def read(folder: Path) -> Matrix:
    """What has been measured before; raises :class:`Refused` for a file that is none of ours."""
    path = folder / DATA
    if not path.exists():
        return Matrix()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Matrix)
    except msgspec.MsgspecError as error:
        raise Refused(f"{path}: {error}") from None


def write(matrix: Matrix, folder: Path) -> None:
    """Both files."""
    document = msgspec.json.format(msgspec.json.encode(matrix), indent=2)
    with private.as_asked():  # they are documents of the repository
        files.replace(folder / DATA, document + b"\n")
        files.replace(folder / PAGE, page(matrix).encode())


def page(matrix: Matrix) -> str:
    """The matrix for a reader."""
    rows = sorted(matrix.rows.values(), key=lambda row: (row.source, row.name))
    return "\n".join([*_HEAD, *_summary(rows), "", *_mutants(rows), *_controls(matrix), ""])


_HEAD = (
    "# Detection matrix",
    "",
    "Written by `faultline mutants score`; what is not measured is not here.",
    "",
    "Each planted bug has a schedule of its own (`examples/mutants/`), which must be red with the",
    "bug, as the anomaly, invariant or `stuck` that its story names, and valid without it. Beside",
    "that, seeds are drawn as `faultline search` draws them, until the third run in which anything",
    "illegal is found: *found* says in how many of how many runs, *first* which run it was, *of*",
    "which workload they were. The *commits* are those at which it was measured, by schedule and",
    "by seeds.",
    "",
)


def _summary(rows: Sequence[Row]) -> list[str]:
    shown = sum(row.is_shown for row in rows)
    wanted = [row for row in rows if row.tier == FIRST]
    drawn = [row for row in wanted if row.drawn is not None]
    found = sum(row.is_found for row in drawn)
    lines = [f"Shown by their schedules: {shown} of {len(rows)}."]
    if drawn:
        left = len(wanted) - len(drawn)
        more = f"; {left} not measured" if left else ""
        lines.append(f"Of tier {FIRST}, found by chance: {found} of {len(drawn)}{more}.")
    return lines


def _mutants(rows: Sequence[Row]) -> list[str]:
    return [
        "| mutant | source | tier | must show as | schedule | of | found | first | as | commits |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in rows),
    ]


def _line(row: Row) -> str:
    schedule = workload = found = first = how = "not measured"
    if row.scripted is not None:
        schedule = "yes" if row.is_shown else f"**no**: {_counted(row.scripted.anomalies)}"
    if row.drawn is not None:
        found = f"{row.drawn.found} of {row.drawn.runs}"
        if row.drawn.failed:
            found += f" ({row.drawn.failed} failed)"
        first = str(row.drawn.first or "never")
        workload = row.drawn.workload
        how = _named(row.drawn.anomalies)
    measured = (row.scripted, row.drawn)
    commits = dict.fromkeys(each.commit for each in measured if each and each.commit)
    cells = (
        *(f"`{row.name}`", row.source, str(row.tier), row.symptom),
        *(schedule, workload, found, first, how, ", ".join(commits) or "not noted"),
    )
    return f"| {' | '.join(cells)} |"


def _controls(matrix: Matrix) -> list[str]:
    if not matrix.controls:
        return []
    return [
        "",
        "## Controls",
        "",
        "Losses that follow from a configuration (`examples/plans/`): found, permitted by the",
        "contract of the run, illegal by the strictest one.",
        "",
        "| control | permitted | illegal by the strictest contract | told apart |",
        "|---|---|---|---|",
        *(
            f"| `{control.name}` | {_counted(control.allowed)} | {_counted(control.strict)} |"
            f" {'yes' if control.is_told_apart else '**no**'} |"
            for control in matrix.controls.values()
        ),
    ]


def _counted(anomalies: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in anomalies.items()) or "nothing"


def _named(anomalies: dict[str, int]) -> str:
    return ", ".join(anomalies) or "nothing"
