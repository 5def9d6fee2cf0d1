from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.producers import init_producer_id
from broker_impl.api.registry import RequestContext
from broker_impl.coordinator.transactions.events import InitAnswer
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest


@pytest.mark.parametrize("name", [None, "t"])
@pytest.mark.parametrize(
    ("producer_id", "epoch", "is_served"),
    [(-1, -1, True), (5, 0, True), (0, 3, True), (5, -1, False), (-1, 0, False)],
)
async def test_an_old_id_has_an_epoch(
    name: str | None, producer_id: int, epoch: int, is_served: bool
) -> None:
    """An old producer id without its epoch, and an epoch without its id, are INVALID_REQUEST."""

    async def init(*_: Any) -> InitAnswer:
        return InitAnswer(producer_id=9, producer_epoch=0)

    async def next_id() -> int:
        return 9

    services: Any = SimpleNamespace(
        transactions=SimpleNamespace(init_producer_id=init), next_producer_id=next_id
    )
    context = RequestContext(services, "L", None, "h", 0, 4, lambda: 1000)
    answer = await init_producer_id(context, InitProducerIdRequest(name, 1000, producer_id, epoch))
    shown = (answer.error_code, answer.producer_id, answer.producer_epoch)
    assert shown == ((0, 9, 0) if is_served else (ErrorCode.INVALID_REQUEST, -1, -1))
