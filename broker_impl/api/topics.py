"""The requests about topics and partitions that the controller answers.

Served: CreateTopics (API 19) v0-v7, DeleteTopics (20) v0-v6, CreatePartitions (37) v0-v3,
ElectLeaders (43) v0-v2, AlterPartitionReassignments (45) v0, ListPartitionReassignments (46) v0.
Any other broker answers NOT_CONTROLLER; the client then finds the controller through Metadata.
CreateTopics v7 returns topic ids, and DeleteTopics v6 also deletes by id (KIP-516).
"""

from typing import Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_partitions_response import CreatePartitionsResponse
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import DeleteTopicsResponse
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.elect_leaders_response import ElectLeadersResponse
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)

_DISABLED_SINCE: Final = 3
"""The version of DeleteTopics from which clients know TOPIC_DELETION_DISABLED."""


@api(19, range(8))
async def create_topics(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create topics; answered when they have leaders, or after the timeout."""
    return await context.services.controller.create_topics(request)


@api(20, range(7))
async def delete_topics(
    context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete topics; answered when they are gone, or after the timeout."""
    response = await context.services.controller.delete_topics(request)
    for row in response.responses:
        row.error_code = known_error(row.error_code, context.version)
    return response


def known_error(error: int, version: int) -> int:
    """Return an error of DeleteTopics that clients of this version know."""
    is_known = error != ErrorCode.TOPIC_DELETION_DISABLED or version >= _DISABLED_SINCE
    return error if is_known else ErrorCode.INVALID_REQUEST


@api(37, range(4))
async def create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Add partitions to topics; answered when they have leaders, or after the timeout."""
    return await context.services.controller.create_partitions(request)


@api(43, range(3))
async def elect_leaders(
    context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Hold preferred or unclean elections (KIP-460)."""
    return await context.services.controller.elect_leaders(request)


@api(45, range(1))
async def alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Start or cancel the reassignment of partitions to other replicas (KIP-455)."""
    return await context.services.controller.alter_reassignments(request)


@api(46, range(1))
async def list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments in progress."""
    return await context.services.controller.list_reassignments(request)
