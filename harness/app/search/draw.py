"""Draws a plan from a seed: everything that a plan can vary is drawn, as in swarm testing.

Each run leaves some kinds of faults out and has many of others, so that a thousand runs cover more
than a thousand repetitions of the average run. Each value is drawn whether it is used or not, so
that a setting that a user pins does not change any other draw.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from harness.app import catalogue, plan_resolution
from harness.app.refused import Refused
from harness.app.search import broker_draw, ensemble_draw, layouts, workload_draw
from harness.app.search.layouts import EXCLUSIVE_PS, Layout
from harness.cluster import security
from model import data_directories
from model.plan import Plan
from nemesis import directories
from nemesis.schedule import DrawSettings
from workloads import asking
from workloads.package import Workload

TIME_LIMIT_S = 40.0
"""The duration of the workload.

With five seconds without faults at either end there is time for four faults and more.
"""
FAULTS_MIN = 4
"""If fewer faults are drawn, all kinds of faults take part.

Some kinds take long, or rarely fit in.
"""
PAUSE_SCALES = (0.3, 0.6, 1.0, 1.5)
"""The length of pauses between faults, relative to a single run's."""
REPEAT_TARGET_PS = (0.0, 0.0, 0.4, 0.8)
"""The probability that a fault has the target of the fault before it."""
STRIKE_PS = (0.0, 0.5, 0.9)
"""The probability that an operator's request comes shortly before another fault."""
OUTSIDERS_MS = (0, 0, 0, 500)
"""The mean pauses between the fetches of a client without rights; 0: there is none."""
POINT_SHARES = (0.0, 0.0, 0.1, 0.5)
"""The share of code paths that wait where the order of two actions is open."""
POINTS_MS = (100, 500, 1000)
"""How long they wait at most."""
DATA_DIRECTORIES = (1, 1, 1, 2)
"""How many data directories each broker has."""
DIRECTORIES_P = 0.8
"""How likely a run with several data directories has faults of them."""
SECURITIES = ("none", "none", "none", "none", "none", "none", "none", "scram")
"""How brokers are protected: only with ``scram`` must the clients of workloads authenticate."""
ACCESS_P = 0.8
"""How likely a run with users has faults that change their passwords and rights."""
CLIENTS_CLOCKS_S = (0, 0, 0, -200_000, -30, 300)
"""How far clients' clocks are ahead.

Records whose timestamps are more than a day old come from a mirror, or from a machine with a wrong
clock. No decision of a broker may depend on them.
"""
RATE_HZ_MAX = 15.0
"""The maximum number of operations per second.

Batches provide the records, and each operation costs CPU time.
"""
PARTITIONS_MAX = 12
"""The maximum number of partitions of all topics: followers fetch each of them all the time."""
PROTOCOLS = (None, None, None, "epochs-by-question", "epochs-by-fetch", "epochs-unsynced")
"""How a follower finds the offset at which its log diverges from the leader's, and whether epochs
are synced before the batches that belong to them.

``None`` stands for the broker's default protocol, which has both checks: that before Kafka 2.7, and
that since then.
"""
QUIET_SEEDS = 5
"""The number of seeds that are tried before a request is refused because no fault is drawn."""
OWN = ("nemesis", "seed", *plan_resolution.OF_THE_FILE)
"""Fields of a plan file that the search itself handles."""


def plan_of(seed: int, pinned: Mapping[str, Any]) -> Plan:
    """Return the resolved plan of a seed, including its schedule.

    ``pinned`` are fields of a plan, as in options and plan files; the workload is drawn unless it
    is one of them. Raises :class:`~harness.app.refused.Refused`.
    """
    plan_resolution.plan_of(pinned)  # checks their types before they are used
    return workload_draw.plan_of(seed, pinned, lambda fields: _of_fields(seed, fields))


