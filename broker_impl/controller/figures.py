"""The controller's figures of the cluster, for metrics: how many partitions need an election."""

from typing import NamedTuple

from broker_impl.controller.context import Context


class Figures(NamedTuple):
    """The numbers of topics and partitions that are not being deleted."""

    topics: int
    partitions: int
    offline: int
    """Partitions without a live leader."""
    imbalanced: int
    """Partitions whose leader is not their first replica, the preferred one."""


def of(context: Context) -> Figures:
    """Count the topics and partitions of the controller's view."""
    partitions = offline = imbalanced = 0
    for tp in context.partitions():
        state = context.leadership.get(tp)
        leader = None if state is None else state.leader
        partitions += 1
        offline += leader is None or not context.is_live(leader, tp)
        imbalanced += leader != context.replicas(tp)[0]
    topics = sum(topic not in context.deleting for topic in context.topics)
    return Figures(topics, partitions, offline, imbalanced)
