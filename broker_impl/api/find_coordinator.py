"""FindCoordinator (API 10), v0-v4: the coordinator of a group or of a transactional id.

The coordinator is the leader of the partition of the internal topic to which the name hashes. The
topic is created on the first request; until it exists, the answer is COORDINATOR_NOT_AVAILABLE,
which clients retry.
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import (
    Coordinator,
    FindCoordinatorResponse,
)

_GROUP, _TRANSACTION = 0, 1
"""The types of keys."""


@api(10, range(5))
def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Return the coordinator of each key; before v4, a request has one key."""
    if context.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_find(context, key, request.key_type) for key in request.coordinator_keys]
        )
    found = _find(context, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(context: RequestContext, key: str, key_type: int) -> Coordinator:
    services = context.services
    if key_type == _GROUP:
        topic, number = services.groups.partition_of(key)
    elif key_type == _TRANSACTION:
        topic, number = services.transactions.partition_of(key)
    else:
        return _nobody(key, ErrorCode.INVALID_REQUEST, f"key type {key_type} is unknown")
    view = services.view
    partitions = view.topics.get(topic)
    if not partitions:
        services.create_in_background([topic])
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being made")
    leader = partitions[number].leader if number in partitions else -1
    if leader not in view.brokers or context.listener not in view.brokers[leader].endpoints:
        return _nobody(
            key,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{topic}-{number}: no leader known",
        )
    host, port = view.brokers[leader].endpoints[context.listener]
    return Coordinator(key=key, node_id=leader, host=host, port=port, error_message=None)


def _nobody(key: str, error: ErrorCode, why: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=why)