def _of_fields(seed: int, pinned: Mapping[str, Any]) -> Plan:
    """Return the resolved plan of a seed for fields that name the workload."""
    workload = catalogue.WORKLOADS.get(pinned["workload"])
    if workload is not None and workload.service == "zookeeper":
        return _of_ensemble(seed, pinned, workload)
    rng = random.Random(f"{seed}:search")
    layout = layouts.drawn(rng, pinned)
    options = _options(rng, layout)
    wanted = pinned.get("nemesis", (plan_resolution.ALL,))
    records_hz = rng.uniform(35.0, 80.0)
    batch_max = rng.choice((4, 8, 12, 24))
    drawn: dict[str, Any] = {
        "target": "simulated",
        "seed": seed,
        "time_limit_s": TIME_LIMIT_S,
        "rate_hz": round(min(RATE_HZ_MAX, records_hz * 2 / (1 + batch_max)), 2),
        "concurrency": rng.randint(4, 8),
        "brokers": layout.brokers,
        "nemesis": _nemesis(rng, wanted, layout.always),
    }
    if "schedule" in pinned:
        drawn["nemesis"] = wanted  # the schedule itself determines the faults
    parts: dict[str, dict[str, Any]] = {
        "broker": broker_draw.settings(rng, seed, layout),
        "producer": _producer(rng),
        "consumer": {"fetch.wait.max.ms": str(rng.choice((100, 250, 500, 500)))},
        "options": options | {"batch_max": batch_max},
    }
    _clocks(random.Random(f"{seed}:search:clocks"), parts)
    parts["options"]["outsider_ms"] = random.Random(f"{seed}:search:outsider").choice(OUTSIDERS_MS)
    points = random.Random(f"{seed}:search:points")
    parts["options"]["point_share"] = points.choice(POINT_SHARES)
    parts["options"]["point_ms"] = points.choice(POINTS_MS)
    directories_rng = random.Random(f"{seed}:search:data-directories")
    parts["options"][data_directories.OPTION] = directories_rng.choice(DATA_DIRECTORIES)
    secured = random.Random(f"{seed}:search:security")
    parts["options"]["security"] = secured.choice(SECURITIES)
    strike_p = random.Random(f"{seed}:search:strikes").choice(STRIKE_PS)
    draw_settings = DrawSettings(
        rng.choice(PAUSE_SCALES), rng.choice(REPEAT_TARGET_PS), rng.choice(layout.alone), strike_p
    )
    varied = _of_workload(workload, {"plan": {}, **parts}, seed)
    drawn |= varied.pop("plan")
    for part, fields in varied.items():
        drawn[part] = {**fields, **pinned.get(part, {})}
    _only_simulated(pinned)
    if tuple(drawn["nemesis"]) != tuple(wanted) and secured.random() < ACCESS_P:
        drawn["nemesis"] = (*drawn["nemesis"], *_of_access(drawn["options"]))
    if tuple(drawn["nemesis"]) != tuple(wanted) and directories_rng.random() < DIRECTORIES_P:
        drawn["nemesis"] = (*drawn["nemesis"], *_of_directories(drawn["options"]))
    fixed = {name: value for name, value in pinned.items() if name not in (*parts, *OWN)}
    protocol = rng.choice(PROTOCOLS)
    if protocol is not None:
        # First in order, so that a mutant of the user overrides it.
        planted = tuple(name for name in fixed.get("mutants", ()) if name != protocol)
        fixed["mutants"] = (protocol, *planted)
    plan = plan_resolution.resolve(
        plan_resolution.plan_of(drawn | fixed), draw_settings, may_be_quiet=True
    )
    if len(plan.schedule or ()) < FAULTS_MIN and tuple(wanted) == (plan_resolution.ALL,):
        drawn["nemesis"] = (plan_resolution.ALL,)
        draw_settings = draw_settings._replace(pause_scale=min(PAUSE_SCALES))
        plan = plan_resolution.resolve(
            plan_resolution.plan_of(drawn | fixed), draw_settings, may_be_quiet=True
        )
    return broker_draw.guarded(plan, pinned.get("broker", {}))


def _of_ensemble(seed: int, pinned: Mapping[str, Any], workload: Workload) -> Plan:
    """Return the resolved plan of a seed for a workload of ZooKeeper."""
    _only_simulated(pinned)
    rng = random.Random(f"{seed}:search")
    drawn = ensemble_draw.fields_of(rng, pinned)
    wanted = tuple(pinned.get("nemesis", (plan_resolution.ALL,)))
    if "schedule" in pinned or wanted != (plan_resolution.ALL,):
        drawn["nemesis"] = wanted
    drawn["options"] = ensemble_draw.varied(workload, seed, drawn["options"])
    base = {"target": "simulated", "seed": seed, "time_limit_s": TIME_LIMIT_S}
    fixed = {name: value for name, value in pinned.items() if name not in ("options", *OWN)}
    settings = DrawSettings(
        rng.choice(PAUSE_SCALES), rng.choice(REPEAT_TARGET_PS), rng.choice(EXCLUSIVE_PS)
    )
    plan = plan_resolution.plan_of(base | drawn | fixed)
    return plan_resolution.resolve(plan, settings, may_be_quiet=True)


def workload_of(seed: int, pinned: Mapping[str, Any]) -> str:
    """Return the workload of a seed; empty if no plan can be drawn."""
    try:
        return plan_of(seed, pinned).workload
    except Refused:
        return ""


def _only_simulated(pinned: Mapping[str, Any]) -> None:
    """Raise :class:`~harness.app.refused.Refused` if the user has named another target."""
    if pinned.get("target", "simulated") != "simulated":
        raise Refused(f"--target {pinned['target']}: a search runs in simulation only")


