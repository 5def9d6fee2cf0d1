"""Which brokers return other metadata to clients, or have other settings, than ZooKeeper has.

The controller sends each change to all brokers, and sends it again until they have it or end. So in
a cluster that has recovered, each broker returns the leader, the ISR and the replicas of each
partition as ZooKeeper has them, the id of its topic, and no partition of a deleted topic. A client
that asks another broker would not find the leader, or would take a deleted topic for one that
exists.

Brokers read the settings of topics in ZooKeeper, where they are notified of changes. A broker that
hosts a topic has these settings, and so have its logs: otherwise it would delete or compact what
the settings of the topic keep, and leaders that follow each other would treat it differently.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from checkers.invariants.step import Step
from checkers.invariants.wait import Wait
from model.snapshot import KeptSettings, PartitionState, Shown


class Outdated:
    """Follows what brokers return from one snapshot to the next."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, str, str], int] = {}
        """By broker, partition and reason."""

    def step(self, step: Step) -> list[Wait]:
        """Process the next snapshot; return what is outdated."""
        known, self._since = self._since, {}
        found = []
        for number, key, why in chain(_outdated(step), _other_settings(step)):
            place = number, key, why
            since_ns = self._since[place] = known.get(place, step.now.time_ns)
            found.append(Wait(key, number, since_ns, f"broker {number} {why}"))
        return found


def _outdated(step: Step) -> Iterator[tuple[int, str, str]]:
    assert step.now.zookeeper is not None, "only clusters with a controller recover"
    partitions = step.now.zookeeper.partitions
    for number, broker in step.now.brokers.items():
        for key, state in partitions.items():
            why = differs(broker.shown.get(key), state)
            if why is not None:
                yield number, key, f"returns {why}"
        for key in broker.shown:
            if key not in partitions:
                yield number, key, "returns the partition to clients, but its topic was deleted"


def _other_settings(step: Step) -> Iterator[tuple[int, str, str]]:
    assert step.now.zookeeper is not None, "only clusters with a controller recover"
    zookeeper = step.now.zookeeper
    for number, broker in step.now.brokers.items():
        for topic, kept in broker.settings.items():
            key = f"{topic}-0"
            state = zookeeper.partitions.get(key)
            if state is not None and kept.topic_id == state.topic_id:  # no log of a former topic
                why = differ(kept, zookeeper.settings.get(topic, {}))
                if why is not None:
                    yield number, key, why


def differs(shown: Shown | None, state: PartitionState) -> str | None:
    """Return how a partition that clients receive differs from ZooKeeper's, or ``None``."""
    if shown is None:
        return "no such partition to clients"
    if (shown.leader, shown.leader_epoch) != (state.leader, state.leader_epoch):
        return (
            f"leader {shown.leader} of epoch {shown.leader_epoch} to clients, but ZooKeeper has "
            f"{state.leader} of epoch {state.leader_epoch}"
        )
    for name, own, right in (
        ("the ISR", shown.isr, state.isr),
        ("the replicas", shown.replicas, state.replicas),
    ):
        if sorted(own) != sorted(right):
            return f"{name} {sorted(own)} to clients, but ZooKeeper has {sorted(right)}"
    if shown.topic_id != state.topic_id:
        return f"the topic id {shown.topic_id!r} to clients, but ZooKeeper has {state.topic_id!r}"
    return None


def differ(kept: KeptSettings, stored: Mapping[str, str]) -> str | None:
    """Return how the settings of a topic differ from those in ZooKeeper, or ``None``."""
    if kept.overrides != stored:
        own, right = dict(sorted(kept.overrides.items())), dict(sorted(stored.items()))
        return f"has the settings {own} of the topic, but ZooKeeper has {right}"
    return None if kept.is_applied else "has not applied the settings of the topic to its logs"
