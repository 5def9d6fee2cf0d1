"""Error responses for whole requests: those of a broker that is not the controller, and others."""

from typing import Any, assert_never

from broker_impl.errors import ErrorCode
from broker_impl.node.controller.events import (
    Request,
)
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import ControlledShutdownResponse
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from broker_impl.wire.messages.delete_topics_response import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)


def not_controller(request: Request) -> Any:
    """Return the response of a broker that is not the controller."""
    error = ErrorCode.NOT_CONTROLLER
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=error, error_message=None)
                    for topic in request.topics
                ]
            )
        case DeleteTopicsRequest():
            return not_deleted(request, error)
        case ControlledShutdownRequest():
            return ControlledShutdownResponse(error_code=error)
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(name=topic.name, error_code=error)
                    for topic in request.topics
                ]
            )
        case ElectLeadersRequest():
            return ElectLeadersResponse(
                error_code=error,
                replica_election_results=[
                    ReplicaElectionResult(
                        topic=topic.topic,
                        partition_result=[
                            PartitionResult(number, error, None) for number in topic.partitions
                        ],
                    )
                    for topic in request.topic_partitions or ()
                ],
            )
        case AlterPartitionReassignmentsRequest():
            return AlterPartitionReassignmentsResponse(error_code=error, error_message=None)
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(error_code=error, error_message=None)
        case _:
            assert_never(request)


def not_deleted(request: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    """Return the response in which every topic has this error."""
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=row.name, topic_id=row.topic_id, error_code=error)
            for row in named_topics(request)
        ]
    )


def named_topics(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """Return the topics of a request in the form of v6, in which each has a name or an id."""
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
