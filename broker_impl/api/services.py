"""The interfaces of the broker that request handlers use."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol
from uuid import UUID

from broker_impl.api.cluster_view import ClusterView
from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.purgatory import Waiting
from broker_impl.api.quotas.entities import Entity
from broker_impl.api.quotas.limits import ClientQuotas
from broker_impl.api.quotas.replication import ReplicationQuota
from broker_impl.config import BrokerConfig
from broker_impl.controller.context import Context
from broker_impl.controller.figures import Figures
from broker_impl.coordinator.groups.events import Request
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupSnapshot
from broker_impl.coordinator.transactions.events import InitAnswer
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.replica.replicas import Replicas
from broker_impl.security.acls import Authorizer, Binding, Filter
from broker_impl.security.scram import Credential
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import ControlledShutdownResponse
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_partitions_response import CreatePartitionsResponse
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import DeleteTopicsResponse
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.elect_leaders_response import ElectLeadersResponse
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from broker_impl.wire.types import Epoch, Offset, TopicPartition


class Controller(Protocol):
    """The controller of the cluster; on other brokers every call returns NOT_CONTROLLER."""

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse: ...
    async def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse: ...
    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse: ...
    async def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> CreatePartitionsResponse: ...
    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse: ...
    async def alter_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse: ...
    async def list_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse: ...
    @property
    def cluster(self) -> Context | None:
        """The controller's view of the cluster; None if this broker is not the controller."""
        ...

    def figures(self) -> Figures | None:
        """The numbers of the cluster's partitions; None if this broker is not the controller."""
        ...


class Groups(Protocol):
    """The groups that this broker coordinates."""

    def ask(
        self, group: str, event: Callable[[int], Request], answer_as: Callable[[Any], Any]
    ) -> Any:
        """Return the response to a request about a group, or a future of it.

        ``event`` creates the request from its ticket; ``answer_as`` converts the answer to a
        response.
        """
        ...

    def find(self, group: str) -> Group | ErrorCode | None:
        """Return the group; an error if it cannot be looked up here; None if it does not exist."""
        ...

    def partition_of(self, group: str) -> TopicPartition:
        """The partition whose leader coordinates this group."""
        ...

    def snapshots(self) -> list[GroupSnapshot]: ...
    @property
    def is_loading(self) -> bool: ...
    def fresh_id(self, prefix: str) -> str: ...
    def now_ms(self) -> int: ...
    def marked(self, partition: int, producer_id: int, at: Offset, *, is_commit: bool) -> None:
        """Apply a committed marker at offset ``at`` of this ``__consumer_offsets`` partition."""
        ...

    def topics_gone(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the offsets that were committed for deleted partitions."""
        ...


class Transactions(Protocol):
    """The transactions that this broker coordinates."""

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, producer_id: int, producer_epoch: Epoch
    ) -> InitAnswer: ...
    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> ErrorCode: ...
    async def end(
        self, transactional_id: str, producer_id: int, producer_epoch: Epoch, *, is_commit: bool
    ) -> ErrorCode: ...
    def verify_here(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask this broker's coordinator whether the open transaction has these partitions."""
        ...

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator, on any broker, whether the open transaction has these partitions."""
        ...

    def partition_of(self, transactional_id: str) -> TopicPartition:
        """The partition whose leader coordinates this transactional id."""
        ...

    def describe(self, transactional_id: str) -> Metadata | ErrorCode: ...
    def all(self) -> Iterator[tuple[str, Metadata]]: ...
    @property
    def is_loading(self) -> bool: ...


class Quotas(Protocol):
    """The quotas of clients."""

    @property
    def limits(self) -> ClientQuotas:
        """The quotas that this broker enforces."""
        ...

    @property
    def leading(self) -> ReplicationQuota:
        """The quota of followers that fetch from this broker."""
        ...

    async def describe(self) -> dict[Entity, dict[str, float]]:
        """Read the quotas of all clients from ZooKeeper; ApiError if it cannot be reached."""
        ...

    async def alter(
        self, entity: Entity, change: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        """Write the settings that ``change`` returns, and apply the entity's quotas here."""
        ...


class Security(Protocol):
    """What protects this broker."""

    @property
    def authorizer(self) -> Authorizer | None: ...

    async def add_acls(self, bindings: Iterable[Binding]) -> None:
        """Add entries, which apply on this broker at once; ApiError if ZooKeeper fails."""
        ...

    async def remove_acls(self, wanted: Filter) -> list[Binding]:
        """Remove the entries that a filter means, and return them; ApiError if ZooKeeper fails."""
        ...

    async def scram_users(self) -> dict[str, dict[str, Credential]]:
        """Read the SCRAM credentials of all users; ApiError if ZooKeeper cannot be reached."""
        ...

    async def alter_user(
        self, user: str, change: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        """Change a user's settings, which apply on this broker at once; ApiError if it fails."""
        ...


class Services(Protocol):
    """The broker, as its request handlers see it."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def view(self) -> ClusterView: ...
    @property
    def waiting(self) -> Waiting: ...
    @property
    def sessions(self) -> FetchSessions: ...
    @property
    def controller(self) -> Controller: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def transactions(self) -> Transactions: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def security(self) -> Security: ...
    @property
    def counts(self) -> Counts: ...

    async def topic_settings(self, topic: str) -> dict[str, str]:
        """The overrides of a topic, read from ZooKeeper; ApiError if it cannot be reached."""
        ...

    async def settings_of(self, entity: str) -> dict[str, str]:
        """Read settings of ``topics/T``, ``brokers/N`` or ``brokers/<default>`` from ZooKeeper.

        Raises ApiError if it cannot be reached.
        """
        ...

    async def alter_settings(
        self, entity: str, alter: Callable[[Mapping[str, str]], dict[str, str]]
    ) -> None:
        """Write the settings that ``alter`` returns, and apply them on this broker."""
        ...

    async def settle_topics(self, topics: Mapping[str, UUID]) -> None:
        """Read the overrides of topics that this broker is about to host.

        topics: the id of each topic by its name; NO_UUID if it is not known.
        """
        ...

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Drop the settings of topics that this broker no longer hosts after a deletion."""
        ...

    def create_in_background(self, topics: Iterable[str]) -> None:
        """Have the controller create these topics with the broker's defaults."""
        ...

    async def next_producer_id(self) -> int:
        """Return a unique producer id; raises ApiError if none can be allocated."""
        ...

    def view_changed(self) -> None:
        """Apply a changed view of the cluster to peers and fetchers."""
        ...
