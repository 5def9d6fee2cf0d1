"""The settings of librdkafka: those of group members depend on the protocol of the group."""

from confluent_kafka import Consumer

from workloads.client import confluent_settings
from workloads.client.confluent_settings import QUIET, of_member, of_outsider, refusal
from workloads.common.group_members import CONSUMER

CLASSIC = {**CONSUMER, "group.id": "g", "auto.offset.reset": "earliest"}
NEWER = {**CLASSIC, "group.protocol": "consumer"}


def test_members_of_the_classic_protocol_assign() -> None:
    """A member sends its session timeout, and its assignor is a client's."""
    found = of_member(CLASSIC, "roundrobin")
    assert found == {**CLASSIC, "partition.assignment.strategy": "roundrobin"}
    assert of_outsider(CLASSIC) == CLASSIC


def test_with_the_newer_protocol_the_coordinator_assigns() -> None:
    """A member names the coordinator's assignor, and leaves out what librdkafka rejects there."""
    found = of_member(NEWER, "range")
    assert found["group.remote.assignor"] == "range"
    assert not {*confluent_settings.SERVER_SIDE} & set(found)
    assert of_member(NEWER, "cooperative-sticky")["group.remote.assignor"] == "uniform"
    assert not {*confluent_settings.SERVER_SIDE} & set(of_outsider(NEWER))


def test_librdkafka_accepts_both() -> None:
    """librdkafka creates members of both protocols, and consumers that only commit or read."""
    for settings in (CLASSIC, NEWER):
        for config in (of_member(settings, "range"), of_outsider(settings)):
            Consumer({**QUIET, **config}).close()
    assert refusal({}, {"group.protocol": "consumer", "session.timeout.ms": "3000"}) is None
    assert refusal({}, {"group.protocol": "other"}) is not None
