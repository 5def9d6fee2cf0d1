"""Queues of the controller's orders: one queue per broker, sent in order.

Each order stays first in its queue until it is answered. An order without a response is sent again
for as long as the broker is registered: the epochs in an order show the broker whether it has
already applied it. The queue of a broker that is gone is dropped; a returning broker receives the
complete state.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from broker_impl.controller.requests import Order
from broker_impl.node.peers import PeerError, Peers
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import BrokerId

LOG = logging.getLogger(__name__)

VERSIONS: dict[type, int] = {
    LeaderAndIsrRequest: 5,
    UpdateMetadataRequest: 7,
    StopReplicaRequest: 3,
}
"""The request versions of Kafka 2.8."""

_RETRY_S = 0.1

OnAnswer = Callable[[BrokerId, Order, Any], None]


class Orders:
    """The order queues of all brokers."""

    def __init__(self, peers: Peers, *, timeout_s: float, on_answer: OnAnswer) -> None:
        self._peers = peers
        self._timeout_s = timeout_s
        self._on_answer = on_answer
        self._queues: dict[BrokerId, _Queue] = {}

    def open(self, broker: BrokerId) -> None:
        """Open a new queue for a broker that registered, possibly again."""
        self.drop(broker)
        self._queues[broker] = _Queue()
        task = asyncio.get_running_loop().create_task(self._send(broker, self._queues[broker]))
        self._queues[broker].task = task

    def drop(self, broker: BrokerId) -> None:
        """Drop the queue and the connection of a broker that is gone."""
        queue = self._queues.pop(broker, None)
        if queue is not None:
            queue.close()
            self._peers.disconnect(broker)

    def close(self) -> None:
        """Drop all queues."""
        for broker in list(self._queues):
            self.drop(broker)

    def send(self, broker: BrokerId, orders: Iterable[Order]) -> None:
        """Append orders to a broker's queue."""
        for order in orders:
            self._queues[broker].put(order)

    async def obeyed(self, broker: BrokerId) -> None:
        """Wait until the broker answers all orders now in its queue, or the queue is dropped."""
        queue = self._queues.get(broker)
        if queue is not None:
            await queue.empty()

    async def _send(self, broker: BrokerId, queue: "_Queue") -> None:
        while True:
            order = await queue.next()
            while True:
                try:
                    answer = await self._peers.request(
                        broker, order, VERSIONS[type(order)], timeout_s=self._timeout_s
                    )
                except PeerError as error:
                    LOG.info("%s: %s; trying again", type(order).__name__, error)
                    await asyncio.sleep(_RETRY_S)
                else:
                    break
            self._on_answer(broker, order, answer)
            queue.done()


class _Queue:
    """The orders to one broker; the first one stays until it is answered."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._orders: list[Order] = []
        self._sent = 0
        self._answered = 0
        self._arrived: asyncio.Future[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def put(self, order: Order) -> None:
        self._orders.append(order)
        self._sent += 1
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def next(self) -> Order:
        while not self._orders:
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return self._orders[0]

    def done(self) -> None:
        """Remove the first order, which was answered."""
        del self._orders[0]
        self._answered += 1
        for number, future in self._waiting:
            if number <= self._answered and not future.done():
                future.set_result(None)
        self._waiting = [pair for pair in self._waiting if not pair[1].done()]

    async def empty(self) -> None:
        """Wait until all orders queued so far are answered, or the queue is closed."""
        if self._answered < self._sent:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._sent, future))
            await future

    def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
        for _, future in self._waiting:
            if not future.done():
                future.set_result(None)
