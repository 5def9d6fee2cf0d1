"""A seed becomes a plan: everything that a plan can vary is drawn from it, swarm-style.

Each run leaves some kinds of trouble out and overdoes others, so that a thousand runs see more than
a thousand repetitions of the average one. Every draw is made whether it is wanted or not: what a
user pins changes nothing else.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.app import catalogue, request
from harness.app.refused import Refused
from model.plan import Plan
from nemesis.schedule import Temper
from workloads.package import Workload

TIME_LIMIT_S = 40.0
"""Of work. With five seconds of calm at either end there is time for four faults and more."""
FAULTS_MIN = 4
"""Some kinds of trouble take long or seldom have room: with too few faults all kinds take part."""
CALM = (0.3, 0.6, 1.0, 1.5)
"""How long pauses between faults are, in parts of what a single run has."""
GRUDGES = (0.0, 0.0, 0.4, 0.8)
"""How likely a fault strikes whom the last one struck."""
WEIGHTS = (0.0, 0.3, 0.6, 0.9)
"""How likely a period of a schedule belongs to one fault alone, by itself."""
CLIENTS_CLOCKS_S = (0, 0, 0, -200_000, -30, 300)
"""How far ahead clients' clocks are: records that are older than a day when they come are a
mirror's, or of a machine that was set wrong. Nothing that a broker decides may hang by it."""
RATE_HZ_MAX = 15.0
"""Operations a second, at most; batches bring the records, and each operation costs CPU time."""
PARTITIONS_MAX = 12
"""Of all topics together: each is fetched by its followers all the time."""
PROTOCOLS = (None, None, None, "epochs-by-question")
"""How a follower finds where its log and the leader's part, beside the way that is ours."""
QUIET_SEEDS = 5
"""So many seeds are tried before it is said that none draws a fault."""
OWN = ("nemesis", "seed", "results", "inline")
"""Fields of a plan file that are a search's own business."""


class Layout(NamedTuple):
    """How many there are of what, and what of other draws follows from that."""

    brokers: int
    replication_factor: int
    min_isr: int
    weight: float
    always: tuple[str, ...] = ()
    """Kinds of trouble that no run leaves out, if it has drawn ones."""
    alone: tuple[float, ...] = WEIGHTS
    """How likely a period of a schedule belongs to one fault alone."""
    synced: float = 0.25
    """How likely records are synced before they are answered for."""
    segment_bytes: tuple[int, ...] = (2048, 16384, 1 << 30, 1 << 30)


SINGLE = Layout(
    3, 1, 1, 2, always=("power",), alone=(max(WEIGHTS),), synced=0.9, segment_bytes=(2048, 16384)
)
"""What is on its disk is all that there is of a partition: the disk is what such runs are about."""
LAYOUTS = (
    Layout(3, 3, 2, 8),
    Layout(3, 3, 1, 3),
    Layout(3, 2, 1, 3),
    SINGLE,
    Layout(4, 3, 2, 3),
    Layout(4, 4, 2, 1),
    Layout(5, 3, 2, 2),
    Layout(5, 5, 3, 1),
)
"""None in which each of several replicas is needed for a write: that would be mostly waiting."""


def plan_of(seed: int, pinned: Mapping[str, Any]) -> Plan:
    """The plan of a seed, resolved, schedule and all; ``pinned`` are a plan's fields, as options
    and plan files have them. Raises :class:`~harness.app.refused.Refused`."""
    request.plan_of(pinned)  # of the right types, before anything is made of them
    rng = random.Random(f"{seed}:search")
    layout = _layout(rng, pinned)
    options = _options(rng, layout)
    wanted = pinned.get("nemesis", (request.ALL,))
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
        drawn["nemesis"] = wanted  # for it says itself which faults there are
    parts: dict[str, dict[str, Any]] = {
        "broker": _broker(rng, layout),
        "producer": _producer(rng),
        "consumer": {"fetch.wait.max.ms": str(rng.choice((50, 100, 250, 500)))},
        "options": options | {"batch_max": batch_max},
    }
    _clocks(random.Random(f"{seed}:search:clocks"), parts)
    temper = Temper(rng.choice(CALM), rng.choice(GRUDGES), rng.choice(layout.alone))
    name = pinned.get("workload", Plan().workload)
    varied = _of_workload(catalogue.WORKLOADS.get(name), {"plan": {}, **parts}, seed)
    drawn |= varied.pop("plan")
    for part, fields in varied.items():
        drawn[part] = {**fields, **pinned.get(part, {})}
    if pinned.get("target", "simulated") != "simulated":
        raise Refused(f"--target {pinned['target']}: a search is simulated")
    fixed = {name: value for name, value in pinned.items() if name not in (*parts, *OWN)}
    protocol = rng.choice(PROTOCOLS)
    if protocol is not None:
        # The first of all: what somebody plants stands, whatever it replaces.
        planted = tuple(name for name in fixed.get("mutants", ()) if name != protocol)
        fixed["mutants"] = (protocol, *planted)
    plan = request.resolve(request.plan_of(drawn | fixed), temper, may_be_quiet=True)
    if len(plan.schedule or ()) >= FAULTS_MIN or tuple(wanted) != (request.ALL,):
        return plan
    drawn["nemesis"] = (request.ALL,)
    temper = temper._replace(calm=min(CALM))
    return request.resolve(request.plan_of(drawn | fixed), temper, may_be_quiet=True)


