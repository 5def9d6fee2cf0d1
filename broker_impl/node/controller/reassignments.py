"""Partition reassignments during one term: started, cancelled, completed."""

import logging

from broker_impl.controller import election, reassignment
from broker_impl.controller.context import Context, Leadership
from broker_impl.controller.election import Choice
from broker_impl.controller.reassignment import Move, Replicas
from broker_impl.controller.requests import Outbox
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node.controller.leaders import Leaders
from broker_impl.node.controller.znodes import ControllerZnodes
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from broker_impl.wire.types import TopicPartition

LOG = logging.getLogger(__name__)


class Reassignments:
    """The partition reassignments of one term."""

    def __init__(
        self, context: Context, znodes: ControllerZnodes, outbox: Outbox, leaders: Leaders
    ) -> None:
        self._context = context
        self._znodes = znodes
        self._outbox = outbox
        self._leaders = leaders

    async def alter(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """Start or cancel the requested moves; they are written before the response."""
        response = AlterPartitionReassignmentsResponse(error_message=None)
        for topic in request.topics:
            rows = ReassignableTopicResponse(name=topic.name)
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                error = await self.begin(tp, row.replicas)
                rows.partitions.append(
                    ReassignablePartitionResponse(
                        row.partition_index, error.code, error.message or None
                    )
                )
            response.responses.append(rows)
        await self.go_on()
        return response

    def is_moving(self, tp: TopicPartition, wanted: list[int]) -> bool:
        """Whether the partition is being moved to these replicas."""
        move = self._context.moves.get(tp)
        if move is None:
            return False
        return reassignment.target(self._context.replicas(tp), move) == tuple(wanted)

    async def begin(self, tp: TopicPartition, wanted: list[int] | None) -> ApiError:
        """Start the move of one partition to these replicas; None cancels the present one.

        Returns why it is refused, with code NONE if it is not.
        """
        context = self._context
        try:
            if tp.topic in context.deleting or tp.partition not in context.topics.get(tp.topic, {}):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
            move = context.moves.get(tp)
            before = context.replicas(tp)
            if wanted is None:
                if move is None:
                    raise ApiError(
                        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                        "the partition is not being reassigned",
                    )
                after: tuple[Replicas, Move | None] = reassignment.origin(before, move), None
            else:
                after = reassignment.begin(before, move, tuple(wanted))
                new = [broker for broker in after[0] if broker not in before]
                reassignment.refuse(wanted, new, context.live_for(tp))
            await self._now(tp, *after)
        except ApiError as error:
            return error
        return ApiError(ErrorCode.NONE, "")

    def list(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """Return the moves in progress, of all partitions or of those that are named."""
        named = None
        if request.topics is not None:
            named = [
                TopicPartition(topic.name, number)
                for topic in request.topics
                for number in topic.partition_indexes
            ]
        topics: dict[str, OngoingTopicReassignment] = {}
        for tp, move in self._context.moves.items():
            if named is None or tp in named:
                topic = topics.setdefault(tp.topic, OngoingTopicReassignment(name=tp.topic))
                topic.partitions.append(
                    OngoingPartitionReassignment(
                        tp.partition,
                        list(self._context.replicas(tp)),
                        list(move.adding),
                        list(move.removing),
                    )
                )
        return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))

    async def go_on(self) -> None:
        """Complete the moves whose target replicas are all in sync."""
        context = self._context
        for tp, move in list(context.moves.items()):
            state = context.leadership.get(tp)
            if state is None or tp.topic in context.deleting:
                continue
            target = reassignment.target(context.replicas(tp), move)
            if reassignment.is_complete(target, state.isr, context.live_for(tp)):
                try:
                    await self._now(tp, target, None, is_completion=True)
                except ApiError as error:
                    LOG.info("%s: %s; the controller tries again later", tp, error)

    async def _now(
        self,
        tp: TopicPartition,
        replicas: Replicas,
        move: Move | None,
        *,
        is_completion: bool = False,
    ) -> None:
        """Change a partition's replicas, and queue the orders that follow from it.

        One of the new replicas leads, only they are in the ISR, and brokers without a replica any
        more are ordered to delete it. Raises ApiError, with nothing changed, if none of them can
        lead, or if they complete a move and are not all in sync.
        """
        context = self._context
        before, move_before = context.replicas(tp), context.moves.get(tp)
        self._know(tp, replicas, move)
        if tp in context.leadership and not await self._lead_among(
            tp, replicas, is_completion=is_completion
        ):
            self._know(tp, before, move_before)
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "the new replicas are not all in sync"
                if is_completion
                else "none of the new replicas is in sync and alive",
            )
        await self._znodes.write_assignment(
            tp.topic, lambda found: found.but(tp.partition, replicas, move)
        )
        LOG.info("%s: replicas %s, %s", tp, list(replicas), move or "at rest")
        removed = [broker for broker in before if broker not in replicas]
        context.forget_replicas(tp, removed)
        for broker in removed:
            if broker in context.brokers:
                context.removed.setdefault(broker, {})[tp] = None
                self._outbox.queue_stop(broker, tp, delete=True)
        for broker in replicas:
            context.removed.get(broker, {}).pop(tp, None)
        self._outbox.queue_metadata(context.brokers, [tp])

    def _know(self, tp: TopicPartition, replicas: Replicas, move: Move | None) -> None:
        context = self._context
        context.topics[tp.topic] = {**context.topics[tp.topic], tp.partition: replicas}
        context.moves.pop(tp, None)
        if move is not None:
            context.moves[tp] = move

    async def _lead_among(
        self, tp: TopicPartition, replicas: Replicas, *, is_completion: bool
    ) -> bool:
        """Write a new epoch with a leader and ISR among these replicas; False if that cannot be.

        The leader may have written a smaller ISR in the meantime: a move whose target replicas are
        not all in it is not complete.
        """
        candidates, live = self._context.candidates_for(tp), self._context.live_for(tp)
        chosen: list[Choice] = []

        def choose(tp: TopicPartition, state: Leadership) -> Choice | None:
            choice = None
            if not is_completion or reassignment.is_complete(replicas, state.isr, live):
                choice = election.among(replicas, state.leader, state.isr, candidates)
            chosen[:] = [] if choice is None else [choice]
            return choice

        await self._leaders.settle([tp], choose)
        return bool(chosen)
