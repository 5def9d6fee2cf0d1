"""Turns a suite file into a list of cases: every combination of what its matrices name.

Every field is checked, and every case's plan is resolved, before anything is started. An error in
the last case of a night is therefore reported in its first second.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.app import catalogue, names, options, plan_numbers, plan_resolution, toml_lines
from harness.app.gate import systems as systems_
from harness.app.refused import Refused
from harness.systems.catalogue import OURS
from model.plan import Plan
from model.text import brief

DEFAULT = "default"
"""The configuration without changes, unless a suite defines it."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_TABLES = ("broker", "producer", "consumer", "expect", "options")
_CONFIGURATION = (
    *_TABLES, "brokers", "concurrency", "rate", "time-limit", "mutants",
)  # fmt: skip


class _Matrix(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``[[matrix]]``: its axes are lists.

    An axis that is left out has the plan file's value, or the default of ``faultline run``.
    """

    plan: str | None = None
    workload: list[str] | None = None
    nemesis: list[list[str]] | None = None
    configuration: list[str] | None = None
    target: list[str] | None = None
    system: list[str] | None = None
    seed: list[int] | None = None
    time_limit: float | None = None


class _File(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The content of a suite file."""

    matrix: list[_Matrix] = []
    name: str | None = None
    time_limit: float | None = None
    budget_minutes: float | None = None
    inline: bool = False
    keep: int = 2
    lake: str | None = None
    optional_targets: list[str] = []
    optional_systems: list[str] = []
    configurations: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """A case as the suite file defines it."""

    name: str
    nemesis: tuple[str, ...]
    configuration: str
    plan: Plan
    """The plan, not yet resolved."""
    left_out: str | None = None
    """Why the command line excludes the case; ``None`` if it does not."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The request of a suite file."""

    name: str
    cases: tuple[CaseRequest, ...]
    budget_s: float | None
    """The time budget for all cases; ``None`` means no limit."""
    inline: bool
    keep: int
    """How many folders of valid cases are kept."""
    lake: str | None
    """The folder of the lake to which the gate adds its runs; ``None`` if the file names none."""
    optional: tuple[str, ...]
    """Targets whose cases are skipped on a machine that cannot offer them."""
    optional_systems: tuple[str, ...]
    """Systems whose cases are skipped on a machine that does not have their programs."""
    files: tuple[Path, ...]
    """The suite's own file, and its plan files."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A case that can be run, or the reason why it is skipped."""

    asked: CaseRequest
    plan: Plan
    """The resolved plan, unless the case is skipped."""
    left_out: str | None = None


def load(
    path: Path,
    *,
    seed: int | None = None,
    mutants: Sequence[str] = (),
    require: Sequence[str] = (),
    systems: Sequence[str] = (),
) -> Suite:
    """Return the suite of a TOML file; raises :class:`~harness.app.refused.Refused`.

    ``seed`` replaces the first seed of each matrix, the next number the second seed, and so on.
    ``mutants`` are planted in every case. A target or a system in ``require`` is not optional,
    whatever the suite says. ``systems`` replace those of the suite
    (:func:`harness.app.gate.systems.selected`), and each of them has the suite's whole budget.
    """
    document = toml_lines.read(path)
    with toml_lines.about(path, ["--require", "--system"]):
        return suite(document, path, seed=seed, mutants=mutants, require=require, systems=systems)


def suite(
    document: Mapping[str, Any],
    path: Path,
    *,
    seed: int | None = None,
    mutants: Sequence[str] = (),
    require: Sequence[str] = (),
    systems: Sequence[str] = (),
) -> Suite:
    """Return the suite of a parsed document; plan files are looked up relative to ``path``.

    See :func:`load` for the other arguments.
    """
    file = _checked(document, path)
    systems_.check(systems)
    name = path.stem if file.name is None else file.name
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{path}: name {name!r}: a suite's name consists of small letters, digits and . _ -"
        )
    known = {DEFAULT: {}, **file.configurations}
    for configuration in file.configurations:
        if not _NAME.fullmatch(configuration):
            raise Refused(
                f"{path}: configuration {configuration!r}: its name must consist of small letters,"
                " digits and . _ -"
            )
    configurations = {
        name: _configuration(fields, f"{path}: configuration {name}")
        for name, fields in known.items()
    }
    cases: list[CaseRequest] = []
    for number, matrix in enumerate(file.matrix, start=1):
        where = f"{path}: matrix {number}"
        cases += _cases(
            matrix, file, configurations, where, path.parent, seed, tuple(mutants), systems
        )
    names: set[str] = set()
    budget_s = None
    if file.budget_minutes is not None:
        budget_s = file.budget_minutes * 60 * max(1, len(systems))
    for case in cases:
        if case.name in names:
            raise Refused(
                f"{path}: two cases have the name {case.name!r}; no combination may occur twice"
            )
        names.add(case.name)
        if budget_s is not None and case.plan.time_limit_s > budget_s:
            raise Refused(
                f"{path}: {case.name}: the time limit of {case.plan.time_limit_s:g} s exceeds"
                f" the whole budget of {budget_s / 60:g} min"
            )
    targets = {case.plan.target for case in cases}
    run = {case.plan.system for case in cases}
    for required in require:
        _known("--require", required, (*catalogue.TARGETS, *sorted(run)))
        if required not in targets | run:
            raise Refused(f"--require {required}: no case of {path} uses this target")
    return Suite(
        name=name,
        cases=tuple(cases),
        budget_s=budget_s,
        inline=file.inline,
        keep=file.keep,
        lake=file.lake,
        optional=tuple(name for name in file.optional_targets if name not in require),
        optional_systems=tuple(name for name in file.optional_systems if name not in require),
        files=(path, *(path.parent / matrix.plan for matrix in file.matrix if matrix.plan)),
    )


