"""Turns a user's request into a plan: names checked, defaults written out, faults drawn.

An impossible request is refused here, before anything is started, in one line that says what is
wrong and what would be right.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkers.expectations import BadSetting, Contract
from harness.app import (
    catalogue,
    client_settings,
    names,
    plan_numbers,
    schedule_checks,
    service,
    toml_lines,
    versions,
)
from harness.app.refused import Refused
from harness.cluster import settings
from harness.cluster.system import System
from harness.cluster.target import Target
from harness.systems.catalogue import OURS, ZOOKEEPER
from model import data_directories, masking, plan_settings
from model.capabilities.control_plane import CanExpire
from model.capabilities.network import CanRefuse, KeepsClients
from model.plan import Plan, ScheduledFault
from nemesis import schedule
from nemesis.schedule import EVEN, DrawSettings
from workloads.package import Workload

ALL = "all"
NONE = "none"
LONGER_S = (5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0)
"""Time limits that are tried for a suggestion when no fault can be drawn."""
NAMES_NEEDED = "name faults such as kill,partition, or write none"
ALL_MUTANTS = "faultline mutants list"
FIELDS = {"time-limit": "time_limit_s", "rate": "rate_hz", "mutant": "mutants"}
"""Options whose names in a plan file differ from the names of the plan's fields."""
SETTINGS = ("broker", "producer", "consumer")
"""The tables of a plan file with settings of Kafka."""
OF_THE_FILE = ("results", "inline", "lake")
"""Fields of a plan file that are not part of the plan."""
CLIENTS = ("client", "zk_client")
"""The options that select a client's library; a workload has at most one of them."""
OPTIONS = "options"
"""The table with settings of the workload, the target and the system."""


def from_toml(path: Path) -> dict[str, Any]:
    """Return the fields of a plan file.

    A plan file has the options' names without their dashes, tables ``broker``, ``producer``,
    ``consumer`` and ``options``, and the faults as ``[[schedule]]``.
    """
    asked = toml_lines.read(path)
    with toml_lines.about(path):
        return fields_of(asked, str(path))


