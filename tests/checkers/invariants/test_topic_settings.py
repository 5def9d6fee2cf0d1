"""The settings of a topic, and those of a former topic of its name."""

import pytest

from model.snapshot import ClusterState, KeptSettings, ZooKeeperState
from tests.checkers.invariants.streams import KEY, broker, cluster, leader, log, state, violated

NAME = "settings-of-topic"
FORMER, OWN, OTHER = {"segment.ms": "1"}, {"segment.ms": "2"}, {"segment.ms": "3"}


def at(topic_id: str, stored: dict[str, str], kept: KeptSettings | None = None) -> ClusterState:
    """ZooKeeper has these settings of the topic, and broker 2 has others."""
    partitions = {KEY: state(leader=2, topic_id=topic_id, birth=len(topic_id))}
    held = broker(leader(log(0)), settings={} if kept is None else {"t": kept})
    return cluster(
        ZooKeeperState(partitions=partitions, settings={"t": stored}, controller_epoch=1), {2: held}
    )


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        (KeptSettings(OWN, is_applied=True, topic_id="new"), []),
        (KeptSettings(FORMER, is_applied=True, topic_id="new"), [NAME]),
        (KeptSettings(OTHER, is_applied=True, topic_id="new"), []),  # no snapshot has shown it
        (KeptSettings({}, is_applied=True, topic_id="new"), []),
        (KeptSettings(FORMER, is_applied=True, topic_id="id"), []),  # the log is the former one
        (KeptSettings(FORMER, is_applied=True), []),
        (KeptSettings(FORMER, is_applied=True, topic_id="unknown"), []),
    ],
)
def test_settings_are_those_of_the_topic(kept: KeptSettings, names: list[str]) -> None:
    """What only a former topic had is not; what is not known may be."""
    assert violated(at("id", FORMER), at("new", OWN), at("new", OWN, kept)) == names


def test_settings_that_both_topics_had() -> None:
    """Whether before or later, and whichever broker has them."""
    kept = KeptSettings(FORMER, is_applied=True, topic_id="new")
    assert violated(at("id", FORMER), at("new", FORMER), at("new", OWN, kept)) == []
    assert violated(at("id", OWN), at("new", FORMER), at("new", OWN, kept)) == []
