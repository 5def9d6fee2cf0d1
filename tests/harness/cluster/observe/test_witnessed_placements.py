"""Where a controller has placed replicas is judged by the racks that it knew."""

from dataclasses import replace
from typing import Any

from broker_impl.controller.context import BrokerInfo, Context, Leadership
from broker_impl.controller.reassignment import Move
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from broker_impl.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from broker_impl.wire.messages.create_topics_response import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_placements import PlacementWitness

RACKS = {1: "a", 2: "b", 3: "a"}
BAD, GOOD = (1, 3), (1, 2)


class Controller:
    """A broker that is the controller, whose view of the cluster the test makes up."""

    def __init__(self) -> None:
        brokers = {number: BrokerInfo(number, 7, (), rack) for number, rack in RACKS.items()}
        self.context: Context | None = Context(1, brokers=brokers)
        self.found: list[str] = []
        self.witness = PlacementWitness(
            Reporter(1, lambda: 0, lambda each: self.found.append(each.key or "")),
            lambda: self.context,
        )

    def place(self, *replicas: tuple[int, ...], epoch: int = 0) -> None:
        """Have the topic t with these replicas."""
        assert self.context is not None
        self.context.topics["t"] = dict(enumerate(replicas))
        for number, placed in enumerate(replicas):
            state = Leadership(placed[0], epoch, placed, 1)
            self.context.leadership[TopicPartition("t", number)] = state

    def create(
        self, *replicas: tuple[int, ...], epoch: int = 0, error: int = 0, **asked: Any
    ) -> list[str]:
        """Create the topic with these replicas; return the partitions that are judged wrong."""
        self.found.clear()
        on_answer = self.witness(CreateTopicsRequest(topics=[CreatableTopic(name="t", **asked)]))
        assert on_answer is not None
        self.place(*replicas, epoch=epoch)
        row = CreatableTopicResult(name="t", error_code=error)
        on_answer(CreateTopicsResponse(topics=[row]))
        return list(self.found)


def test_the_partitions_of_a_new_topic_are_judged() -> None:
    """Each one by itself, unless it may have been reassigned since, or the request failed."""
    controller = Controller()
    assert controller.create(GOOD, BAD, BAD) == ["t-1", "t-2"]
    assert controller.create(GOOD, GOOD) == []
    assert controller.create(BAD, epoch=1) == []
    assert controller.create(BAD, error=7) == []


def test_what_an_operator_assigns_is_not_judged() -> None:
    """The operator may have reasons."""
    assigned = CreatableReplicaAssignment(0, list(BAD))
    assert Controller().create(BAD, assignments=[assigned]) == []


def test_the_partitions_that_are_added_are_judged() -> None:
    """Those that there were before are not."""
    controller = Controller()
    controller.place(BAD)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 2, None)])
    on_answer = controller.witness(request)
    assert on_answer is not None
    controller.place(BAD, BAD)
    on_answer(CreatePartitionsResponse(results=[CreatePartitionsTopicResult("t")]))
    assert controller.found == ["t-1"]
    assigned = [CreatePartitionsAssignment(list(BAD))]
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic("t", 3, assigned)])
    on_answer = controller.witness(request)
    assert on_answer is not None
    controller.place(BAD, BAD, BAD)
    on_answer(CreatePartitionsResponse(results=[CreatePartitionsTopicResult("t")]))
    assert controller.found == ["t-1"]


def test_brokers_that_come_meanwhile_exclude_a_judgement() -> None:
    """The replicas may have been placed before a broker of another rack came, or after it."""
    controller = Controller()
    on_answer = controller.witness(CreateTopicsRequest(topics=[CreatableTopic(name="t")]))
    assert on_answer is not None
    assert controller.context is not None
    controller.place(BAD)
    controller.context.brokers[2] = replace(controller.context.brokers[2], epoch=8)
    on_answer(CreateTopicsResponse(topics=[CreatableTopicResult(name="t")]))
    assert controller.found == []


def test_only_a_controller_that_creates_is_judged() -> None:
    """Not a validation, not another request, and no other broker."""
    controller = Controller()
    topics = [CreatableTopic(name="t")]
    assert controller.witness(CreateTopicsRequest(topics=topics, validate_only=True)) is None
    assert controller.witness(MetadataRequest()) is None
    on_answer = controller.witness(CreateTopicsRequest(topics=topics))
    assert on_answer is not None
    controller.place(BAD)
    controller.context = None
    assert controller.witness(CreateTopicsRequest(topics=topics)) is None
    on_answer(CreateTopicsResponse(topics=[CreatableTopicResult(name="t")]))
    assert controller.found == []


def test_a_reassignment_is_judged_by_the_order_of_its_replicas() -> None:
    """Not if it was refused or cancels another one, and not once another one was asked for."""
    controller = Controller()
    context = controller.context
    assert context is not None
    controller.place((1, 2))

    def ask(replicas: list[int] | None) -> Any:
        row = ReassignablePartition(0, replicas)
        topics = [ReassignableTopic("t", [row])]
        on_answer = controller.witness(AlterPartitionReassignmentsRequest(topics=topics))
        assert on_answer is not None
        return on_answer

    def answer(on_answer: Any, error: int = 0) -> list[str]:
        controller.found.clear()
        topic = ReassignableTopicResponse("t", [ReassignablePartitionResponse(0, error)])
        on_answer(AlterPartitionReassignmentsResponse(responses=[topic]))
        return list(controller.found)

    on_answer = ask([3, 2])
    context.moves[TopicPartition("t", 0)] = Move((3,), (1,))
    controller.place((1, 3, 2))
    assert answer(on_answer) == []
    controller.place((1, 2, 3))
    assert answer(on_answer) == ["t-0"]
    assert answer(on_answer, error=7) == []
    assert answer(ask(None)) == []
    assert answer(on_answer) == [], "the reassignment is cancelled"
    del context.moves[TopicPartition("t", 0)]
    on_answer = ask([2, 1])
    controller.place((1, 2))
    assert answer(on_answer) == ["t-0"]
    context.topics.clear()
    assert answer(on_answer) == [], "the topic is deleted"