def fields_of(asked: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the fields of a plan that was read from TOML; a refusal begins with ``where``."""
    fields = {FIELDS.get(name, name): value for name, value in asked.items()}
    for table in ("broker", "producer", "consumer", "expect"):
        if isinstance(fields.get(table), dict):
            try:
                fields[table] = _flat(fields[table])
            except _Odd as error:
                raise Refused(f"{where}: {table}.{error}") from None
    if isinstance(fields.get("nemesis"), str):
        fields["nemesis"] = names_of(fields["nemesis"])
    if isinstance(fields.get("mutants"), str):
        fields["mutants"] = (fields["mutants"],)
    _of_the_file_alone(fields, where)
    known = {field.name for field in msgspec.structs.fields(Plan)} | {*OF_THE_FILE}
    for name in asked:
        if FIELDS.get(name, name) not in known:
            shown = sorted({*known, *FIELDS} - {*FIELDS.values()})
            raise Refused(f"{where}: no setting is called {name}; {names.hint(name, shown)}")
    if fields.get("nemesis") in ([], ()):
        raise Refused(f"{where}: nemesis is empty; {NAMES_NEEDED}")
    if fields.get("rate_hz") == 0:
        raise Refused(f"{where}: rate 0: must be a number of writes per second above 0")
    return fields


def _of_the_file_alone(fields: Mapping[str, Any], where: str) -> None:
    """Check the fields of a plan file that are not part of the plan.

    A file may come from an untrusted source, so it may only choose a folder below the current one.
    """
    if not isinstance(fields.get("inline", False), bool):
        raise Refused(f"{where}: inline: must be true or false")
    for name in ("results", "lake"):
        if name in fields:
            toml_lines.check_below_here(fields[name], name, where)


def names_of(text: str) -> tuple[str, ...]:
    """Split ``a,b`` into names; raises :class:`Refused` for an empty one."""
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise Refused(f"--nemesis {text!r}: a name is missing; {NAMES_NEEDED}")
    return found


def setting(text: str, tables: Sequence[str] = SETTINGS) -> tuple[str, str, str]:
    """Split ``broker.KEY=VALUE`` into its three parts; raises :class:`Refused`.

    ``tables`` are the tables of a plan file that may be named before the dot.
    """
    name, equals, value = text.partition("=")
    table, dot, key = name.partition(".")
    if not (equals and dot and key) or table not in tables:
        others = [f"{other}.KEY=…" for other in tables[1:]]
        raise Refused(
            f"--set {text}: write {tables[0]}.KEY=VALUE, {', '.join(others[:-1])} or {others[-1]}"
        )
    return table, key, value


def settings_of(
    texts: Iterable[str], tables: Sequence[str] = SETTINGS
) -> list[tuple[str, str, str]]:
    """Split each setting; raises :class:`Refused`, also for a setting that occurs twice."""
    found = [setting(text, tables) for text in texts]
    names_ = [f"{table}.{key}" for table, key, _ in found]
    for name in names_:
        if names_.count(name) > 1:
            raise Refused(f"--set {name}: this setting is given more than once; give it once")
    return found


def override(fields: Mapping[str, Any], texts: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a plan with these settings in place of the file's.

    A value of the table ``options`` is read as in a plan file (TOML), and as text if that fails;
    the other tables have only texts. Raises :class:`Refused`.
    """
    changed = dict(fields)
    for table, key, value in settings_of(texts, (*SETTINGS, OPTIONS)):
        of_table = changed.get(table, {})
        if not isinstance(of_table, Mapping):
            raise Refused(f"the plan: {table} must be a table")
        changed[table] = {**of_table, key: _toml(value) if table == OPTIONS else value}
    return changed


def _toml(text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    is_alone, found = len(value) == 1, value["value"]
    return found if is_alone and isinstance(found, bool | int | float | str | list) else text


def plan_of(fields: Mapping[str, Any]) -> Plan:
    """Return a plan with these fields; types are checked, defaults are not yet filled in."""
    if isinstance(fields.get("target"), str):
        known("--target", fields["target"], catalogue.TARGETS)
    fields = {name: value for name, value in fields.items() if name not in OF_THE_FILE}
    try:
        return msgspec.convert(fields, Plan)
    except msgspec.ValidationError as error:
        raise Refused(f"the plan: {error}".replace("`$.", "`")) from None


def resolve(plan: Plan, draw_settings: DrawSettings = EVEN, *, may_be_quiet: bool = False) -> Plan:
    """Return the plan with everything that is needed to run it again, including the drawn faults.

    Raises :class:`Refused`, also if faults are requested but none can be drawn: the verdict could
    then only be UNKNOWN. With ``may_be_quiet`` such a plan is accepted.
    """
    _only_data(plan)
    target = _target(plan)
    known("--workload", plan.workload, catalogue.WORKLOADS)
    workload = catalogue.WORKLOADS[plan.workload]
    plan_numbers.check_run(plan)
    plan = service.fitted(plan, workload)
    try:
        plan = target.complete(plan, workload)
    except ValueError as error:
        raise Refused(str(error)) from None
    system = _system(plan)
    if system.service != workload.service:
        raise Refused(service.mismatch(plan, workload))
    own = {**service.broker_defaults(system, target), **workload.broker}
    defaults = own if target.owns_cluster else {}
    options = default_options(workload, target, system)
    for name in plan.options:
        known("options", name, options)
    resolved = msgspec.structs.replace(
        plan,
        rate_hz=plan.rate_hz or workload.rate_hz * target.pace,
        broker={**defaults, **plan.broker},
        producer={**workload.producer, **plan.producer},
        consumer={**workload.consumer, **target.consumer, **plan.consumer},
        options={**options, **plan.options},
        versions={**versions.in_use(), **system.versions},
        commit=versions.commit(),
    )
    try:
        refusal = (
            target.refuse(resolved)
            or workload.refuse(resolved)
            or _lacking(resolved, system)
            or system.refusal(resolved)
        )
    except (TypeError, ValueError) as error:
        raise Refused(f"options: {error}") from None
    if refusal is not None:
        raise Refused(refusal + client_settings.hint(resolved, refusal))
    # After the options were checked: which faults a cluster suits depends on its nodes, and so on
    # the system's options.
    resolved = msgspec.structs.replace(resolved, nemesis=_nemeses(resolved))
    try:
        Contract.of(resolved)
    except BadSetting as error:
        raise Refused(str(error)) from None
    if resolved.schedule is None:
        resolved = msgspec.structs.replace(resolved, schedule=_draw(resolved, draw_settings))
        if resolved.nemesis and not resolved.schedule and not may_be_quiet:
            raise Refused(too_quiet(resolved, draw_settings))
        return resolved
    if resolved.nemesis and not resolved.schedule and not may_be_quiet:
        raise Refused(
            f"schedule: it has no fault, but nemesis is {', '.join(resolved.nemesis)}; set nemesis"
            " to none for a run without faults"
        )
    schedule_checks.check(resolved)
    return resolved


def with_options(plan: Plan, usual: Mapping[str, Any]) -> Plan:
    """Return the plan with those of the ``usual`` options that it does not set and that its
    workload has."""
    workload = catalogue.WORKLOADS.get(plan.workload)
    has = {} if workload is None else workload.options
    fitting = {name: value for name, value in usual.items() if name in has}
    return msgspec.structs.replace(plan, options={**fitting, **plan.options})


def default_options(workload: Workload, target: Target, system: System) -> dict[str, Any]:
    """Return the options of a plan that sets none."""
    fitted = system.fitted(workload.options)
    of_target = {
        name: value
        for name, value in target.options.items()
        if name not in CLIENTS or name in workload.options
    }
    return {**workload.options, **of_target, **system.options, **fitted}


def too_quiet(plan: Plan, draw_settings: DrawSettings = EVEN) -> str:
    """Return why no fault is drawn, and with which time limit one would be."""
    names_ = ", ".join(plan.nemesis)
    for limit_s in LONGER_S:
        if limit_s > plan.time_limit_s:
            longer = msgspec.structs.replace(plan, time_limit_s=limit_s)
            if _draw(longer, draw_settings):
                return (
                    f"--time-limit {plan.time_limit_s:g}: too short for any fault of {names_} (seed"
                    f" {plan.seed}); {limit_s:g} seconds are enough, or write --nemesis none"
                )
    return (
        f"--nemesis {names_}: no such fault can be drawn for this cluster and its settings; name"
        " others, or none"
    )


def missing_faults(plan: Plan, wanted: Sequence[str]) -> list[str]:
    """Return a line that names the requested nemeses without a fault in a plan, if any."""
    faults = {fault.fault for fault in plan.schedule or ()}
    missing = [
        name
        for name in wanted
        if name in catalogue.NEMESES and not faults & {*catalogue.NEMESES[name].names}
    ]
    if not missing:
        return []
    return [f"the schedule of seed {plan.seed} has no fault of {', '.join(missing)}"]


def standalone(plan: Plan, broker: Mapping[str, str] | None = None) -> Plan:
    """Return the plan of a cluster that is not tested; raises :class:`Refused`.

    ``broker``: settings of brokers that the plan may override.
    """
    _only_data(plan)
    target, system = _target(plan), _system(plan)
    if system.service == "zookeeper":
        plan, broker = msgspec.structs.replace(plan, brokers=0), None
    if target.is_virtual:
        raise Refused(f"--target {target.name}: its clusters exist only within a run")
    if not target.owns_cluster:
        raise Refused(f"--target {target.name}: you start and stop its clusters yourself")
    for component in ("producer", "consumer"):
        for name in getattr(plan, component):
            raise Refused(f"--set {component}.{name}: a cluster has no clients of its own")
    resolved = msgspec.structs.replace(
        plan,
        nemesis=(),
        broker={**service.broker_defaults(system, target), **(broker or {}), **plan.broker},
        options={**target.options, **system.options, **plan.options},
    )
    refusal = target.refuse(resolved) or system.refusal(resolved)
    if refusal is not None:
        raise Refused(refusal)
    return resolved


def _only_data(plan: Plan) -> None:
    """Raise :class:`Refused` for a setting that does more than configure the run's own cluster."""
    tables = {
        component: getattr(plan, component) for component in ("broker", "producer", "consumer")
    }
    if (refusal := plan_settings.refusal(tables)) is not None:
        raise Refused(refusal)


def _target(plan: Plan) -> Target:
    known("--target", plan.target, catalogue.TARGETS)
    target = catalogue.TARGETS[plan.target]
    plan_numbers.check_brokers(plan)
    if (refusal := target.refusal()) is not None:
        raise Refused(f"--target {target.name}: {refusal}")
    return target


def _system(plan: Plan) -> System:
    try:
        system = catalogue.system_of(plan)
    except catalogue.UnknownSystem as error:
        raise Refused(str(error)) from None
    target = catalogue.TARGETS[plan.target]
    if not target.any_system and target.system is None and plan.system not in (OURS, ZOOKEEPER):
        raise Refused(
            f"--target {plan.target}: it runs this project's programs only, not {plan.system};"
            " use --target processes or containers"
        )
    planted = system.mutants()
    if plan.mutants and not planted:
        raise Refused(f"--mutant: no bug can be planted in {plan.system}")
    for name in plan.mutants:
        known("--mutant", name, planted, ALL_MUTANTS)
    return system


def _lacking(plan: Plan, system: System) -> str | None:
    """Return which feature that the workload needs the system lacks; ``None`` if it has all."""
    needs = catalogue.WORKLOADS[plan.workload].needs(plan)
    missing = [need for need in needs if not system.has_kip(need.kip)]
    if not missing:
        return None
    return f"--workload {plan.workload}: it needs {missing[0]}, which {system.name} does not have"


def offered(plan: Plan) -> tuple[str, ...]:
    """Return the nemeses that a plan's target and system offer for its nodes."""
    target, system = catalogue.TARGETS[plan.target], catalogue.system_of(plan)
    layout = system.layout(plan)
    return tuple(
        name
        for name, package in catalogue.NEMESES.items()
        if target.offers(package, plan) and system.offers(package) and package.suits(layout)
    )


def masked(plan: Plan) -> Plan:
    """Return the plan with its secrets masked, so that it may be written to a file."""
    hidden = {
        component: {
            key: masking.masked(key, value) for key, value in getattr(plan, component).items()
        }
        for component in ("broker", "producer", "consumer")
    }
    return msgspec.structs.replace(plan, **hidden)


def _nemeses(plan: Plan) -> tuple[str, ...]:
    names, possible = plan.nemesis, offered(plan)
    if tuple(names) == (ALL,):
        return possible
    if tuple(names) == (NONE,):
        return ()
    for name in names:
        if name in catalogue.NEMESES and name not in possible:
            lacks = catalogue.TARGETS[plan.target].lacks(catalogue.NEMESES[name], plan)
            if lacks is not None:
                raise Refused(f"--nemesis {name}: {lacks}")
        known("--nemesis", name, (*possible, NONE, ALL))
        if name in (NONE, ALL):
            raise Refused(f"--nemesis: {name} cannot be combined with other names")
    return tuple(dict.fromkeys(names))


def _draw(plan: Plan, draw_settings: DrawSettings) -> tuple[ScheduledFault, ...]:
    workload, system = catalogue.WORKLOADS[plan.workload], catalogue.system_of(plan)
    target = catalogue.TARGETS[plan.target]
    kind = target.cluster_kind(plan)
    return schedule.draw(
        [catalogue.NEMESES[name] for name in plan.nemesis],
        layout=system.layout(plan),
        keys=workload.topics(plan),
        coordinators=workload.coordinators(plan),
        trigger_ops=workload.trigger_ops,
        acknowledged=plan.producer.get("acks") != "0",
        replicas=int(plan.options.get("replication_factor", plan.brokers)),
        asked=workload.asked(plan),
        # A target that can end no session gives a controller no reason for requests.
        intercepts_brokers=issubclass(kind, CanExpire),
        refuses_links=issubclass(kind, CanRefuse),
        cuts_clients=not issubclass(kind, KeepsClients),
        internal_topics=target.owns_cluster,
        seed=plan.seed,
        time_limit_s=plan.time_limit_s,
        session_timeout_s=system.session_timeout_s(plan),
        min_isr=settings.min_isr(plan.brokers, plan.broker),
        synced=settings.is_synced(plan.broker),
        start_s=system.start_s,
        directories=data_directories.count(plan.options),
        draw_settings=draw_settings,
    )


def known(option: str, name: str, there: Iterable[str], all_of: str = "") -> None:
    """Refuse an unknown name, and suggest the one that was probably meant."""
    there = list(there)
    if name not in there:
        raise Refused(f"{option}: {names.unknown(name, there, all_of)}")


class _Odd(ValueError):
    """A setting is neither text nor a number; the message begins with its name."""


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Flatten nested tables of settings.

    TOML reads ``min.insync.replicas = 1`` as three nested tables, while Kafka's names are flat and
    its values are strings.
    """
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, str | int | float):
            raise _Odd(f"{prefix}{name}: the value must be text, a number, true or false")
        elif isinstance(value, bool):
            flat[prefix + name] = str(value).lower()
        else:
            flat[prefix + name] = str(value)
    return flat
