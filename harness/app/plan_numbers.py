"""The numbers of a plan: which no run can have."""

import math

from harness.app import schedule_checks
from harness.app.refused import Refused
from harness.app.schedule_checks import TIME_LIMIT_MAX_S
from harness.systems.catalogue import APACHE_ZOOKEEPER, ZOOKEEPER
from model.plan import Plan
from model.text import brief

CONCURRENCY_MAX = 10_000
"""This limit and those below are far above any useful value.

They are below values that would keep a machine busy for minutes before anything starts.
"""
RATE_MAX_HZ = 1_000_000
BROKERS_MAX = 100
SEED_MAX = 2**63 - 1
"""Numbers that are written to files have at most 64 bits."""


def check(plan: Plan) -> None:
    """Raise :class:`Refused` for a number that no run can have.

    A recorded plan may come from an untrusted source, and it is drawn, judged and repeated.
    """
    check_brokers(plan)
    check_run(plan)
    schedule_checks.check_numbers(plan.schedule or ())


def check_brokers(plan: Plan) -> None:
    """Raise :class:`Refused` for a number of brokers that no cluster has; 0 is ZooKeeper alone."""
    if plan.brokers != 0 or plan.system.partition(":")[0] not in (ZOOKEEPER, APACHE_ZOOKEEPER):
        _positive("--brokers", plan.brokers, BROKERS_MAX, "brokers")


def check_run(plan: Plan) -> None:
    _positive("--time-limit", plan.time_limit_s, TIME_LIMIT_MAX_S, "seconds")
    _positive("--concurrency", plan.concurrency, CONCURRENCY_MAX, "clients")
    if plan.rate_hz != 0:
        _positive("--rate", plan.rate_hz, RATE_MAX_HZ, "writes per second")
    if abs(plan.seed) > SEED_MAX:
        raise Refused(f"--seed {brief(plan.seed)}: must fit into 64 bits")


def _positive(option: str, number: float, most: float, unit: str) -> None:
    if isinstance(number, int) and abs(number) > 10**15:
        raise Refused(f"{option} {brief(number)}: must be from 1 to {most:,} {unit}")
    if not (number > 0 and math.isfinite(number)):
        raise Refused(f"{option} {number:g}: must be a number of {unit} above 0")
    if number > most:
        raise Refused(f"{option} {number:.15g}: the maximum is {most:,} {unit}")
