"""Reads a cluster's metadata by Kafka's own protocol, from any release and in both modes.

The harness asks every broker, past all faults, and combines their answers by the rules of
:mod:`harness.cluster.observe.metadata_answers`. It is the only source for a cluster without a
ZooKeeper that the harness can read. With ZooKeeper and before Kafka 2.7, the brokers' metadata
has an ISR that its leader has changed only seconds later (``isr_change_notification``; 6 s were
measured with 0.10.2.2, less than 0.1 s with 3.9.1), so that
:class:`~harness.cluster.observe.zookeeper_metadata.View` is more current where it can be used.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.metadata_response import MetadataResponse
from harness.cluster.address import Address
from harness.cluster.observe import metadata_answers
from harness.cluster.observe.metadata_answers import Moves
from harness.cluster.observe.metadata_view import MetadataView, Registration, ViewUnavailable
from harness.cluster.observe.negotiation import Negotiator
from model import roles
from model.capabilities.control_plane import Partition
from model.roles import Coordinated, NodeId

READ_TIMEOUT_S = 2.0
GRACE_S = 0.3
"""How long a slow broker may still answer after most brokers have answered."""
_REASSIGNMENTS_TIMEOUT_S = 0.5

_METADATA, _FIND_COORDINATOR = 3, 10
_LIST_REASSIGNMENTS, _DESCRIBE_QUORUM = 46, 55
_NO_AUTO_CREATION_FROM = 4
"""Metadata before this version creates the topics that it names, so those ask for all topics."""
_BATCHED_COORDINATORS_FROM = 4
_INTERNAL: Mapping[Coordinated, tuple[int, str]] = {
    "group": (0, "__consumer_offsets"),
    "transaction": (1, "__transaction_state"),
}
"""The key type in FindCoordinator (KIP-98), and the topic whose leaders are the coordinators."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """One broker's metadata; ``broker`` is its id, if it is known."""

    address: Address
    broker: int | None
    metadata: MetadataResponse
    has_quorum: bool


