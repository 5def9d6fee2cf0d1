"""What ZooKeeper's workloads share: their options, their clients and their place in the tree."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from model import options
from model.connection import Connection
from model.plan import Plan
from model.roles import Client
from workloads.client.zk_client import ZooKeeperClient
from workloads.client.zk_session import Session
from workloads.needs import Need

OPTIONS: Mapping[str, Any] = {
    "zk_client": "kazoo",
    "session_timeout_s": 4.0,
    # How long an operation waits for other clients, as that for a lock.
    "wait_s": 3.0,
    "final_time_limit_s": 60.0,
}
"""The options of all of these workloads with their defaults."""
LEAST: Mapping[str, float] = {
    "session_timeout_s": 0.1,
    "wait_s": 0.1,
    "final_time_limit_s": 0.001,
}
CLIENTS = ("kazoo", "asyncio")
PERSISTENT_SINCE = (3, 6)
"""The first release of Apache ZooKeeper that has persistent watches."""
NO_NEEDS: tuple[Need, ...] = ()


def root(plan: Plan) -> str:
    """Return the znode below which a workload works."""
    return f"/{plan.workload}"


def refusal(plan: Plan, least: Mapping[str, float], concurrency: int = 2) -> str | None:
    """Return why this plan cannot be run, or ``None``; ``concurrency`` is the smallest."""
    if plan.concurrency < concurrency:
        return f"--concurrency: {plan.workload} needs at least {concurrency}"
    if plan.options["zk_client"] not in CLIENTS:
        return (
            f"options: zk_client={plan.options['zk_client']}: must be one of {', '.join(CLIENTS)}"
        )
    return options.refusal(plan.options, {**LEAST, **least})


def has_persistent_watches(plan: Plan) -> bool:
    """Return whether client and servers of a (resolved) plan have persistent watches."""
    if plan.options["zk_client"] != "asyncio":
        return False
    release = plan.versions.get("apache-zookeeper")
    if release is None:
        return plan.system == "zookeeper"
    return tuple(map(int, release.split(".")[:2])) >= PERSISTENT_SINCE


def client_below(
    parents: Callable[[Plan], Sequence[str]] = lambda plan: (),
) -> Callable[[Plan, Connection, int], Client]:
    """Return what creates the client of a process, which first creates these parents."""

    def client(plan: Plan, connection: Connection, process: int) -> Client:
        return ZooKeeperClient(
            session(plan, connection, process),
            (root(plan), *parents(plan)),
            patience_s=float(plan.options["session_timeout_s"]),
            wait_s=float(plan.options["wait_s"]),
        )

    return client


def session(plan: Plan, connection: Connection, process: int) -> Session:
    """Return a session of the library that the plan names."""
    timeout_ms = round(float(plan.options["session_timeout_s"]) * 1000)
    if plan.options["zk_client"] == "asyncio":
        from workloads.client.zk_asyncio import AsyncioSession

        rng = random.Random(f"{plan.seed}:zookeeper:{process}")
        return AsyncioSession(connection.bootstrap, timeout_ms=timeout_ms, rng=rng)
    from workloads.client.zk_kazoo import KazooSession

    return KazooSession(connection.bootstrap, timeout_ms=timeout_ms)


def op_timeout_s(plan: Plan) -> float:
    """Return a timeout for operations: two sessions, the longest wait, and a margin."""
    return 2 * float(plan.options["session_timeout_s"]) + float(plan.options["wait_s"]) + 5.0
