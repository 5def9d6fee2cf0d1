"""The events that a controller handles; equal events in the queue are handled once."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.create_partitions_request import CreatePartitionsRequest
from broker_impl.wire.messages.create_topics_request import CreateTopicsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import LeaderAndIsrResponse
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.types import BrokerId


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker registered or lost its registration."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """A topic was created or removed."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """A topic's assignment was written."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionsAsked:
    """The deletion of a topic was requested."""


@dataclass(frozen=True, slots=True)
class DeletionsDue:
    """Time to repeat deletions that a broker refused."""


@dataclass(frozen=True, slots=True)
class AdminRequestsChanged:
    """A tool has written a request below ``/admin``, or one was removed."""


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """Settings changed, so that a leaderless partition may now be allowed an election."""


@dataclass(frozen=True, slots=True)
class IsrsChanged:
    """A leader has changed an ISR."""


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """A broker has announced that one of its log directories failed (KIP-112)."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The controller's claim in ZooKeeper may have changed."""


@dataclass(frozen=True, slots=True)
class RebalanceDue:
    """Time to restore preferred leaders."""


@dataclass(frozen=True, slots=True)
class StaleControllerEpoch:
    """A broker knows a later controller than this one."""

    broker: BrokerId


@dataclass(frozen=True, slots=True, eq=False)
class ReplicasStopped:
    """A broker has answered an order to stop, and possibly to delete, replicas."""

    broker: BrokerId
    request: StopReplicaRequest
    response: StopReplicaResponse


@dataclass(frozen=True, slots=True, eq=False)
class RolesAnswered:
    """A broker has answered a LeaderAndIsr, in a way that may say which replicas are offline."""

    broker: BrokerId
    request: LeaderAndIsrRequest
    response: LeaderAndIsrResponse


Request = (
    CreateTopicsRequest
    | DeleteTopicsRequest
    | ControlledShutdownRequest
    | CreatePartitionsRequest
    | ElectLeadersRequest
    | AlterPartitionReassignmentsRequest
    | ListPartitionReassignmentsRequest
)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request of a client or a broker; the response is set on the future."""

    request: Request
    answer: asyncio.Future[Any]


Event = (
    BrokersChanged
    | TopicsChanged
    | PartitionsChanged
    | DeletionsAsked
    | DeletionsDue
    | AdminRequestsChanged
    | SettingsChanged
    | IsrsChanged
    | LogDirsFailed
    | ControllerChanged
    | RebalanceDue
    | StaleControllerEpoch
    | ReplicasStopped
    | RolesAnswered
)


def unanswered(events: Iterable[Event | Asked]) -> list[Asked]:
    """Return the requests among the events of a term that ends; they are refused."""
    return [each for each in events if isinstance(each, Asked) and not each.answer.done()]
