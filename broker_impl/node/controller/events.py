"""What can happen to a controller. Equal events that wait together are handled once."""

import asyncio
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
from broker_impl.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.types import BrokerId


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker has come or gone."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """There is a new topic, or one less."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """A topic's assignment was written."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionsAsked:
    """Somebody wants a topic deleted."""


@dataclass(frozen=True, slots=True)
class DeletionsDue:
    """It is time to try again what a broker refused to delete."""


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """A topic may have a leader now that it might not have before."""


@dataclass(frozen=True, slots=True)
class IsrsChanged:
    """A leader has changed an ISR."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The claim to be the controller may be another's."""


@dataclass(frozen=True, slots=True)
class RebalanceDue:
    """It is time to look after preferred leaders."""


@dataclass(frozen=True, slots=True)
class StaleControllerEpoch:
    """A broker knows a later controller than this one."""

    broker: BrokerId


@dataclass(frozen=True, slots=True, eq=False)
class ReplicasStopped:
    """A broker has answered an order to stop, and perhaps to delete, replicas."""

    broker: BrokerId
    request: StopReplicaRequest
    response: StopReplicaResponse


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
    """A request of a client or a broker; the answer goes into the future."""

    request: Request
    answer: asyncio.Future[Any]


Event = (
    BrokersChanged
    | TopicsChanged
    | PartitionsChanged
    | DeletionsAsked
    | DeletionsDue
    | SettingsChanged
    | IsrsChanged
    | ControllerChanged
    | RebalanceDue
    | StaleControllerEpoch
    | ReplicasStopped
)
