from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.registry import RequestContext
from broker_impl.api.topics import delete_topics
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)


@pytest.mark.parametrize(
    ("version", "error", "shown"),
    [
        (2, ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.TOPIC_DELETION_DISABLED),
        (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, ErrorCode.NONE, ErrorCode.NONE),
    ],
)
async def test_an_error_that_old_clients_do_not_know(
    version: int, error: ErrorCode, shown: ErrorCode
) -> None:
    """With delete.topic.enable=false, clients below v3 get INVALID_REQUEST, as in Kafka."""

    async def refuse(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        rows = [DeletableTopicResult(name=name, error_code=error) for name in request.topic_names]
        return DeleteTopicsResponse(responses=rows)

    services: Any = SimpleNamespace(controller=SimpleNamespace(delete_topics=refuse))
    context = RequestContext(services, "L", None, "h", 0, version, lambda: 1000)
    answer = await delete_topics(context, DeleteTopicsRequest(topic_names=["t", "u"]))
    assert [row.error_code for row in answer.responses] == [shown, shown]
