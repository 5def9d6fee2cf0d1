"""What a user asked for becomes a plan: names checked, every default written out, faults drawn.

Whatever is impossible is refused here, before anything is started, in one line that says what is
wrong and what would be right.
"""

import functools
import importlib.metadata
import math
import platform
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import msgspec

from checkers.expectations import BadSetting, Contract
from harness.app import catalogue
from harness.app.refused import Refused
from harness.cluster import settings
from model.plan import Plan, ScheduledFault
from model.roles import broker
from nemesis import schedule
from nemesis.schedule import EVEN, Temper

ALL = "all"
NONE = "none"
TIME_LIMIT_MAX_S = 7 * 24 * 3600
"""A week. This limit and the next are far above what is of use, and below what would keep a machine
busy for minutes before anything starts."""
CONCURRENCY_MAX = 10_000
RATE_MAX_HZ = 1_000_000
BROKERS_MAX = 100
_SECRET = ("password", "secret", "jaas.config", "private.key", "keystore.key", "key.pem")
_ROOT = Path(__file__).resolve().parents[2]


def from_toml(path: Path) -> dict[str, Any]:
    """The fields of a plan file: the options' names without dashes before them, tables ``broker``,
    ``producer``, ``consumer`` and ``options``, and the faults as ``[[schedule]]``."""
    try:
        asked = tomllib.loads(path.read_text())
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: {error}") from None
    return fields_of(asked, str(path))


def fields_of(asked: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a plan that was read from TOML; ``where`` begins the line of a refusal."""
    names = {"time-limit": "time_limit_s", "rate": "rate_hz", "mutant": "mutants"}
    fields = {names.get(name, name): value for name, value in asked.items()}
    for table in ("broker", "producer", "consumer", "expect"):
        if isinstance(fields.get(table), dict):
            fields[table] = _flat(fields[table])
    if isinstance(fields.get("nemesis"), str):
        fields["nemesis"] = names_of(fields["nemesis"])
    if isinstance(fields.get("mutants"), str):
        fields["mutants"] = (fields["mutants"],)
    known = {field.name for field in msgspec.structs.fields(Plan)} | {"results", "inline"}
    for name in fields:
        if name not in known:
            raise Refused(f"{where}: no setting is called {name}; there are {_list(sorted(known))}")
    return fields


def names_of(text: str) -> tuple[str, ...]:
    """``a,b`` as names; an empty one is left out."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def setting(text: str) -> tuple[str, str, str]:
    """``broker.KEY=VALUE`` as its three parts; raises :class:`Refused`."""
    name, equals, value = text.partition("=")
    whose, dot, key = name.partition(".")
    if not (equals and dot and key) or whose not in ("broker", "producer", "consumer"):
        raise Refused(f"--set {text}: write broker.KEY=VALUE, producer.KEY=… or consumer.KEY=…")
    return whose, key, value


def plan_of(fields: Mapping[str, Any]) -> Plan:
    """A plan of these fields, types checked, defaults still open."""
    if isinstance(fields.get("target"), str):
        _known("--target", fields["target"], catalogue.TARGETS)
    fields = {name: value for name, value in fields.items() if name not in ("results", "inline")}
    try:
        return msgspec.convert(fields, Plan)
    except msgspec.ValidationError as error:
        raise Refused(f"the plan: {error}".replace("`$.", "`")) from None


def resolve(plan: Plan, temper: Temper = EVEN) -> Plan:
    """The plan with all that is needed to run it again, faults that are drawn among it; raises
    :class:`Refused`."""
    target = _target(plan)
    _known("--workload", plan.workload, catalogue.WORKLOADS)
    workload = catalogue.WORKLOADS[plan.workload]
    _positive("--time-limit", plan.time_limit_s, TIME_LIMIT_MAX_S)
    _positive("--concurrency", plan.concurrency, CONCURRENCY_MAX)
    if plan.rate_hz != 0:
        _positive("--rate", plan.rate_hz, RATE_MAX_HZ)
    for name in plan.options:
        _known("options", name, {**workload.options, **target.options})
    resolved = msgspec.structs.replace(
        plan,
        nemesis=_nemeses(plan.nemesis, target),
        rate_hz=plan.rate_hz or workload.rate_hz * target.pace,
        broker={**target.broker, **workload.broker, **plan.broker},
        producer={**workload.producer, **plan.producer},
        consumer={**workload.consumer, **target.consumer, **plan.consumer},
        options={**workload.options, **target.options, **plan.options},
        versions=versions(),
        commit=commit(),
    )
    try:
        refusal = (
            target.refuse(resolved)
            or workload.refuse(resolved)
            or settings.refusal(resolved.broker)
        )
    except (TypeError, ValueError) as error:
        raise Refused(f"options: {error}") from None
    if refusal is not None:
        raise Refused(refusal)
    try:
        Contract.of(resolved)
    except BadSetting as error:
        raise Refused(str(error)) from None
    if resolved.schedule is None:
        return msgspec.structs.replace(resolved, schedule=_draw(resolved, temper))
    faults = [fault for name in resolved.nemesis for fault in catalogue.NEMESES[name].faults]
    numbers = set()
    for entry in resolved.schedule:
        _known("schedule", entry.fault, faults)
        if entry.id in numbers:
            raise Refused(f"schedule: two faults have the id {entry.id}; each needs its own")
        numbers.add(entry.id)
        if not (entry.at_s >= 0 and 0 <= entry.duration_s < math.inf):
            raise Refused(f"schedule: fault {entry.id} ({entry.fault}) needs times of 0 or more")
        if entry.at_s >= resolved.time_limit_s:
            raise Refused(
                f"schedule: fault {entry.id} ({entry.fault}) is to come at {entry.at_s:g} s,"
                f" but --time-limit is {resolved.time_limit_s:g} s"
            )
    return resolved


def bare(plan: Plan) -> Plan:
    """The plan of a cluster that nobody tests; raises :class:`Refused`."""
    target = _target(plan)
    if target.is_virtual:
        raise Refused(f"--target {target.name}: its clusters live within a run, on virtual time")
    for whose in ("producer", "consumer"):
        for name in getattr(plan, whose):
            raise Refused(f"--set {whose}.{name}: a cluster has no clients of its own")
    resolved = msgspec.structs.replace(
        plan,
        nemesis=(),
        broker={**target.broker, **plan.broker},
        options={**target.options, **plan.options},
    )
    refusal = target.refuse(resolved) or settings.refusal(resolved.broker)
    if refusal is not None:
        raise Refused(refusal)
    return resolved


def _target(plan: Plan) -> catalogue.Target:
    _known("--target", plan.target, catalogue.TARGETS)
    target = catalogue.TARGETS[plan.target]
    _positive("--brokers", plan.brokers, BROKERS_MAX)
    for name in plan.mutants:
        _known("--mutant", name, target.mutants())
    if (refusal := target.refusal()) is not None:
        raise Refused(f"--target {target.name}: {refusal}")
    return target


def offered(target: catalogue.Target) -> tuple[str, ...]:
    """The nemeses whose needs a target meets."""
    return tuple(
        name
        for name, package in catalogue.NEMESES.items()
        if all(issubclass(target.kind, need) for need in package.needs)
    )


def masked(plan: Plan) -> Plan:
    """The plan as it may be written to a file: secrets are not."""
    hidden = {
        whose: {
            key: "***" if any(word in key.lower() for word in _SECRET) else value
            for key, value in getattr(plan, whose).items()
        }
        for whose in ("broker", "producer", "consumer")
    }
    return msgspec.structs.replace(plan, **hidden)


@functools.cache
def versions() -> dict[str, str]:
    """What the run is made of."""
    names = ("faultline", "aiokafka", "confluent-kafka", "pyspark", "toxiproxy-python")
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
        "librdkafka": confluent_kafka.libversion()[0],
    }


