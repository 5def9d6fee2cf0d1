"""The controller at run time: it is elected through ZooKeeper and decides which broker leads what.

All brokers run this code; one of them is the active controller. The active controller handles
events one after the other. An event is only a hint that something may have changed: the controller
reads the change when it handles the event (KAFKA-5879), the rules of `broker_impl.controller`
determine the result, a conditional write stores it, and then the brokers receive their orders. A
term ends with the ZooKeeper session, or when a write or a response shows that there is a later
controller; nothing is written or sent after that (KAFKA-4447).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker_impl import failpoints
from broker_impl.controller.context import Context
from broker_impl.controller.figures import Figures
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node.controller import events, refusal
from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.events import (
    Asked,
    ControllerChanged,
    Event,
    Request,
    SettingsChanged,
)
from broker_impl.node.controller.term import Term
from broker_impl.node.controller.znodes import ControllerMoved, ControllerZnodes
from broker_impl.node.peers import Peers
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
)
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import (
    CreateTopicsResponse,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import (
    DeleteTopicsResponse,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.elect_leaders_response import (
    ElectLeadersResponse,
)
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from broker_impl.wire.types import BrokerId, Epoch
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import SessionExpired

LOG = logging.getLogger(__name__)

NOBODY = -1


@dataclass(frozen=True, slots=True)
class _Hint:
    """A ZooKeeper watch that queues an event; the client fires equal watches only once."""

    put: Callable[[Event], None]
    event: Event

    def __call__(self, seen: WatchEvent) -> None:
        self.put(self.event)


class ControllerRuntime:
    """This broker's part in the controller election, and the controller while it is elected.

    It exists for one ZooKeeper session; the next session gets a new one.
    """

    def __init__(
        self,
        *,
        broker_id: BrokerId,
        zk: ZooKeeper,
        peers: Peers,
        config: ControllerConfig,
        wall_ms: Callable[[], int],
        rng: random.Random,
        counts: Counts,
    ) -> None:
        self.controller_id: BrokerId = NOBODY
        """The id of the controller that this broker knows; -1: none."""
        self._broker_id = broker_id
        self._zk = zk
        self._znodes = ControllerZnodes(zk)
        self._peers = peers
        self._config = config
        self._wall_ms = wall_ms
        self._rng = rng
        self._counts = counts
        self._term: Term | None = None
        self._events: dict[Event | Asked, None] = {}
        self._event_came = asyncio.Event()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._term is not None and self._zk.state is not SessionState.EXPIRED

    @property
    def controller_epoch(self) -> Epoch:
        """The epoch of this broker's latest term; 0 before its first."""
        return self._znodes.epoch

    @property
    def cluster(self) -> Context | None:
        """The view of the cluster in this term; None if this broker is not the controller."""
        return self._term.context if self._term is not None and self.is_active else None

    def figures(self) -> Figures | None:
        """The numbers of the cluster's partitions; None if this broker is not the controller."""
        return self._term.figures() if self._term is not None and self.is_active else None

    async def run(self) -> None:
        """Take part in elections until the session is over.

        While it has no event to handle, this coroutine does not notice that the session has
        expired: the session's owner, which is notified, cancels it.
        """
        try:
            while True:
                await self._be_elected()
                try:
                    await self._serve_term()
                except ControllerMoved as error:
                    LOG.warning("this broker is no longer the controller: %s", error)
                finally:
                    self._resign()
                await self._znodes.abdicate()
        except SessionExpired:
            LOG.info("the session is over, so this broker is not the controller any more")
        finally:
            self.controller_id = NOBODY

    # Requests of clients and of brokers.

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Create topics; one that has no leaders by the deadline is answered REQUEST_TIMED_OUT."""
        deadline = _deadline(request.timeout_ms)
        response: CreateTopicsResponse = await self._ask(request)
        made = [row for row in response.topics if not row.error_code]
        led = partial(_all_led, [row.name for row in made])
        if made and not request.validate_only and not await self._in_time(led, deadline):
            for row in made:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
                row.error_message = "the topic is created, but not yet led"
        return response

    async def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Delete topics; one that still exists at the deadline is answered REQUEST_TIMED_OUT."""
        deadline = _deadline(request.timeout_ms)
        response: DeleteTopicsResponse = await self._ask(request)
        marked = [row for row in response.responses if not row.error_code]
        gone = partial(_all_gone, [row.name for row in marked])
        if marked and not await self._in_time(gone, deadline):
            for row in marked:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
                row.error_message = "the topic goes once all its brokers have deleted it"
        return response

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leadership off a broker that shuts down; return the partitions that it still has."""
        response: ControlledShutdownResponse = await self._ask(request)
        return response

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Add partitions; without leaders for them by the deadline, answer REQUEST_TIMED_OUT."""
        deadline = _deadline(request.timeout_ms)
        response: CreatePartitionsResponse = await self._ask(request)
        made = [row for row in response.results if not row.error_code]
        led = partial(_all_led, [row.name for row in made])
        if made and not request.validate_only and not await self._in_time(led, deadline):
            for row in made:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
                row.error_message = "the partitions are created, but not yet led"
        return response

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Elect leaders as an operator requests; answer once this broker has its own orders."""
        deadline = _deadline(request.timeout_ms)
        response: ElectLeadersResponse = await self._ask(request)
        if not response.error_code:
            await self._in_time(lambda context: True, deadline)
        return response

    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start or cancel reassignments of partitions."""
        response: AlterPartitionReassignmentsResponse = await self._ask(request)
        return response

    async def list_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """Return the reassignments in progress."""
        response: ListPartitionReassignmentsResponse = await self._ask(request)
        return response

    def settings_changed(self) -> None:
        """React to changed settings of topics or brokers."""
        if self.is_active:
            self._put(SettingsChanged())

    async def _ask(self, request: Request) -> Any:
        if not self.is_active:
            return refusal.not_controller(request)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(Asked(request, answer))
        return await answer

    async def _in_time(self, is_true: Callable[[Context], bool], deadline: float) -> bool:
        """Wait until the condition holds and this broker has its orders; False if it is too late.

        It is too late at the deadline, or when the term ends.
        """
        if self._term is None:
            return False
        try:
            async with asyncio.timeout_at(deadline):
                return await self._term.until(is_true)
        except TimeoutError:
            return False

    # Terms.

    async def _be_elected(self) -> None:
        """Wait until this broker wins the election."""
        watch = self._watch(ControllerChanged())
        while True:
            self._events.clear()
            self._event_came.clear()
            holder = await self._znodes.holder(watch)
            # This broker's own claim counts from the start of the term; until then requests are
            # rejected.
            self.controller_id = NOBODY if holder is None or holder.is_me else holder.broker_id
            if holder is None:
                if await self._znodes.claim(self._broker_id, self._wall_ms()):
                    return
            elif holder.is_me:
                await self._znodes.adopt()
                return
            else:
                await self._event_came.wait()

    async def _serve_term(self) -> None:
        """Run one term: read the cluster's state, then handle events until ControllerMoved."""
        LOG.info("this broker is the controller, with epoch %d", self._znodes.epoch)
        self.controller_id = self._broker_id
        term = self._term = Term(
            self._broker_id,
            self._znodes,
            self._peers,
            self._config,
            rng=self._rng,
            counts=self._counts,
            put=self._put,
            watch=self._watch,
        )
        await term.take_over()
        while True:
            while not self._events:
                self._event_came.clear()
                await self._event_came.wait()
            await failpoints.point(failpoints.CONTROLLER_EVENT)
            event = next(iter(self._events))
            del self._events[event]
            if isinstance(event, Asked):
                await self._answer(term, event)
            else:
                await term.handle(event)

    async def _answer(self, term: Term, asked: Asked) -> None:
        try:
            response = await term.obey(asked.request)
        except BaseException:
            self._events = {asked: None, **self._events}  # _resign() answers it
            raise
        if not asked.answer.done():
            asked.answer.set_result(response)

    def _resign(self) -> None:
        """End the term: answer pending requests with NOT_CONTROLLER and send no more orders."""
        if self._term is not None:
            self._term.end()
            self._term = None
        self.controller_id = NOBODY
        left, self._events = self._events, {}
        for asked in events.unanswered(left):
            asked.answer.set_result(refusal.not_controller(asked.request))

    def _put(self, event: Event | Asked) -> None:
        self._events[event] = None
        self._event_came.set()

    def _watch(self, event: Event) -> _Hint:
        return _Hint(self._put, event)


def _deadline(timeout_ms: int) -> float:
    return asyncio.get_running_loop().time() + max(timeout_ms, 0) / 1000


def _all_led(topics: Sequence[str], context: Context) -> bool:
    return all(topic in context.topics and context.is_led(topic) for topic in topics)


def _all_gone(topics: Sequence[str | None], context: Context) -> bool:
    return not any(topic in context.topics for topic in topics)
