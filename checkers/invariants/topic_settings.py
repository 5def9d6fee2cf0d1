"""``settings-of-topic``: a topic does not have the settings of a deleted one of its name.

A broker reads the settings of a topic before it creates a log of it. So the settings that it has,
once its logs carry the topic's id (KIP-516), are some that ZooKeeper has had for this topic. They
are compared only with those that ZooKeeper was seen to have for former topics of the name, since a
change that is soon replaced is in no snapshot.
"""

from collections.abc import Iterator, Mapping

from checkers.invariants.step import Step
from model.snapshot import ClusterState, KeptSettings
from model.violation import Violation

_Settings = frozenset[tuple[str, str]]


class SettingsOfTopics:
    """Follows the settings of each topic in ZooKeeper."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, dict[_Settings, None]]] = {}
        """What ZooKeeper has had, by the name and the id of each topic."""
        self._last: object = None

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        self._see(step.now)
        for number, broker in step.now.brokers.items():
            for topic, kept in broker.settings.items():
                if self._is_former(topic, kept):
                    yield step.violation(
                        "settings-of-topic",
                        f"broker {number} has the settings {dict(sorted(kept.overrides.items()))} "
                        f"of a topic that had this name before",
                        key=f"{topic}-0",
                        brokers=(number,),
                    )

    def _see(self, now: ClusterState) -> None:
        zookeeper = now.zookeeper
        if zookeeper is None or zookeeper is self._last:
            return
        self._last = zookeeper
        for key, state in zookeeper.partitions.items():
            topic, _, number = key.rpartition("-")
            if number == "0" and state.topic_id:
                values = self._seen.setdefault(topic, {}).setdefault(state.topic_id, {})
                values[_hashable(zookeeper.settings.get(topic, {}))] = None

    def _is_former(self, topic: str, kept: KeptSettings) -> bool:
        seen, own = self._seen.get(topic, {}), _hashable(kept.overrides)
        if not own or kept.topic_id not in seen or own in seen[kept.topic_id]:
            return False
        return any(own in values for values in seen.values())


def _hashable(settings: Mapping[str, str]) -> _Settings:
    return frozenset(settings.items())
