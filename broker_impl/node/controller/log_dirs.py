"""Failed log directories of brokers that go on without them, during one term (KIP-112).

A broker announces in ZooKeeper that one of its directories has failed. The controller then sends it
the roles of all its replicas, and the answer shows which of them are offline. A broker that has not
announced anything can report an offline replica too, because a new controller sends all roles.
"""

import logging
from collections.abc import Callable, Iterable

from broker_impl.controller import offline_replicas
from broker_impl.controller.context import Context
from broker_impl.controller.requests import Outbox
from broker_impl.errors import ErrorCode
from broker_impl.node.controller.events import Event, LogDirsFailed, RolesAnswered
from broker_impl.node.controller.leaders import Leaders
from broker_impl.node.controller.znodes import ControllerZnodes, Watch
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import LeaderAndIsrResponse
from broker_impl.wire.types import BrokerId, TopicPartition

LOG = logging.getLogger(__name__)


class LogDirs:
    """The replicas in failed log directories, during one term."""

    def __init__(
        self,
        context: Context,
        znodes: ControllerZnodes,
        outbox: Outbox,
        leaders: Leaders,
        *,
        put: Callable[[Event], None],
        watch: Callable[[Event], Watch],
    ) -> None:
        self._context = context
        self._znodes = znodes
        self._outbox = outbox
        self._leaders = leaders
        self._put = put
        self._watch = watch
        self._reporting: dict[BrokerId, None] = {}
        """The brokers that have reported an offline replica in this term."""

    async def read(self) -> None:
        """Queue the roles of all replicas on brokers that have announced a failed directory."""
        context = self._context
        notices = await self._znodes.log_dir_events(self._watch(LogDirsFailed()))
        for broker in dict.fromkeys(notices.values()):
            if broker is not None and broker in context.brokers:
                LOG.info("broker %d has announced that a log directory failed", broker)
                for tp in context.partitions_on(broker):
                    self._outbox.queue_leader_and_isr([broker], tp)
        await self._znodes.forget_notices(notices)

    def heard(
        self, broker: BrokerId, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Queue an event for an answer that may change which replicas are offline."""
        codes = offline_replicas.errors(request, response).values()
        if ErrorCode.KAFKA_STORAGE_ERROR in codes:
            self._reporting[broker] = None
        if broker in self._reporting:
            self._put(RolesAnswered(broker, request, response))

    async def roles_answered(self, event: RolesAnswered) -> None:
        """Record which replicas of a broker are offline, and elect leaders where this changed."""
        context = self._context
        if not context.is_registration(event.broker, event.request.broker_epoch):
            return  # a response from a former incarnation
        before = context.offline.get(event.broker, {})
        answered = {
            tp: error
            for tp, error in offline_replicas.errors(event.request, event.response).items()
            if event.broker in context.topics.get(tp.topic, {}).get(tp.partition, ())
        }
        after = offline_replicas.after(before, answered)
        failed = [tp for tp in after if tp not in before]
        returned = [tp for tp in before if tp not in after]
        if not failed and not returned:
            return
        LOG.info(
            "broker %d: replicas that are offline now: %s, online again: %s",
            event.broker,
            failed,
            returned,
        )
        context.set_offline(event.broker, after)
        changed = [tp for tp in (*failed, *returned) if tp.topic not in context.deleting]
        self._outbox.queue_metadata(context.brokers, changed)
        await self._leaders.reconsider(changed)

    def forget(self, brokers: Iterable[BrokerId]) -> list[TopicPartition]:
        """Forget the offline replicas of brokers that are gone or registered again; return them."""
        return [tp for number in brokers for tp in self._context.offline.pop(number, ())]
