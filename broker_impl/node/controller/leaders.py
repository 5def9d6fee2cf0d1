"""Elections and ISR changes: choose by the rules, write conditionally, and queue the orders."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from broker_impl import failpoints
from broker_impl.controller import context as contexts
from broker_impl.controller import election
from broker_impl.controller.context import Context, Leadership
from broker_impl.controller.election import NO_LEADER, Choice
from broker_impl.controller.requests import Outbox
from broker_impl.counts import Counts
from broker_impl.errors import ApiError, ConfigError, ErrorCode
from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.znodes import ControllerZnodes
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from broker_impl.wire.types import BrokerId, TopicPartition

LOG = logging.getLogger(__name__)

_IMBALANCE_MAX = 0.1
"""The share of a broker's preferred partitions that other brokers may lead (Kafka's default)."""
_ANY_EPOCH = -1
PREFERRED, UNCLEAN = range(2)
"""Types of election."""
_NOT_ELECTED = {
    False: (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "the preferred leader is not in sync"),
    True: (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is alive"),
}

Choose = Callable[[TopicPartition, Leadership], Choice | None]


class Leaders:
    """The leadership of all partitions during one term."""

    def __init__(
        self,
        context: Context,
        znodes: ControllerZnodes,
        outbox: Outbox,
        config: ControllerConfig,
        counts: Counts,
    ) -> None:
        self._context = context
        self._znodes = znodes
        self._outbox = outbox
        self._config = config
        self._counts = counts

    async def lead_new(self) -> None:
        """Elect a first leader for each partition that never had one and has a live replica."""
        context = self._context
        wanted = {}
        for tp in context.partitions():
            if tp not in context.leadership:
                choice = election.first(context.replicas(tp), context.candidates_for(tp))
                if choice is None:
                    LOG.warning("%s has no leader: no replica is alive", tp)
                else:
                    wanted[tp] = Leadership(choice.leader, 0, choice.isr, context.controller_epoch)
        found = await _all(self._znodes.begin(tp, state) for tp, state in wanted.items())
        for (tp, state), there in zip(wanted.items(), found, strict=True):
            if there is not None:
                self._now(tp, there, is_new=there == state)

    async def distrust_returned(self) -> None:
        """Remove ISR members that registered again since their ISR was written; once per term.

        They may have been away while there was no controller.
        """
        context = self._context

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            back = context.returned(state)
            if back:
                LOG.info(
                    "%s: these members of the ISR registered again after it was written: %s",
                    tp,
                    back,
                )
            return election.returned(
                context.replicas(tp), state.leader, state.isr, context.candidates_for(tp), back
            )

        await self.settle(context.partitions(), choose)

    async def reconsider(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Hold elections and shrink ISRs where the live replicas have changed.

        partitions: those in which they may have changed; None: all.
        """
        context = self._context
        concerned = list(context.partitions() if partitions is None else partitions)
        leaderless = {
            tp.topic: None
            for tp in concerned
            if tp in context.leadership and not context.is_live(context.leadership[tp].leader, tp)
        }
        allowed = await asyncio.gather(*(self._is_unclean(topic) for topic in leaderless))
        unclean = dict(zip(leaderless, allowed, strict=True))

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            return election.reconsider(
                context.replicas(tp),
                state.leader,
                state.isr,
                context.live_for(tp),
                context.candidates_for(tp),
                unclean=unclean.get(tp.topic, False),
            )

        await self.settle(concerned, choose)

    async def rebalance(self) -> None:
        """Restore preferred leaders where a broker lacks too many of its preferred partitions."""
        context = self._context
        wishes: dict[BrokerId, list[TopicPartition]] = {}
        for tp in context.partitions():
            if tp in context.leadership:
                wishes.setdefault(context.replicas(tp)[0], []).append(tp)

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            return election.preferred(
                context.replicas(tp), state.leader, state.isr, context.candidates_for(tp)
            )

        for broker, wished in sorted(wishes.items()):
            away = [tp for tp in wished if context.leadership[tp].leader != broker]
            if len(away) > _IMBALANCE_MAX * len(wished):
                context.leadership.update(await self._znodes.leaderships(away))
                await self.settle(away, choose)

    async def move_leaders(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move leadership off a broker that shuts down, and remove it from ISRs."""
        context = self._context
        broker = context.brokers.get(request.broker_id)
        if broker is None:
            return ControlledShutdownResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        if _ANY_EPOCH < request.broker_epoch < broker.epoch:
            return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        LOG.info("broker %d requests a controlled shutdown", broker.id)
        context.leaving[broker.id] = None

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            return election.controlled_shutdown(
                context.replicas(tp), state.leader, state.isr, context.candidates_for(tp), broker.id
            )

        concerned = [tp for tp in context.partitions_on(broker.id) if len(context.replicas(tp)) > 1]
        await self.settle(concerned, choose)
        remaining = []
        for tp in concerned:
            if tp in context.leadership and context.leadership[tp].leader == broker.id:
                remaining.append(RemainingPartition(tp.topic, tp.partition))
            else:
                # It must stop following too, or it would join the ISR again.
                self._outbox.queue_stop(broker.id, tp, delete=False)
        return ControlledShutdownResponse(remaining_partitions=remaining)

    async def elect(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Hold preferred or unclean elections that an operator requests.

        A request that names no partitions means all of them; the response then contains only those
        that needed an election.
        """
        context = self._context
        is_unclean = request.election_type == UNCLEAN
        elect = election.unclean if is_unclean else election.preferred
        named = _named(request)
        wanted = list(context.leadership) if named is None else named
        errors = {tp: self._needs_none(tp, is_unclean=is_unclean) for tp in wanted}
        if named is None:
            errors = {tp: error for tp, error in errors.items() if error.code is ErrorCode.NONE}
        due = [tp for tp, error in errors.items() if error.code is ErrorCode.NONE]
        context.leadership.update(await self._znodes.leaderships(due))

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            return elect(context.replicas(tp), state.leader, state.isr, context.candidates_for(tp))

        await self.settle(due, choose)
        for tp in due:
            if self._needs_none(tp, is_unclean=is_unclean).code is ErrorCode.NONE:
                errors[tp] = ApiError(*_NOT_ELECTED[is_unclean])
        results: dict[str, ReplicaElectionResult] = {}
        for tp, error in errors.items():
            topic = results.setdefault(tp.topic, ReplicaElectionResult(topic=tp.topic))
            topic.partition_result.append(
                PartitionResult(tp.partition, error.code, error.message or None)
            )
        return ElectLeadersResponse(replica_election_results=list(results.values()))

    def _needs_none(self, tp: TopicPartition, *, is_unclean: bool) -> ApiError:
        """Return why a partition needs no election; code NONE: it needs one."""
        context = self._context
        if tp.topic in context.deleting:
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic is being deleted")
        state = context.leadership.get(tp)
        if state is None:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
        satisfied = state.leader == context.replicas(tp)[0]
        if is_unclean:
            satisfied = context.is_live(state.leader, tp)
        if satisfied:
            return ApiError(ErrorCode.ELECTION_NOT_NEEDED, "the partition already has this leader")
        return ApiError(ErrorCode.NONE, "")

    async def read_isr_changes(self, notices: Iterable[Iterable[TopicPartition]]) -> None:
        """Read the ISRs that leaders have changed, and queue the metadata for all brokers.

        A leader that has no replica led a deleted topic of the same name (finding 35): the present
        replicas have an election, with the ISR from before its write.
        """
        context = self._context
        named = dict.fromkeys(tp for notice in notices for tp in notice)
        found = await self._znodes.leaderships([tp for tp in named if tp in context.leadership])
        foreign = [
            tp
            for tp, state in found.items()
            if state.leader not in (NO_LEADER, *context.replicas(tp))
        ]
        for tp in foreign:
            LOG.warning("%s: broker %d leads it without a replica", tp, found[tp].leader)
            known = context.leadership[tp]
            epoch = max(known.leader_epoch, found[tp].leader_epoch)
            found[tp] = replace(found[tp], leader=NO_LEADER, leader_epoch=epoch, isr=known.isr)
        context.leadership.update(found)
        self._outbox.queue_metadata(context.brokers, found)
        await self.reconsider(foreign)

    async def _is_unclean(self, topic: str) -> bool:
        try:
            return self._config.unclean(await self._znodes.settings(topic))
        except ConfigError as error:
            LOG.warning("the settings of topic %s are invalid and not applied: %s", topic, error)
            return self._config.unclean({})

    async def settle(self, partitions: Iterable[TopicPartition], choose: Choose) -> None:
        """Choose and write new states; after a version conflict, read a state and choose again."""
        context = self._context
        pending = [tp for tp in partitions if tp in context.leadership]
        while pending:
            wanted = {}
            for tp in pending:
                state = context.leadership[tp]
                choice = choose(tp, state)
                if choice is not None:
                    wanted[tp] = state.followed_by(choice, context.controller_epoch)
            if wanted:
                await failpoints.point(failpoints.CONTROLLER_WRITE)
            written = await _all(self._znodes.change(tp, state) for tp, state in wanted.items())
            pending = []
            for tp, found in zip(wanted, written, strict=True):
                if found is not None:
                    self._now(tp, found)
                    continue
                fresh = await self._znodes.leadership(tp)
                if fresh is None:
                    del context.leadership[tp]  # the topic was removed by hand
                else:
                    known = context.leadership[tp]
                    if fresh.leader_epoch > known.leader_epoch:
                        # A write of this controller, whose answer was lost, has taken effect.
                        self._now(tp, fresh)
                    context.leadership[tp] = contexts.to_choose_from(known, fresh)
                    pending.append(tp)

    def _now(self, tp: TopicPartition, state: Leadership, *, is_new: bool = False) -> None:
        """Record a partition's state; queue its live replicas' roles and all brokers' metadata."""
        LOG.info("%s: leader %d, epoch %d, ISR %s", tp, state.leader, state.leader_epoch, state.isr)
        before = self._context.leadership.get(tp)
        is_elected = is_new if before is None else before.leader != state.leader
        if is_elected and state.leader != NO_LEADER:
            self._counts.elected(state.leader, None if before is None else before.isr)
        self._context.leadership[tp] = state
        self._outbox.queue_leader_and_isr(self._context.live_replicas(tp), tp, is_new=is_new)
        self._outbox.queue_metadata(self._context.brokers, [tp])


def _named(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    """Return the partitions that a request names, without duplicates; None: all."""
    if request.topic_partitions is None:
        return None
    named = (
        TopicPartition(topic.topic, number)
        for topic in request.topic_partitions
        for number in topic.partitions
    )
    return list(dict.fromkeys(named))


async def _all(asked: Iterable[Awaitable[Leadership | None]]) -> list[Leadership | None]:
    """Return all results in order; if any failed, raise the first error after all have ended."""
    answers: list[Leadership | None] = []
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        answers.append(outcome)
    return answers