def refuse_quiet(seed: int, pinned: Mapping[str, Any]) -> None:
    """Raise :class:`~harness.app.refused.Refused` if none of a few seeds draws a fault, although
    some are asked for: the verdicts of such a search could only be UNKNOWN."""
    plans = (plan_of(seed + number, pinned) for number in range(QUIET_SEEDS))
    if all(plan.nemesis and not plan.schedule for plan in plans):
        raise Refused(request.too_quiet(plan_of(seed, pinned)))


def _of_workload(
    workload: Workload | None, parts: Mapping[str, Mapping[str, Any]], seed: int
) -> dict[str, dict[str, Any]]:
    """Without the options that a workload does not have, and with what only it varies."""
    drawn = {part: dict(fields) for part, fields in parts.items()}
    if workload is None:
        return drawn  # and refused, with the name that is pinned
    known = {**workload.options, **catalogue.SIMULATED.options}
    drawn["options"] = {name: drawn["options"][name] for name in drawn["options"] if name in known}
    for part, fields in workload.vary(random.Random(f"{seed}:search:{workload.name}")).items():
        drawn[part] |= fields
    return drawn


def _layout(rng: random.Random, pinned: Mapping[str, Any]) -> Layout:
    """One of those that agree with what is pinned, or else the pinned numbers by themselves."""
    brokers = pinned.get("brokers")
    broker, options = pinned.get("broker", {}), pinned.get("options", {})
    factor = options.get("replication_factor")
    min_isr = broker.get("min.insync.replicas")
    fitting = [
        layout
        for layout in LAYOUTS
        if brokers in (None, layout.brokers)
        and factor in (None, layout.replication_factor)
        and min_isr in (None, str(layout.min_isr))
    ]
    [chosen] = rng.choices(LAYOUTS, [layout.weight for layout in LAYOUTS])
    if fitting and chosen not in fitting:
        [chosen] = random.Random(rng.random()).choices(fitting, [each.weight for each in fitting])
    if not fitting:
        factor = factor or min(3, brokers or 3)
        alike = SINGLE if factor == 1 else Layout(3, factor, 1, 0)
        chosen = alike._replace(brokers=brokers or 3)
    return chosen


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


def _broker(rng: random.Random, layout: Layout) -> dict[str, str]:
    wait_ms = rng.choice((50, 200, 200, 500))
    drawn = {
        "default.replication.factor": layout.replication_factor,
        "min.insync.replicas": layout.min_isr,
        "zookeeper.session.timeout.ms": rng.choice((1000, 2000, 2000, 4000)),
        "replica.lag.time.max.ms": rng.choice((1000, 1500, 1500, 3000)),
        "replica.fetch.wait.max.ms": wait_ms,
        "replica.fetch.backoff.ms": rng.choice((50, 100, 500)),
        "replica.socket.timeout.ms": rng.choice((1000, 1500, 3000)),
        "controller.socket.timeout.ms": rng.choice((1000, 1500, 3000)),
        "request.timeout.ms": rng.choice((2000, 3000)),
        "replica.fetch.max.bytes": rng.choice((512, 4096, 1 << 20, 1 << 20)),
        "replica.high.watermark.checkpoint.interval.ms": rng.choice((200, 1000, 5000)),
        "log.flush.offset.checkpoint.interval.ms": rng.choice((1000, 5000)),
        "leader.imbalance.check.interval.seconds": rng.choice((3, 3, 10, 30)),
        "auto.leader.rebalance.enable": rng.choice(("true", "true", "false")),
        "log.segment.bytes": rng.choice(layout.segment_bytes),
        "log.index.interval.bytes": rng.choice((64, 4096)),
    }
    if rng.random() < layout.synced:
        drawn["log.flush.interval.messages"] = rng.choice((1, 1, 20))
    return {name: str(value) for name, value in drawn.items()}


def _clocks(rng: random.Random, parts: Mapping[str, dict[str, Any]]) -> None:
    """What time clients have, and how often brokers look whose time is over."""
    parts["options"]["clients_clock_s"] = rng.choice(CLIENTS_CLOCKS_S)
    check_ms = rng.choice((1000, 1000, 600_000))
    parts["broker"]["producer.id.expiration.check.interval.ms"] = str(check_ms)


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
    """Some of what is wanted, these ``always``; what is wanted by name is all taken."""
    possible = request.offered(catalogue.SIMULATED)
    share = rng.uniform(0.3, 1.0)
    taken = [name for name in possible if rng.random() < share]
    some = rng.sample(possible, 3)
    if tuple(wanted) != (request.ALL,):
        return tuple(wanted)
    chosen = taken if len(taken) >= 3 else some
    return tuple(name for name in possible if name in chosen or name in always)


def described(plan: Plan) -> str:
    """What was drawn, in a few words for a line."""
    faults = ", ".join(dict.fromkeys(fault.fault for fault in plan.schedule or ()))
    options = plan.options
    return (
        f"{plan.brokers} brokers, {options['replication_factor']} replicas,"
        f" min ISR {plan.broker['min.insync.replicas']}; {faults or 'no faults'}"
    )