def ready(asked: Suite) -> list[Ready]:
    """Return every case with its resolved plan, in order.

    A case on an optional target or system that the machine cannot offer is skipped. Raises
    :class:`~harness.app.refused.Refused` for any other plan that cannot be resolved.
    """
    missing = {
        name: f"the optional target {name} is not available here: {why}"
        for name in asked.optional
        if (why := _missing(name)) is not None
    } | systems_.missing(asked.optional_systems)
    found = []
    for case in asked.cases:
        left_out = (case.left_out, missing.get(case.plan.target), missing.get(case.plan.system))
        if (why := next(filter(None, left_out), None)) is not None:
            found.append(Ready(case, case.plan, why))
            continue
        try:
            found.append(Ready(case, plan_resolution.resolve(case.plan)))
        except Refused as error:
            raise Refused(f"{case.name}: {error}") from None
    return found


def _missing(target: str) -> str | None:
    """Return why this machine cannot offer a target; ``None`` if it can."""
    try:
        plan_resolution.resolve(Plan(target=target))
    except Refused as error:
        return str(error)
    return None


def _checked(document: Mapping[str, Any], path: Path) -> _File:
    """Check the document, names before types: a refusal of a name can suggest the right one."""
    _only(document, _names(_File), str(path))
    tables = document.get("matrix")
    for number, table in enumerate(tables if isinstance(tables, list) else (), start=1):
        if isinstance(table, dict):
            _only(table, _names(_Matrix), f"{path}: matrix {number}")
    try:
        file = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        raise Refused(f"{path}: {_spoken(error)}") from None
    if not file.matrix:
        raise Refused(f"{path}: the suite has no [[matrix]], so it has no cases")
    for name in file.optional_targets:
        _known(f"{path}: optional-targets", name, catalogue.TARGETS)
    systems_.check(file.optional_systems, f"{path}: optional-systems: ")
    if not 0 <= file.keep <= options.KEEP_MAX:
        raise Refused(f"{path}: keep {brief(file.keep)}: must be 0 to {options.KEEP_MAX:,}")
    if file.lake is not None:
        toml_lines.check_below_here(file.lake, "lake", str(path))
    if file.time_limit is not None:
        try:
            plan_numbers.check(Plan(time_limit_s=file.time_limit))
        except Refused as error:
            raise Refused(f"{path}: {str(error).removeprefix('--')}") from None
    if file.budget_minutes is not None and not file.budget_minutes > 0:
        raise Refused(f"{path}: budget-minutes {file.budget_minutes:g}: must be a number above 0")
    return file