def refuse_quiet(seed: int, pinned: Mapping[str, Any]) -> None:
    """Raise :class:`~harness.app.refused.Refused` if none of a few seeds draws a requested fault.

    The verdicts of such a search could only be UNKNOWN.
    """
    plans = (plan_of(seed + number, pinned) for number in range(QUIET_SEEDS))
    if all(plan.nemesis and not plan.schedule for plan in plans):
        raise Refused(plan_resolution.too_quiet(plan_of(seed, pinned)))


def _of_workload(
    workload: Workload | None, parts: Mapping[str, Mapping[str, Any]], seed: int
) -> dict[str, dict[str, Any]]:
    """Remove options that the workload lacks, and add those that only this workload varies."""
    drawn = {part: dict(fields) for part, fields in parts.items()}
    if workload is None:
        return drawn  # refused later, with the pinned name
    system = catalogue.system_of(Plan(target=catalogue.SIMULATED.name))
    known = {**workload.options, **catalogue.SIMULATED.options, **system.options}
    drawn["options"] = {name: drawn["options"][name] for name in drawn["options"] if name in known}
    drawn["options"] |= asking.draw(random.Random(f"{seed}:search:asking"))
    for part, fields in workload.vary(random.Random(f"{seed}:search:{workload.name}")).items():
        drawn[part] |= fields
    return drawn


def _options(rng: random.Random, layout: Layout) -> dict[str, Any]:
    topics, late, partitions = rng.randint(1, 3), rng.randint(0, 3), rng.randint(1, 3)
    while (topics + late) * partitions > PARTITIONS_MAX:
        late -= 1
    latency_ms = rng.choice((0.05, 0.2, 0.2, 1.0, 3.0))
    return {
        "topics": topics,
        "late_topics": late,
        "partitions": partitions,
        "replication_factor": layout.replication_factor,
        "process_life_s": rng.choice((2.0, 4.0, 8.0, 15.0)),
        "latency_ms": latency_ms,
        "jitter_ms": latency_ms * rng.choice((0.5, 4.0, 4.0)),
    }


def _clocks(rng: random.Random, parts: Mapping[str, dict[str, Any]]) -> None:
    """Draw the offset of clients' clocks, and how often brokers look for expired producer ids."""
    parts["options"]["clients_clock_s"] = rng.choice(CLIENTS_CLOCKS_S)
    parts["broker"] |= broker_draw.of_clocks(rng)


def _producer(rng: random.Random) -> dict[str, str]:
    request_ms = rng.choice((1500, 3000, 3000, 4000))
    drawn = {
        "linger.ms": rng.choice((0, 0, 10, 100)),
        "request.timeout.ms": request_ms,
        "delivery.timeout.ms": rng.choice((2, 3, 4)) * request_ms,
        "retry.backoff.ms": rng.choice((20, 50, 200)),
    }
    return {name: str(value) for name, value in drawn.items()}


def _nemesis(rng: random.Random, wanted: Sequence[str], always: Sequence[str]) -> tuple[str, ...]:
    """Return the nemeses that the user named, else some of the possible ones and ``always``."""
    possible = plan_resolution.offered(Plan(target=catalogue.SIMULATED.name))
    share = rng.uniform(0.3, 1.0)
    taken = [name for name in possible if rng.random() < share]
    some = rng.sample(possible, 3)
    if tuple(wanted) != (plan_resolution.ALL,):
        return tuple(wanted)
    chosen = taken if len(taken) >= 3 else some
    return tuple(name for name in possible if name in chosen or name in always)


def _of_access(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the nemeses that a simulated cluster with these options offers in addition."""
    usual = plan_resolution.offered(Plan(target=catalogue.SIMULATED.name))
    chosen = {security.OPTION: options.get(security.OPTION, security.NONE)}
    own = Plan(target=catalogue.SIMULATED.name, options=chosen)
    return tuple(name for name in plan_resolution.offered(own) if name not in usual)


def _of_directories(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the nemeses for brokers with several data directories, if they have so many."""
    count = options.get(data_directories.OPTION)
    several = isinstance(count, int) and count > 1  # a value of the user is checked later
    return (directories.PACKAGE.name,) if several else ()


def described(plan: Plan) -> str:
    """Return a short description of the drawn plan for one line."""
    faults = ", ".join(dict.fromkeys(fault.fault for fault in plan.schedule or ()))
    options = plan.options
    if not plan.brokers:
        return ensemble_draw.described(options, faults or "no faults")
    return (
        f"{plan.brokers} brokers, {options['replication_factor']} replicas,"
        f" min ISR {plan.broker['min.insync.replicas']}; {faults or 'no faults'}"
    )
