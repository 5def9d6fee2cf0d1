"""CreateTopics (API 19), v2-v6, and DeleteTopics (API 20), v1-v5: the controller decides.

Any other broker answers NOT_CONTROLLER, upon which a client asks Metadata who is.
Left out: topic ids (CreateTopics v7, DeleteTopics v6).
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import DeleteTopicsResponse


@api(19, range(2, 7))
async def create_topics(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """New topics, assigned and led by the time of the answer or of its timeout."""
    return await context.services.controller.create_topics(request)


@api(20, range(1, 6))
async def delete_topics(
    context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Topics marked for deletion, gone by the time of the answer or of its timeout."""
    return await context.services.controller.delete_topics(request)