@functools.cache
def commit() -> str:
    """The commit that this is, with ``-dirty`` for changes; empty outside of a repository."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return described.stdout.strip() if described.returncode == 0 else ""


def _nemeses(names: Sequence[str], target: catalogue.Target) -> tuple[str, ...]:
    possible = offered(target)
    if tuple(names) == (ALL,):
        return possible
    if tuple(names) == (NONE,):
        return ()
    for name in names:
        _known("--nemesis", name, (*possible, NONE, ALL))
        if name in (NONE, ALL):
            raise Refused(f"--nemesis: {name} stands alone")
    return tuple(dict.fromkeys(names))


def _draw(plan: Plan, temper: Temper) -> tuple[ScheduledFault, ...]:
    workload = catalogue.WORKLOADS[plan.workload]
    return schedule.draw(
        [catalogue.NEMESES[name] for name in plan.nemesis],
        brokers=tuple(broker(number) for number in range(1, plan.brokers + 1)),
        keys=workload.topics(plan),
        coordinators=workload.coordinators(plan),
        moments=workload.moments,
        acknowledged=plan.producer.get("acks") != "0",
        replicas=int(plan.options["replication_factor"]),
        asked=workload.asked(plan),
        seed=plan.seed,
        time_limit_s=plan.time_limit_s,
        session_timeout_s=settings.session_timeout_s(plan.broker),
        min_isr=settings.min_isr(plan.brokers, plan.broker),
        synced=settings.is_synced(plan.broker),
        temper=temper,
    )


def _known(option: str, name: str, known: Mapping[str, Any] | Sequence[str]) -> None:
    if name not in known:
        raise Refused(f"{option}: no {name}; there is {_list(known)}")


def _positive(option: str, number: float, most: float) -> None:
    if not (number > 0 and math.isfinite(number)):
        raise Refused(f"{option} {number:g}: must be a number above 0")
    if number > most:
        raise Refused(f"{option} {number:.15g}: must be {most:,} at most")


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """TOML reads ``min.insync.replicas = 1`` as three tables in each other; Kafka's names are flat,
    and its values are strings."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            flat[prefix + name] = str(value).lower()
        else:
            flat[prefix + name] = str(value)
    return flat
