"""Several brokers' metadata become one, with stale answers among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from harness.cluster.observe import metadata_answers
from harness.cluster.observe.metadata_answers import PartitionAnswer, combined
from model import roles
from model.capabilities.control_plane import Partition
from tests.harness.cluster.observe.recorded_frames import recorded


@pytest.mark.parametrize(
    ("named", "controller"),
    [
        ({1: 2, 2: 2, 3: 2}, 2),
        ({1: 1, 2: 2, 3: 2}, 2),  # the former controller has not heard of its successor
        ({1: 3, 2: 2}, 2),  # equally many: the one that names itself
        ({1: 1, 2: 2}, None),  # both do
        ({-2: 1, -3: 2}, None),  # unknown brokers cannot name themselves
        ({1: -1, 2: -1, 3: 3}, 3),
        ({1: -1}, None),
        ({}, None),
    ],
)
def test_elected_controller(named: dict[int, int], controller: int | None) -> None:
    """The controller that most brokers name, or of equally many the one that names itself."""
    assert metadata_answers.elected(named) == controller


def quorum(leader: int, epoch: int, error: int = 0) -> DescribeQuorumResponse:
    row = PartitionData(leader_id=leader, leader_epoch=epoch, error_code=error)
    return DescribeQuorumResponse(topics=[TopicData("__cluster_metadata", [row])])


@pytest.mark.parametrize(
    ("answers", "leader"),
    [
        ([quorum(1, 4), quorum(2, 5)], 2),
        ([quorum(-1, 6), quorum(2, 5)], None),  # an election is running
        ([quorum(1, 9, error=41), quorum(2, 5)], 2),
        ([DescribeQuorumResponse(error_code=29)], None),
        ([], None),
    ],
)
def test_quorum_leader(answers: list[DescribeQuorumResponse], leader: int | None) -> None:
    """The highest epoch decides; answers with errors do not count."""
    assert metadata_answers.quorum_leader(answers) == leader


def test_real_quorum() -> None:
    """Kafka 4.1.0 names the leader of its quorum, which is not Metadata's controller."""
    _, answer = recorded("4.1.0", 55)
    assert metadata_answers.quorum_leader([answer]) == 1
    assert metadata_answers.voters([answer]) == (1, 2, 3)
    assert metadata_answers.voters([]) == ()
    _, metadata = recorded("4.1.0", 3)
    assert metadata.controller_id == 3


def listing(*brokers: int) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(number) for number in brokers])


def test_live_brokers_are_listed_by_all() -> None:
    """A broker is live if every answer lists it."""
    assert metadata_answers.live([listing(3, 1, 2), listing(2, 3)]) == (2, 3)
    assert metadata_answers.live([]) == ()


def row(leader: int, epoch: int, replicas: list[int], isr: list[int]) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        leader_id=leader, leader_epoch=epoch, replica_nodes=replicas, isr_nodes=isr
    )


ALL = [1, 2, 3]


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        # All agree.
        ([row(1, 4, ALL, [1, 3])] * 2, PartitionAnswer(1, 4, (1, 2, 3), (1, 3))),
        # An older epoch does not count.
        (
            [row(1, 4, ALL, ALL), row(2, 5, ALL, [2, 3])],
            PartitionAnswer(2, 5, (1, 2, 3), (2, 3)),
        ),
        # In one epoch, a replica is in sync only if all say so.
        (
            [row(1, 4, ALL, ALL), row(1, 4, ALL, [1, 2])],
            PartitionAnswer(1, 4, (1, 2, 3), (1, 2)),
        ),
        # A reassignment that only one broker knows keeps the partition from being whole.
        (
            [row(1, 4, [1, 2], [1, 2]), row(1, 4, [1, 2, 3], [1, 2])],
            PartitionAnswer(1, 4, (1, 2, 3), (1, 2)),
        ),
        # Before Kafka 2.1 there is no epoch: most brokers decide, or none.
        (
            [row(1, -1, ALL, ALL), row(2, -1, ALL, [2, 3]), row(2, -1, ALL, [2, 3])],
            PartitionAnswer(2, -1, (1, 2, 3), (2, 3)),
        ),
        (
            [row(1, -1, ALL, ALL), row(2, -1, ALL, ALL)],
            PartitionAnswer(-1, -1, (1, 2, 3), (1, 2, 3)),
        ),
    ],
)
def test_combined(rows: list[MetadataResponsePartition], answer: PartitionAnswer) -> None:
    """The highest leader epoch counts, and within it what all of the answers say."""
    assert combined(rows) == answer


ROWS = st.builds(
    row,
    st.sampled_from([-1, 1, 2, 3]),
    st.integers(-1, 3),
    st.just(ALL),
    st.lists(st.sampled_from(ALL), unique=True),
)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_full_isr_needs_agreement(rows: list[MetadataResponsePartition]) -> None:
    """The ISR is full only if every answer with the highest epoch has a full ISR."""
    answer = combined(rows)
    current = [each for each in rows if each.leader_epoch == answer.leader_epoch]
    assert answer.leader_epoch == max(each.leader_epoch for each in rows)
    assert (sorted(answer.isr) == ALL) == all(sorted(each.isr_nodes) == ALL for each in current)
    assert answer.leader in {each.leader_id for each in current} | {-1}


def test_partitions_of_all_answers() -> None:
    """Partitions that only one broker lists are included; moves are added to their partition."""

    def topic(name: str, *rows: MetadataResponsePartition) -> MetadataResponse:
        return MetadataResponse(topics=[MetadataResponseTopic(name=name, partitions=list(rows))])

    found = metadata_answers.partitions(
        [
            topic("a", row(1, 0, ALL, [1])),
            topic("b", row(-1, 0, [2], [])),
            MetadataResponse(topics=[MetadataResponseTopic(error_code=3, name="c")]),
        ],
        roles.broker,
        {"a-0": ([3], [2])},
    )
    assert found == (
        Partition(
            key="a-0",
            replicas=("broker-1", "broker-2", "broker-3"),
            leader="broker-1",
            leader_epoch=0,
            isr=("broker-1",),
            adding=("broker-3",),
            removing=("broker-2",),
        ),
        Partition("b-0", ("broker-2",), None, 0, ()),
    )


@pytest.mark.parametrize(
    ("release", "leader", "epoch", "isr"),
    [
        ("0.10.2.2", "broker-1", -1, ("broker-1", "broker-3", "broker-2")),
        ("2.8.2", "broker-1", 0, ("broker-1", "broker-2", "broker-3")),
        ("4.1.0", "broker-3", 0, ("broker-3", "broker-1", "broker-2")),
    ],
)
def test_real_metadata(release: str, leader: str, epoch: int, isr: tuple[str, ...]) -> None:
    """Brokers, leader, epoch and ISR are read from what real releases answer."""
    _, answer = recorded(release, 3)
    assert metadata_answers.live([answer]) == (1, 2, 3)
    [partition] = metadata_answers.partitions([answer], roles.broker, {})
    assert partition.key == "faultline-ready-0"
    assert (partition.leader, partition.leader_epoch, partition.isr) == (leader, epoch, isr)
    assert partition.is_whole
