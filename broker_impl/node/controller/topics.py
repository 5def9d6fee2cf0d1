"""The topics of the cluster: read from ZooKeeper, created and extended on request, and deleted."""

import logging
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from broker_impl.controller import creation, extension, reassignment
from broker_impl.controller.context import Context
from broker_impl.controller.deletion import TopicDeletion
from broker_impl.controller.requests import Outbox
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node.controller import refusal
from broker_impl.node.controller.config import ControllerConfig
from broker_impl.node.controller.events import (
    DeletionsAsked,
    Event,
    PartitionsChanged,
    ReplicasStopped,
    TopicsChanged,
)
from broker_impl.node.controller.znodes import ControllerZnodes, Watch
from broker_impl.wire import topic_ids
from broker_impl.wire.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker_impl.wire.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import (
    CreatableTopicResult,
    CreateTopicsResponse,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from broker_impl.wire.messages.delete_topics_response import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from broker_impl.wire.types import NO_UUID, TopicPartition

LOG = logging.getLogger(__name__)


class Topics:
    """The topics during one term."""

    def __init__(
        self,
        context: Context,
        znodes: ControllerZnodes,
        outbox: Outbox,
        config: ControllerConfig,
        *,
        rng: random.Random,
        watch: Callable[[Event], Watch],
        retry_deletions: Callable[[], None],
    ) -> None:
        self._context = context
        self._znodes = znodes
        self._outbox = outbox
        self._config = config
        self._rng = rng
        self._watch = watch
        self._retry_deletions = retry_deletions

    async def read(self) -> None:
        """Read topics that are new to the context; drop those that were removed by hand."""
        context = self._context
        names = await self._znodes.topics(self._watch(TopicsChanged()))
        present = frozenset(names)
        for name in [topic for topic in context.topics if topic not in present]:
            LOG.warning("topic %s was removed from ZooKeeper", name)
            gone = context.partitions_of(name)
            context.forget_topic(name)
            self._outbox.queue_metadata(context.brokers, gone)
        for name in names:
            if name not in context.topics:
                await self._read_one(name)

    async def read_partitions(self, name: str) -> None:
        """Read added partitions of a topic; partitions are never removed."""
        context = self._context
        if name not in context.topics:
            return
        assignment = await self._znodes.assignment(name, self._watch(PartitionsChanged(name)))
        if assignment is not None and name not in context.deleting:
            context.topics[name] = {**assignment.replicas, **context.topics[name]}

    async def _read_one(self, name: str) -> None:
        assignment = await self._znodes.assignment(name, self._watch(PartitionsChanged(name)))
        if assignment is not None and assignment.topic_id is None:
            # The topic was created by an earlier version of Kafka, or by hand.
            fresh = topic_ids.draw(self._rng)
            assignment = await self._znodes.write_assignment(
                name, lambda found: reassignment.identified(found, fresh)
            )
        if assignment is not None:
            assert assignment.topic_id is not None, "a topic without an id was given one"
            self._context.topics[name] = assignment.replicas
            self._context.topic_ids[name] = assignment.topic_id
            for number, move in assignment.moves.items():
                self._context.moves[TopicPartition(name, number)] = move
            found = await self._znodes.leaderships(self._context.partitions_of(name))
            self._context.leadership.update(found)

    # Creation.

    async def create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Write the valid topics; the caller elects their leaders."""
        await self.read()
        named = Counter(topic.name for topic in request.topics)
        rows: dict[str, CreatableTopicResult] = {}
        for topic in request.topics:
            rows[topic.name] = await self._create_one(
                topic,
                is_repeated=named[topic.name] > 1,
                validate_only=request.validate_only,
            )
        return CreateTopicsResponse(topics=list(rows.values()))

    async def _create_one(
        self, asked: CreatableTopic, *, is_repeated: bool, validate_only: bool
    ) -> CreatableTopicResult:
        context = self._context
        try:
            if is_repeated:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, f"the request names topic {asked.name} twice"
                )
            topic = creation.plan(
                asked,
                existing=context.topics,
                deleting=context.deleting,
                brokers={number: broker.rack for number, broker in context.brokers.items()},
                partitions_default=self._config.partitions_default,
                replication_factor_default=self._config.replication_factor_default,
                check_settings=self._config.topic_rows,
                rng=self._rng,
            )
            if not validate_only:
                if not await self._znodes.create_topic(asked.name, topic):
                    raise ApiError(
                        ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {asked.name} is there already"
                    )
                await self._read_one(asked.name)
        except ApiError as error:
            return CreatableTopicResult(
                name=asked.name, error_code=error.code, error_message=error.message
            )
        return CreatableTopicResult(
            name=asked.name,
            error_message=None,
            num_partitions=len(topic.assignment),
            replication_factor=topic.replication_factor,
            topic_id=NO_UUID if validate_only else topic.topic_id,
            configs=self._config.topic_rows(topic.settings),
        )

    # More partitions.

    async def extend(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Write the new partitions; the caller elects their leaders."""
        await self.read()
        named = Counter(topic.name for topic in request.topics)
        rows: dict[str, CreatePartitionsTopicResult] = {}
        for topic in request.topics:
            error = await self._extend_one(
                topic,
                is_repeated=named[topic.name] > 1,
                validate_only=request.validate_only,
            )
            rows[topic.name] = CreatePartitionsTopicResult(
                topic.name, error.code, error.message or None
            )
        return CreatePartitionsResponse(results=list(rows.values()))

    async def _extend_one(
        self, asked: CreatePartitionsTopic, *, is_repeated: bool, validate_only: bool
    ) -> ApiError:
        context, name = self._context, asked.name
        try:
            if is_repeated:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"the request names topic {name} twice")
            if name not in context.topics:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
            if name in context.deleting:
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is being deleted")
            if any(tp.topic == name for tp in context.moves):
                raise ApiError(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS, f"partitions of {name} are being reassigned"
                )
            known = reassignment.Assignment(context.topics[name])
            added = extension.plan(
                known.replicas,
                asked.count,
                None
                if asked.assignments is None
                else [row.broker_ids for row in asked.assignments],
                {number: broker.rack for number, broker in context.brokers.items()},
                self._rng,
            )
            if validate_only:
                return ApiError(ErrorCode.NONE, "")

            def extend(found: reassignment.Assignment) -> reassignment.Assignment:
                base = reassignment.to_extend(known, found)
                return replace(base, replicas={**added, **base.replicas})

            after = await self._znodes.write_assignment(name, extend)
            if after is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted")
            context.topics[name] = dict(sorted(after.replicas.items()))
        except ApiError as error:
            return error
        return ApiError(ErrorCode.NONE, "")

    # Deletion.

    async def delete(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Record the deletion requests, and start the deletions."""
        await self.read()
        named = refusal.named_topics(request)
        if any(row.name is not None and row.topic_id != NO_UUID for row in named):
            return refusal.not_deleted(request, ErrorCode.INVALID_REQUEST)
        rows = [await self._delete_one(row) for row in named]
        await self.read_deletions()
        return DeleteTopicsResponse(responses=rows)

    async def _delete_one(self, asked: DeleteTopicState) -> DeletableTopicResult:
        """Record the request to delete one topic, which is named by its name or by its id."""
        name, topic_id = asked.name, asked.topic_id
        if topic_id != NO_UUID:
            name = self._context.topic_of(topic_id)
        if not self._config.delete_topics:
            error, why = ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false"
        elif topic_id != NO_UUID and name is None:
            error, why = ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id"
        elif name is None or name not in self._context.topics:
            error, why = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}"
        else:
            await self._znodes.ask_deletion(name)
            return DeletableTopicResult(name=name, topic_id=topic_id)
        return DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=error, error_message=why
        )

    async def read_deletions(self) -> None:
        """Start newly requested deletions.

        Topics are marked, metadata that removes them is queued for all brokers, and their replicas
        are deleted.
        """
        context = self._context
        names = await self._znodes.deletions(self._watch(DeletionsAsked()))
        if any(name not in context.topics for name in names):
            await self.read()
        for name in names:
            if name not in context.topics or not self._config.delete_topics:
                LOG.warning("topic %s is not deleted: it is unknown, or deletion is disabled", name)
                await self._znodes.forget_deletion(name)
            elif name not in context.deleting:
                LOG.info("topic %s is being deleted", name)
                assigned = [
                    (number, broker)
                    for number, replicas in context.topics[name].items()
                    for broker in replicas
                ]
                removed = [
                    (tp.partition, broker)
                    for broker, partitions in context.removed.items()
                    for tp in partitions
                    if tp.topic == name
                ]
                context.deleting[name] = TopicDeletion([*assigned, *removed])
                self._outbox.queue_metadata(context.brokers, context.partitions_of(name))
        await self.go_on_deleting()

    async def go_on_deleting(self, *, repeat: bool = True) -> None:
        """Queue orders for replicas that must be deleted; remove topics whose replicas all are.

        repeat: whether orders that were refused are sent again.
        """
        context = self._context
        for name, deletion in list(context.deleting.items()):
            for number, broker in deletion.start(context.brokers, repeat=repeat):
                self._outbox.queue_stop(broker, TopicPartition(name, number), delete=True)
            if deletion.is_complete:
                await self._znodes.remove_topic(name)
                context.forget_topic(name)
                LOG.info("topic %s has been deleted", name)

    async def replicas_stopped(self, event: ReplicasStopped) -> None:
        """Handle a broker's response to orders to delete replicas."""
        context = self._context
        if not context.is_registration(event.broker, event.request.broker_epoch):
            return  # a response from a former incarnation
        errors = {
            TopicPartition(row.topic_name, row.partition_index): row.error_code
            for row in event.response.partition_errors
        }
        removed = context.removed.get(event.broker, {})
        for topic in event.request.topic_states:
            deletion = context.deleting.get(topic.topic_name)
            for row in topic.partition_states:
                if not row.delete_partition:
                    continue
                tp = TopicPartition(topic.topic_name, row.partition_index)
                refused = event.response.error_code or errors.get(tp, ErrorCode.NONE)
                if tp in removed and refused != ErrorCode.REQUEST_TIMED_OUT:
                    # The topic does not have this replica any more: its log may stay.
                    del removed[tp]
                    refused = ErrorCode.NONE
                if deletion is None:
                    continue
                deletion.answered((tp.partition, event.broker), deleted=not refused)
                if refused:
                    LOG.warning(
                        "broker %d could not delete %s: error %d", event.broker, tp, refused
                    )
                    self._retry_deletions()
        # A replica in a failed log directory cannot be deleted: a repetition at once would make the
        # controller and the broker exchange orders and refusals without a pause.
        await self.go_on_deleting(repeat=False)
