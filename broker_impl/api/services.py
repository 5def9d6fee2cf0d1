"""What the handlers of requests may ask of the broker around them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from broker_impl.api.cluster_view import ClusterView
from broker_impl.api.waiting import Waiting
from broker_impl.config import BrokerConfig
from broker_impl.coordinator.transactions.events import InitAnswer
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.errors import ErrorCode
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import ControlledShutdownResponse
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.create_topics_response import CreateTopicsResponse
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.delete_topics_response import DeleteTopicsResponse
from broker_impl.wire.types import Epoch, TopicPartition


class Controller(Protocol):
    """The controller, if this broker is it; else every call answers NOT_CONTROLLER."""

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse: ...
    async def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse: ...
    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse: ...


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
        """Is the transaction open, and are these part of it? As this broker's coordinator says."""
        ...

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """The same, as the coordinator says, wherever it is."""
        ...

    def describe(self, transactional_id: str) -> Metadata | ErrorCode: ...
    def all(self) -> Iterator[tuple[str, Metadata]]: ...
    @property
    def is_loading(self) -> bool: ...


class Services(Protocol):
    """A broker, as its request handlers see it."""

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
    def controller(self) -> Controller: ...
    @property
    def transactions(self) -> Transactions: ...

    async def topic_settings(self, topic: str) -> dict[str, str]:
        """The overrides of one topic, as ZooKeeper has them; ApiError when it cannot be asked."""
        ...

    async def settle_topics(self, topics: Sequence[str]) -> None:
        """Read the overrides of topics that this broker is about to host."""
        ...

    def forget_topics(self, topics: Iterable[str]) -> None:
        """These were deleted, in part or as a whole: a topic of the same name is another one."""
        ...

    def create_in_background(self, topics: Iterable[str]) -> None:
        """Have the controller create these topics with the broker's defaults."""
        ...

    async def next_producer_id(self) -> int:
        """A producer id that no broker hands out again; ApiError when none is to be had."""
        ...

    def view_changed(self) -> None:
        """The view of the cluster was replaced: peers and fetchers may have to follow."""
        ...
