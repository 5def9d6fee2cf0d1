"""The options of a plan: their smallest values, and what makes a plan impossible."""

from collections.abc import Mapping

from model.plan import Plan
from workloads.common.clients import CLIENTS

COMMON_LEAST: Mapping[str, float] = {
    "topics": 1,
    "late_topics": 0,
    "partitions": 1,
    "replication_factor": 1,
    "batch_max": 1,
    "process_life_s": 0.001,
    "final_time_limit_s": 0.001,
}
"""The smallest number that each of the plan's options may be."""


def refuse_cluster(plan: Plan) -> str | None:
    """Return why the plan's settings do not fit its cluster or client, or ``None``.

    The cluster must be able to acknowledge records, and the client must accept its settings.
    """
    factor = int(plan.options["replication_factor"])
    if factor > plan.brokers:
        return f"--brokers: {factor} replicas need at least {factor} brokers"
    isr_min = plan.broker.get("min.insync.replicas", "1")
    if plan.producer.get("acks") in ("all", "-1") and isr_min.isdecimal() and int(isr_min) > factor:
        return (
            f"--set broker.min.insync.replicas={isr_min}: a partition has {factor} replicas,"
            " so no record would be acknowledged"
        )
    placed = [int(number) for number in plan.options["replicas"]]
    if placed and len(placed) != factor:
        return f"options: replicas={placed}: must be {factor} brokers, as replication_factor"
    if len(set(placed)) < len(placed) or not set(placed) <= set(range(1, plan.brokers + 1)):
        return f"options: replicas={placed}: must be different brokers from 1 to {plan.brokers}"
    if plan.options["client"] not in CLIENTS:
        return f"options: client={plan.options['client']}: must be one of {', '.join(CLIENTS)}"
    _, refusal = CLIENTS[plan.options["client"]]
    return refusal(plan.producer, plan.consumer)


def send_timeout_s(plan: Plan) -> float:
    """Return a timeout for operations that is longer than a client's delivery timeout."""
    return int(plan.producer["delivery.timeout.ms"]) / 1000 + 10.0
