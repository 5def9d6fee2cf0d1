"""InitProducerId (API 22), v0-v4, and FindCoordinator (API 10), v0-v4.

An idempotent producer gets an id that nobody else has, epoch 0 (KIP-98); also when it brings an
old one along (KIP-360: without a transactional id there is no epoch to bump).
Refuses: transactional ids and consumer groups: no coordinator is available for either.
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import (
    Coordinator,
    FindCoordinatorResponse,
)
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.init_producer_id_response import InitProducerIdResponse

_NO_COORDINATOR = "this broker coordinates neither groups nor transactions"


@api(22, range(5))
async def init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A fresh producer id."""
    error, number = ErrorCode.NONE, -1
    if request.transactional_id is not None:
        error = ErrorCode.NOT_COORDINATOR
    else:
        try:
            number = await context.services.next_producer_id()
        except ApiError as refusal:
            error = refusal.code
    return InitProducerIdResponse(
        error_code=error, producer_id=number, producer_epoch=-1 if error else 0
    )


@api(10, range(5))
def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Nobody coordinates."""
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if context.version < 4:
        return FindCoordinatorResponse(
            error_code=error, error_message=_NO_COORDINATOR, node_id=-1, host="", port=-1
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key,
                node_id=-1,
                host="",
                port=-1,
                error_code=error,
                error_message=_NO_COORDINATOR,
            )
            for key in request.coordinator_keys
        ]
    )