def _configuration(fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a configuration as fields of a plan."""
    _only(fields, _CONFIGURATION, where)
    changed = plan_resolution.fields_of(fields, where)
    _plan(changed, where)
    return changed


def _plan(fields: Mapping[str, Any], where: str) -> Plan:
    try:
        return plan_resolution.plan_of(fields)
    except Refused as error:
        raise Refused(f"{where}: {str(error).removeprefix('the plan: ')}") from None


def _cases(
    matrix: _Matrix,
    file: _File,
    configurations: Mapping[str, Mapping[str, Any]],
    where: str,
    folder: Path,
    seed: int | None,
    mutants: tuple[str, ...],
    systems: Sequence[str],
) -> list[CaseRequest]:
    for axis in ("workload", "nemesis", "configuration", "target", "system", "seed"):
        if getattr(matrix, axis) == []:
            raise Refused(f"{where}: {axis} is empty, so the matrix has no cases")
    for together in matrix.nemesis or ():
        if not together:
            raise Refused(f"{where}: a nemesis set is empty; write ['none'] for no faults")
        for name in together:
            _known(
                f"{where}: nemesis",
                name,
                (*catalogue.NEMESES, plan_resolution.ALL, plan_resolution.NONE),
            )
    for name in matrix.workload or ():
        _known(f"{where}: workload", name, catalogue.WORKLOADS)
    for name in matrix.target or ():
        _known(f"{where}: target", name, catalogue.TARGETS)
    for name in matrix.configuration or ():
        _known(f"{where}: configuration", name, configurations)
    systems_.check(matrix.system or (), f"{where}: system: ")
    base: dict[str, Any] = {"nemesis": (plan_resolution.ALL,)}
    if file.time_limit is not None:
        base["time_limit_s"] = file.time_limit
    stem = None
    if matrix.plan is not None:
        stem = Path(matrix.plan).stem
        if not stem.isprintable():
            raise Refused(f"{where}: plan {matrix.plan!r}: its name has unprintable characters")
        try:
            base |= plan_resolution.from_toml(folder / matrix.plan)
        except Refused as error:
            raise Refused(f"{where}: plan {error}") from None
    plan = _plan(base, where)
    seeds = matrix.seed or [plan.seed]
    if seed is not None:
        seeds = [seed + place for place in range(len(seeds))]
    sets: list[tuple[str, ...] | None] = [None]
    if matrix.nemesis is not None:
        sets = [tuple(together) for together in matrix.nemesis]
    found = []
    combinations = itertools.product(
        matrix.workload or [plan.workload],
        sets,
        matrix.configuration or [DEFAULT],
        matrix.target or [plan.target],
        seeds,
    )
    for (workload, nemesis, configuration, target, number), (system, left_out) in (
        (combination, chosen)
        for combination in combinations
        for chosen in systems_.selected(combination[3], matrix.system or [plan.system], systems)
    ):
        fields = _over(base, configurations[configuration])
        fields |= {"workload": workload, "seed": number}
        if nemesis is not None:
            fields["nemesis"] = nemesis
        if matrix.time_limit is not None:
            fields["time_limit_s"] = matrix.time_limit
        fields["mutants"] = tuple(dict.fromkeys((*fields.get("mutants", ()), *mutants)))
        case = msgspec.structs.replace(_plan(fields, where), target=target, system=system)
        struck = ",".join(case.nemesis)
        what = struck if stem is None else stem if nemesis is None else f"{stem} with {struck}"
        place = (target,) if system == OURS else (target, system)
        name = " · ".join((workload, what, configuration, *place, f"seed {number}"))
        found.append(CaseRequest(name, case.nemesis, configuration, case, left_out))
    return found


def _over(base: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the fields of two plans; the second wins, and tables are merged entry by entry."""
    both = {**base, **fields}
    for table in _TABLES:
        if table in base and table in fields:
            both[table] = {**base[table], **fields[table]}
    both["mutants"] = (*base.get("mutants", ()), *fields.get("mutants", ()))
    return both


def _names(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def _only(table: Iterable[str], known: Sequence[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise Refused(
                f"{where}: no setting is called {name}; {names.hint(name, sorted(known))}"
            )


def _known(where: str, name: str, known: Iterable[str]) -> None:
    plan_resolution.known(where, name, known)


def _spoken(error: msgspec.ValidationError) -> str:
    """Return msgspec's message ``Expected `array`, got `str` - at `$.x` `` with the place first."""
    what, _, at = str(error).partition(" - at ")
    place = at.strip("`").removeprefix("$.")
    return f"{place}: {what}" if place else what
