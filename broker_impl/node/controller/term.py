"""One term of the controller: its view of the cluster, and its reaction to each event.

A term begins with a read of the cluster's state, and each event after it leads to reads, decisions
by the rules of `broker_impl.controller`, conditional writes, and orders. It ends when a write or a
response shows that there is a later controller (``ControllerMoved``); nothing is written or sent
after that (KAFKA-4447).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, assert_never

from broker_impl.controller import figures
from broker_impl.controller.context import Context
from broker_impl.controller.requests import Order, Outbox
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node.controller.admin_requests import AdminRequests
from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.events import (
    AdminRequestsChanged,
    BrokersChanged,
    ControllerChanged,
    DeletionsAsked,
    DeletionsDue,
    Event,
    IsrsChanged,
    LogDirsFailed,
    PartitionsChanged,
    RebalanceDue,
    ReplicasStopped,
    Request,
    RolesAnswered,
    SettingsChanged,
    StaleControllerEpoch,
    TopicsChanged,
)
from broker_impl.node.controller.leaders import Leaders
from broker_impl.node.controller.log_dirs import LogDirs
from broker_impl.node.controller.orders import Orders
from broker_impl.node.controller.reassignments import Reassignments
from broker_impl.node.controller.topics import Topics
from broker_impl.node.controller.znodes import ControllerMoved, ControllerZnodes
from broker_impl.node.peers import Peers
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.types import BrokerId
from broker_impl.zookeeper.client_watches import WatchEvent

LOG = logging.getLogger(__name__)

_DELETION_RETRY_S = 1.0


class Term:
    """One term of the controller: its view of the cluster and its reaction to each event."""

    def __init__(
        self,
        broker_id: BrokerId,
        znodes: ControllerZnodes,
        peers: Peers,
        config: ControllerConfig,
        *,
        rng: random.Random,
        counts: Counts,
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
        self._leaders = Leaders(self._context, znodes, self._outbox, config, counts)
        self._topics = Topics(
            self._context,
            znodes,
            self._outbox,
            config,
            rng=rng,
            watch=watch,
            retry_deletions=lambda: self._later(_DELETION_RETRY_S, DeletionsDue()),
        )
        self._reassignments = Reassignments(self._context, znodes, self._outbox, self._leaders)
        self._admin_requests = AdminRequests(
            self._context, znodes, self._leaders, self._reassignments, watch=watch
        )
        self._log_dirs = LogDirs(
            self._context, znodes, self._outbox, self._leaders, put=put, watch=watch
        )
        self._timers: dict[Event, asyncio.TimerHandle] = {}
        self._until: list[tuple[Callable[[Context], bool], asyncio.Future[None]]] = []
        self._is_over = False

    @property
    def context(self) -> Context:
        """This term's view of the cluster."""
        return self._context

    async def take_over(self) -> None:
        """Read the cluster's state, and queue the full state for every broker."""
        context = self._context
        await self._check_claim()
        context.brokers = await self._znodes.brokers(self._watch(BrokersChanged()))
        self._meet(list(context.brokers))
        await self._topics.read()
        await self._topics.read_deletions()
        await self._read_isr_changes()
        await self._log_dirs.read()
        await self._leaders.distrust_returned()
        await self._leaders.lead_new()
        await self._leaders.reconsider()
        await self._reassignments.go_on()
        await self._admin_requests.read()
        await self._admin_requests.go_on()
        self._queue_everything(context.brokers)
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
            case AdminRequestsChanged():
                await self._topics.read()
                await self._admin_requests.read()
            case SettingsChanged():
                await self._leaders.reconsider()
            case DeletionsDue():
                await self._topics.go_on_deleting()
            case ReplicasStopped():
                await self._topics.replicas_stopped(event)
            case IsrsChanged():
                await self._read_isr_changes()
                await self._reassignments.go_on()
            case LogDirsFailed():
                await self._log_dirs.read()
            case RolesAnswered():
                await self._log_dirs.roles_answered(event)
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
        await self._admin_requests.go_on()
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
                response = await self._leaders.move_leaders(request)
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
        await self._admin_requests.go_on()
        self._settled()
        return response

    def figures(self) -> figures.Figures:
        """The numbers of partitions, and of those that need an election."""
        return figures.of(self._context)

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
            raise ControllerMoved("the controller znode does not name this broker any more")

    async def _read_isr_changes(self) -> None:
        notices = await self._znodes.isr_changes(self._watch(IsrsChanged()))
        await self._leaders.read_isr_changes(notices.values())
        await self._znodes.forget_notices(notices)

    async def _brokers_changed(self) -> None:
        context = self._context
        before = context.brokers
        found = await self._znodes.brokers(self._watch(BrokersChanged()))
        gone = [n for n in before if n not in found or found[n].epoch != before[n].epoch]
        come = [n for n in found if n not in before or found[n].epoch != before[n].epoch]
        if not gone and not come:
            return
        LOG.info("brokers that failed: %s, brokers that started: %s", gone, come)
        for number in gone:
            self._orders.drop(number)
            context.broker_gone(number)
        were_offline = self._log_dirs.forget(gone)
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
        self._queue_everything(come)
        self._outbox.queue_metadata(found, were_offline)
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
        self._outbox.queue_live_brokers()

    def _queue_everything(self, brokers: Iterable[BrokerId]) -> None:
        """Queue the complete state for brokers that have none yet."""
        context = self._context
        everything = [tp for topic in context.topics for tp in context.partitions_of(topic)]
        self._outbox.queue_metadata(brokers, everything)
        for number in brokers:
            for tp in context.partitions_on(number):
                self._outbox.queue_leader_and_isr([number], tp)

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
        if isinstance(order, LeaderAndIsrRequest):
            self._log_dirs.heard(broker, order, response)

    def _rebalance_later(self) -> None:
        if self._config.rebalance_s is not None:
            self._later(self._config.rebalance_s, RebalanceDue())

    def _later(self, delay_s: float, event: Event) -> None:
        """Queue the event after a delay; a further call restarts the delay."""
        if event in self._timers:
            self._timers[event].cancel()
        loop = asyncio.get_running_loop()
        self._timers[event] = loop.call_later(delay_s, self._put, event)
