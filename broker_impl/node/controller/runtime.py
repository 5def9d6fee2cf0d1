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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from broker_impl import failpoints
from broker_impl.controller.context import Context
from broker_impl.controller.requests import Order, Outbox
from broker_impl.errors import ErrorCode
from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.events import (
    Asked,
    BrokersChanged,
    ControllerChanged,
    DeletionsAsked,
    DeletionsDue,
    Event,
    IsrsChanged,
    PartitionsChanged,
    RebalanceDue,
    ReplicasStopped,
    Request,
    SettingsChanged,
    StaleControllerEpoch,
    TopicsChanged,
)
from broker_impl.node.controller.leaders import Leaders
from broker_impl.node.controller.orders import Orders
from broker_impl.node.controller.reassignments import Reassignments
from broker_impl.node.controller.topics import Topics
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
    CreatePartitionsTopicResult,
)
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
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
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.types import BrokerId, Epoch
from broker_impl.zookeeper.client import State, WatchEvent, ZooKeeper
from broker_impl.zookeeper.errors import SessionExpired

LOG = logging.getLogger(__name__)

NOBODY = -1

_DELETION_RETRY_S = 1.0


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
        self._term: _Term | None = None
        self._events: dict[Event | Asked, None] = {}
        self._event_came = asyncio.Event()

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._term is not None and self._zk.state is not State.EXPIRED

    @property
    def controller_epoch(self) -> Epoch:
        """The epoch of this broker's latest term; 0 before its first."""
        return self._znodes.epoch

    async def run(self) -> None:
        """Take part in elections until the session is over.

        While it has no event to handle, this coroutine does not notice that the session has
        expired: the session's owner, which is notified, cancels it.
        """
        try:
            while True:
                await self._be_elected()
                try:
                    await self._reign()
                except ControllerMoved as error:
                    LOG.warning("no longer the controller: %s", error)
                finally:
                    self._resign()
                await self._znodes.abdicate()
        except SessionExpired:
            LOG.info("the session is over, and with it any claim to be the controller")
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
            return _not_controller(request)
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

    async def _reign(self) -> None:
        """Run one term: read the cluster's state, then handle events until ControllerMoved."""
        LOG.info("the controller, of epoch %d", self._znodes.epoch)
        self.controller_id = self._broker_id
        term = self._term = _Term(
            self._broker_id,
            self._znodes,
            self._peers,
            self._config,
            rng=self._rng,
            put=self._put,
            watch=self._watch,
        )
        await term.take_over()
        while True:
            while not self._events:
                self._event_came.clear()
                await self._event_came.wait()
            event = next(iter(self._events))
            del self._events[event]
            await failpoints.point(failpoints.CONTROLLER_EVENT)
            if isinstance(event, Asked):
                await self._answer(term, event)
            else:
                await term.handle(event)

    async def _answer(self, term: "_Term", asked: Asked) -> None:
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
        events, self._events = self._events, {}
        for event in events:
            if isinstance(event, Asked) and not event.answer.done():
                event.answer.set_result(_not_controller(event.request))

    def _put(self, event: Event | Asked) -> None:
        self._events[event] = None
        self._event_came.set()

    def _watch(self, event: Event) -> _Hint:
        return _Hint(self._put, event)