class KafkaView:
    """Implements :class:`MetadataView` by Kafka's protocol; it keeps no connection open."""

    def __init__(
        self,
        brokers: Mapping[NodeId, Address] | Sequence[Address],
        *,
        controllers: Mapping[NodeId, Address] | None = None,
        node_of: Callable[[int], NodeId] = roles.broker,
        quorum_node_of: Callable[[int], NodeId] | None = None,
        registrations: MetadataView | None = None,
        negotiator: Negotiator | None = None,
    ) -> None:
        """``brokers``: addresses past all faults by node, or bootstrap addresses.

        With bootstrap addresses, the brokers that Metadata lists are asked at the addresses that
        they advertise. ``controllers``: addresses of KRaft's controllers, which are asked for the
        quorum's leader, too. ``node_of`` maps a ``broker.id`` to a node, ``quorum_node_of`` the
        ``node.id`` of a controller (by default as ``node_of``). ``registrations``: a view that
        knows broker epochs, which Kafka's protocol does not report.
        """
        self._fixed = isinstance(brokers, Mapping)
        self._seeds = tuple(brokers.values() if isinstance(brokers, Mapping) else brokers)
        self._listed: dict[int, Address] = {}
        self._nodes = (
            {at: name for name, at in brokers.items()} if isinstance(brokers, Mapping) else {}
        )
        self._controllers = tuple((controllers or {}).values())
        self._node_of = node_of
        self._quorum_node_of = quorum_node_of or node_of
        self._registrations = registrations
        self._negotiator = negotiator or Negotiator(READ_TIMEOUT_S)

    async def close(self) -> None:
        """Close the view of registrations, if there is one."""
        if self._registrations is not None:
            await self._registrations.close()

    async def controller(self) -> NodeId | None:
        """The elected controller, or the leader of KRaft's quorum; ``None`` if none is known.

        In KRaft, the controller that Metadata names is a random broker (KIP-631) and not used.
        """
        answers = await self._metadata([])
        if any(answer.has_quorum for answer in answers):
            leader = metadata_answers.quorum_leader(await self._quorum())
            return None if leader is None else self._quorum_node_of(leader)
        number = self._elected(answers)
        return None if number is None else self._node_of(number)

    async def voters(self) -> tuple[int, ...]:
        """The ids of the voters of KRaft's quorum; none with ZooKeeper."""
        answers = await self._metadata([])
        if not any(answer.has_quorum for answer in answers):
            return ()
        return metadata_answers.voters(await self._quorum())

    async def live(self) -> tuple[NodeId, ...]:
        """The brokers that the metadata of every answering broker lists.

        These are the brokers with a ZooKeeper session, and in KRaft those that are not fenced.
        """
        answers = await self._metadata([])
        numbers = metadata_answers.live(answer.metadata for answer in answers)
        return tuple(map(self._node_of, numbers))

    async def registration(self, broker: NodeId) -> Registration | None:
        """A broker's registration according to the other view; ``None`` without such a view."""
        if self._registrations is None:
            return None
        return await self._registrations.registration(broker)

    async def partition(self, key: str) -> Partition | None:
        """One partition by its ``topic-partition``; ``None`` if no broker lists it."""
        topic = key.rpartition("-")[0]
        answers = await self._metadata([topic])
        found = await self._partitions(answers)
        return next((each for each in found if each.key == key), None)

    async def leader(self, key: str) -> NodeId | None:
        """The leader of a partition; ``None`` if it has none."""
        partition = await self.partition(key)
        return None if partition is None else partition.leader

    async def partitions(self) -> tuple[Partition, ...]:
        """Every partition of every topic, also of the internal ones."""
        return await self._partitions(await self._metadata(None))

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        """The coordinator of a group or a transactional id by FindCoordinator.

        ``None`` if the internal topic does not exist, because the request would create it, or if
        the brokers do not agree on one coordinator.
        """
        key_type, topic = _INTERNAL[of]
        answers = await self._metadata([topic])
        if not any(
            row.name == topic and row.partitions for a in answers for row in a.metadata.topics
        ):
            return None

        def make(version: int) -> FindCoordinatorRequest:
            if version >= _BATCHED_COORDINATORS_FROM:
                return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
            return FindCoordinatorRequest(key=name, key_type=key_type)

        replies = await asyncio.gather(
            *(self._negotiator.ask(answer.address, _FIND_COORDINATOR, make) for answer in answers)
        )
        rows = [(reply.coordinators or [reply])[0] for reply in replies if reply is not None]
        named = {at: row.node_id for at, row in enumerate(rows) if not row.error_code}
        number = metadata_answers.elected({-1 - at: broker for at, broker in named.items()})
        return None if number is None else self._node_of(number)

    # --- implementation

    async def _metadata(self, topics: list[str] | None) -> list[_Answer]:
        """What each broker answers about these topics; ``None`` for all topics.

        Raises :class:`ViewUnavailable` if no broker answers.
        """
        targets = self._targets()
        answers = await _most([partial(self._ask_metadata, at, topics) for at in targets])
        if not answers and not self._fixed:
            self._listed.clear()  # its brokers may have moved: begin again
        if not answers:
            raise ViewUnavailable(f"no broker answers at {', '.join(map(str, targets))}")
        if not self._fixed:
            for answer in answers:
                self._listed |= {
                    row.node_id: Address(row.host, row.port) for row in answer.metadata.brokers
                }
        return answers

    def _targets(self) -> tuple[Address, ...]:
        return tuple(self._listed.values()) or self._seeds

    async def _ask_metadata(self, broker: Address, topics: list[str] | None) -> _Answer | None:
        def make(version: int) -> MetadataRequest:
            by_name = topics is not None and (version >= _NO_AUTO_CREATION_FROM or not topics)
            return MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics or ()]
                if by_name
                else None,
                allow_auto_topic_creation=version < _NO_AUTO_CREATION_FROM,
            )

        answer = await self._negotiator.ask(broker, _METADATA, make)
        supported = await self._negotiator.supported(broker) if answer is not None else None
        if answer is None or supported is None:
            return None
        number = {at: number for number, at in self._listed.items()}.get(broker)
        return _Answer(
            broker, self._number_at(broker, number), answer, _DESCRIBE_QUORUM in supported.apis
        )

    def _number_at(self, broker: Address, listed: int | None) -> int | None:
        name = self._nodes.get(broker)
        return listed if name is None else roles.number(name)

    def _elected(self, answers: Sequence[_Answer]) -> int | None:
        named = {
            -2 - at if answer.broker is None else answer.broker: answer.metadata.controller_id
            for at, answer in enumerate(answers)
        }
        return metadata_answers.elected(named)

    async def _quorum(self) -> list[Any]:
        topic = TopicData("__cluster_metadata", [PartitionData(0)])

        def make(_: int) -> DescribeQuorumRequest:
            return DescribeQuorumRequest([topic])

        targets = (*self._controllers, *self._targets())
        ask = self._negotiator.ask
        answers = await _most([partial(ask, at, _DESCRIBE_QUORUM, make) for at in targets])
        if not answers:
            raise ViewUnavailable("no broker answers about the quorum")
        return answers

    async def _partitions(self, answers: Sequence[_Answer]) -> tuple[Partition, ...]:
        moves = await self._moves(answers)
        return metadata_answers.partitions(
            [answer.metadata for answer in answers], self._node_of, moves
        )

    async def _moves(self, answers: Sequence[_Answer]) -> Moves:
        """The reassignments in progress; none if the controller does not answer (KIP-455).

        Then the partition is still not whole while it moves, except in the short time between the
        last new replica's entry into the ISR and the removal of the old ones.
        """
        at = self._operator_target(answers)
        if at is None:
            return {}
        request = ListPartitionReassignmentsRequest(
            timeout_ms=int(_REASSIGNMENTS_TIMEOUT_S * 1000), topics=None
        )
        answer = await self._negotiator.ask(
            at, _LIST_REASSIGNMENTS, lambda _: request, timeout_s=_REASSIGNMENTS_TIMEOUT_S
        )
        if answer is None or answer.error_code != ErrorCode.NONE:
            return {}
        return {
            f"{topic.name}-{row.partition_index}": (row.adding_replicas, row.removing_replicas)
            for topic in answer.topics
            for row in topic.partitions
        }

    def _operator_target(self, answers: Sequence[_Answer]) -> Address | None:
        """Where an operator's request is sent: to the controller, or in KRaft to any broker."""
        if any(answer.has_quorum for answer in answers):
            return answers[0].address
        number = self._elected(answers)
        addresses = {answer.broker: answer.address for answer in answers}
        return None if number is None else addresses.get(number)


async def _most(calls: Sequence[Callable[[], Awaitable[Any | None]]]) -> list[Any]:
    """The results that are not ``None``, in the order of the calls.

    When more than half of the calls have ended and one has a result, the others have only
    ``GRACE_S`` left: a frozen broker must not delay every reading.
    """
    ended: dict[int, Any] = {}
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(READ_TIMEOUT_S)

    async def run(at: int) -> None:
        ended[at] = await calls[at]()
        if 2 * len(ended) > len(calls) and any(each is not None for each in ended.values()):
            limit.reschedule(min(limit.when() or 0, loop.time() + GRACE_S))

    with contextlib.suppress(TimeoutError):
        async with limit:
            await asyncio.gather(*(run(at) for at in range(len(calls))))
    return [ended[at] for at in sorted(ended) if ended[at] is not None]
