"""FindCoordinator (API 10), v0-v4.

The coordinator of a transactional id is the leader of its partition of the internal topic, which
is created when somebody first asks. Until it has a leader: COORDINATOR_NOT_AVAILABLE.
Refuses: consumer groups: nobody coordinates them.
"""

from typing import Final

from broker_impl.api.registry import RequestContext, api
from broker_impl.coordinator import placing, transaction_records
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import (
    Coordinator,
    FindCoordinatorResponse,
)
from broker_impl.wire.types import TopicPartition

TRANSACTION: Final = 1
"""The kind of key that is a transactional id; 0 is a group's."""


@api(10, range(5))
def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Who coordinates each key, at the address of the listener that was asked."""
    if context.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_find(context, request.key_type, key) for key in request.coordinator_keys]
        )
    found = _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(context: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type != TRANSACTION:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "nobody coordinates groups")
    if not key:
        return _nobody(key, ErrorCode.INVALID_REQUEST, "a transactional id is not empty")
    services = context.services
    topic = transaction_records.TOPIC
    number = placing.partition_of(key, services.config.transaction_state_log_num_partitions)
    partition = services.view.partition(TopicPartition(topic, number))
    if partition is None:
        services.create_in_background([topic])
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created")
    broker = services.view.brokers.get(partition.leader)
    endpoint = None if broker is None else broker.endpoints.get(context.listener)
    if endpoint is None:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic}-{number} has no leader")
    host, port = endpoint
    return Coordinator(key=key, node_id=partition.leader, host=host, port=port, error_message=None)


def _nobody(key: str, error: ErrorCode, why: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=why)