class _Term:
    """One term of the controller: its view of the cluster and its reaction to each event."""

    def __init__(
        self,
        broker_id: BrokerId,
        znodes: ControllerZnodes,
        peers: Peers,
        config: ControllerConfig,
        *,
        rng: random.Random,
        put: Callable[[Event], None],
        watch: Callable[[Event], Callable[[WatchEvent], None]],
    ) -> None:
        self._broker_id = broker_id
        self._znodes = znodes
        self._peers = peers
        self._config = config
        self._put = put
        self._watch = watch
        self._context = Context(znodes.epoch)
        self._outbox = Outbox()
        self._orders = Orders(peers, timeout_s=config.socket_timeout_s, on_answer=self._answered)
        self._leaders = Leaders(self._context, znodes, self._outbox, config)
        self._topics = Topics(
            self._context,
            znodes,
            self._outbox,
            config,
            rng=rng,
            watch=watch,
            retry_deletions=partial(self._later, _DELETION_RETRY_S, DeletionsDue()),
        )
        self._reassignments = Reassignments(self._context, znodes, self._outbox, self._leaders)
        self._timers: dict[Event, asyncio.TimerHandle] = {}
        self._until: list[tuple[Callable[[Context], bool], asyncio.Future[None]]] = []
        self._is_over = False

    async def take_over(self) -> None:
        """Read the cluster's state, and queue the full state for every broker."""
        context = self._context
        await self._check_claim()
        context.brokers = await self._znodes.brokers(self._watch(BrokersChanged()))
        self._meet(list(context.brokers))
        await self._topics.read()
        await self._topics.read_deletions()
        notices = await self._znodes.isr_changes(self._watch(IsrsChanged()))
        await self._leaders.read_isr_changes(notices.values())
        await self._znodes.forget_isr_changes(notices)
        await self._leaders.distrust_returned()
        await self._leaders.lead_new()
        await self._leaders.reconsider()
        await self._reassignments.go_on()
        self._tell_everything(context.brokers)
        self._rebalance_later()
        self._settled()

    async def handle(self, event: Event) -> None:
        """Read what has changed and act on it. Raises ControllerMoved."""
        match event:
            case BrokersChanged():
                await self._brokers_changed()
            case TopicsChanged():
                await self._topics.read()
                await self._leaders.lead_new()
            case PartitionsChanged(topic):
                await self._topics.read_partitions(topic)
                await self._leaders.lead_new()
            case DeletionsAsked():
                await self._topics.read_deletions()
            case SettingsChanged():
                await self._leaders.reconsider()
            case DeletionsDue():
                await self._topics.go_on_deleting()
            case ReplicasStopped():
                await self._topics.replicas_stopped(event)
            case IsrsChanged():
                notices = await self._znodes.isr_changes(self._watch(IsrsChanged()))
                await self._leaders.read_isr_changes(notices.values())
                await self._znodes.forget_isr_changes(notices)
                await self._reassignments.go_on()
            case RebalanceDue():
                await self._leaders.rebalance()
                self._rebalance_later()
            case ControllerChanged():
                await self._check_claim()
            case StaleControllerEpoch(broker):
                raise ControllerMoved(f"broker {broker} knows a later controller")
            case _:
                assert_never(event)
        self._settled()

    async def obey(self, request: Request) -> Any:
        """Carry out a request, and return the response once the result is written.

        Raises ControllerMoved.
        """
        response: Any
        match request:
            case CreateTopicsRequest():
                response = await self._topics.create(request)
                await self._leaders.lead_new()
            case DeleteTopicsRequest():
                response = await self._topics.delete(request)
            case ControlledShutdownRequest():
                response = await self._leaders.let_go(request)
            case CreatePartitionsRequest():
                response = await self._topics.extend(request)
                await self._leaders.lead_new()
            case ElectLeadersRequest():
                response = await self._leaders.elect(request)
            case AlterPartitionReassignmentsRequest():
                await self._topics.read()
                response = await self._reassignments.alter(request)
            case ListPartitionReassignmentsRequest():
                response = self._reassignments.list(request)
            case _:
                assert_never(request)
        self._settled()
        return response

    async def until(self, is_true: Callable[[Context], bool]) -> bool:
        """Wait until the condition holds and this broker has its orders; False if the term ends."""
        if not is_true(self._context):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._until.append((is_true, future))
            await future
        await self._orders.obeyed(self._broker_id)
        return not self._is_over

    def end(self) -> None:
        """End the term: send no more orders and release all waiters."""
        self._is_over = True
        self._orders.close()
        for timer in self._timers.values():
            timer.cancel()
        for _, future in self._until:
            if not future.done():
                future.set_result(None)

    async def _check_claim(self) -> None:
        holder = await self._znodes.holder(self._watch(ControllerChanged()))
        if holder is None or not holder.is_me:
            raise ControllerMoved("the claim is gone")

    async def _brokers_changed(self) -> None:
        context = self._context
        before = context.brokers
        found = await self._znodes.brokers(self._watch(BrokersChanged()))
        gone = [n for n in before if n not in found or found[n].epoch != before[n].epoch]
        come = [n for n in found if n not in before or found[n].epoch != before[n].epoch]
        if not gone and not come:
            return
        LOG.info("brokers gone: %s, come: %s", gone, come)
        for number in gone:
            context.leaving.pop(number, None)
            self._orders.drop(number)
            for deletion in context.deleting.values():
                deletion.broker_gone(number)
        # A broker that restarted between two reads is registered again, with another epoch. It has
        # lost what was not yet on disk, so it loses its place in ISRs and its leaderships as well.
        bounced = [n for n in gone if n in come]
        context.brokers = {n: broker for n, broker in found.items() if n not in bounced}
        await self._leaders.reconsider()
        if bounced:
            context.brokers = found
            await self._leaders.reconsider()
        await self._leaders.lead_new()
        self._meet(come)
        self._tell_everything(come)
        await self._topics.go_on_deleting()
        await self._reassignments.go_on()

    def _meet(self, come: Iterable[BrokerId]) -> None:
        """Update the brokers' addresses, open queues to new ones, queue the broker list."""
        listener = self._config.inter_broker_listener
        self._peers.update(
            {
                number: (endpoint.host, endpoint.port)
                for number, broker in self._context.brokers.items()
                for endpoint in broker.endpoints
                if endpoint.name == listener
            }
        )
        for number in come:
            self._orders.open(number)
        self._outbox.tell_brokers()

    def _tell_everything(self, brokers: Iterable[BrokerId]) -> None:
        """Queue the complete state for brokers that have none yet."""
        context = self._context
        everything = [tp for topic in context.topics for tp in context.partitions_of(topic)]
        self._outbox.tell_metadata(brokers, everything)
        for number in brokers:
            for tp in context.partitions_on(number):
                self._outbox.tell_roles([number], tp)

    def _settled(self) -> None:
        """Send the orders that the event caused, and release waiters whose condition now holds."""
        context = self._context
        context.check()
        for broker, orders in self._outbox.drain(context, self._broker_id).items():
            self._orders.send(broker, orders)
        for is_true, future in self._until:
            if not future.done() and is_true(context):
                future.set_result(None)
        self._until = [pair for pair in self._until if not pair[1].done()]

    def _answered(self, broker: BrokerId, order: Order, response: Any) -> None:
        if response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH:
            self._put(StaleControllerEpoch(broker))
        elif response.error_code:
            LOG.warning("broker %d: %s: %d", broker, type(order).__name__, response.error_code)
        if isinstance(order, StopReplicaRequest):
            self._put(ReplicasStopped(broker, order, response))

    def _rebalance_later(self) -> None:
        if self._config.rebalance_s is not None:
            self._later(self._config.rebalance_s, RebalanceDue())

    def _later(self, delay_s: float, event: Event) -> None:
        """Queue the event after a delay; a further call restarts the delay."""
        if event in self._timers:
            self._timers[event].cancel()
        loop = asyncio.get_running_loop()
        self._timers[event] = loop.call_later(delay_s, self._put, event)


def _deadline(timeout_ms: int) -> float:
    return asyncio.get_running_loop().time() + max(timeout_ms, 0) / 1000


def _all_led(topics: Sequence[str], context: Context) -> bool:
    return all(topic in context.topics and context.is_led(topic) for topic in topics)


def _all_gone(topics: Sequence[str | None], context: Context) -> bool:
    return not any(topic in context.topics for topic in topics)


def _not_controller(request: Request) -> Any:
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
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(name=name, error_code=error)
                    for name in request.topic_names
                ]
            )
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
