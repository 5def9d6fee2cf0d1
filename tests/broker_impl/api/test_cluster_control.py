"""The responses to the controller's orders."""

import inspect
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker_impl.api import cluster_control
from broker_impl.api.purgatory import Waiting
from broker_impl.api.registry import APIS, CloseConnection
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages import leader_and_isr_response
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
)
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import TopicPartition

A, B = UUID(int=7), UUID(int=8)
REQUEST = LeaderAndIsrRequest(
    topic_states=[
        LeaderAndIsrTopicState(topic_name="a", topic_id=A),
        LeaderAndIsrTopicState(topic_name="b", topic_id=B),
    ]
)


def test_errors_are_listed_by_topic_id() -> None:
    """From v5 on, the response lists the errors of partitions by topic id, and can be encoded."""
    rows = [
        LeaderAndIsrPartitionError(topic_name="b", partition_index=3, error_code=11),
        LeaderAndIsrPartitionError(topic_name="a", partition_index=0, error_code=0),
        LeaderAndIsrPartitionError(topic_name="b", partition_index=4, error_code=0),
    ]
    response = cluster_control.by_topic_id(REQUEST, LeaderAndIsrResponse(partition_errors=rows))
    found = {
        topic.topic_id: [(row.partition_index, row.error_code) for row in topic.partition_errors]
        for topic in response.topics
    }
    assert found == {A: [(0, 0)], B: [(3, 11), (4, 0)]}
    encoded = b"".join(leader_and_isr_response.encode(response, 5))
    assert len(leader_and_isr_response.decode(memoryview(encoded), 5).topics) == 2


class Stopped:
    """What a handler of StopReplica uses: replicas that obey, and a purgatory."""

    def __init__(self) -> None:
        self.replicas: Any = SimpleNamespace(
            isr_writes=Counter(),
            late_error=lambda epoch, connection: ErrorCode.NONE,
            stop_replica=lambda request: StopReplicaResponse(),
        )
        self.waiting = Waiting()
        self.config = SimpleNamespace(controller_socket_timeout_ms=50)

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Do nothing."""

    def ask(self, *, delete: bool) -> Any:
        """Handle an order to stop the replica."""
        rows = [StopReplicaPartitionState(partition_index=0, delete_partition=delete)]
        topics = [StopReplicaTopicState(topic_name="a", partition_states=rows)]
        context: Any = SimpleNamespace(services=self, connection=1)
        return cluster_control.stop_replica(context, StopReplicaRequest(topic_states=topics))


async def test_a_deletion_waits_for_writes_of_the_isr() -> None:
    """A deletion is confirmed after the last write of the ISR, and a mere stop at once."""
    tp = TopicPartition("a", 0)
    broker = Stopped()
    assert broker.ask(delete=True) == StopReplicaResponse()
    broker.replicas.isr_writes[tp] += 1
    assert broker.ask(delete=False) == StopReplicaResponse()
    answer = broker.ask(delete=True)
    broker.waiting.notify(tp)
    assert not answer.done()
    del broker.replicas.isr_writes[tp]
    broker.waiting.notify(tp)
    assert answer.result() == StopReplicaResponse()


async def test_a_write_that_does_not_end_refuses_the_deletion() -> None:
    """The controller repeats a deletion whose confirmation would come too late."""
    broker = Stopped()
    broker.replicas.isr_writes[TopicPartition("a", 0)] += 1
    answer = await broker.ask(delete=True)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("late", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT])
async def test_an_outdated_connection_of_the_controller_is_closed(late: ErrorCode) -> None:
    """An error would be an answer, and the controller may be using that connection (finding 37)."""
    obeyed: list[str] = []

    def obeys(name: str, answer: Any) -> Any:
        def order(request: Any, **_: Any) -> Any:
            obeyed.append(name)
            return answer

        return order

    roles = LeaderAndIsrResponse(error_code=late)
    broker = Stopped()
    broker.replicas.late_error = lambda epoch, connection: late
    broker.replicas.order_error = lambda broker_epoch, controller_epoch: ErrorCode.NONE
    broker.replicas.leader_and_isr = obeys("roles", roles)
    broker.replicas.stop_replica = obeys("stop", StopReplicaResponse())
    services: Any = SimpleNamespace(
        replicas=broker.replicas,
        forget_topics=broker.forget_topics,
        config=broker.config,
        waiting=broker.waiting,
        settle_topics=_settle,
        view=SimpleNamespace(update=obeys("metadata", [])),
        view_changed=lambda: None,
        groups=SimpleNamespace(topics_gone=lambda topics: None),
    )
    context: Any = SimpleNamespace(services=services, connection=1, version=4)

    async def send(handler: Any, request: Any) -> str:
        try:
            answer = handler(context, request)
            await answer if inspect.iscoroutine(answer) else None
        except CloseConnection:
            return "closed"
        return "answered"

    outcomes = [
        await send(cluster_control.leader_and_isr, LeaderAndIsrRequest()),
        await send(cluster_control.stop_replica, StopReplicaRequest()),
        await send(cluster_control.update_metadata, UpdateMetadataRequest()),
    ]
    assert outcomes == ["closed" if late else "answered"] * 3
    assert obeyed == (["roles"] if late else ["roles", "stop", "metadata"])


async def _settle(topics: Any) -> None:
    """Do nothing."""


def test_an_error_of_the_whole_request_is_kept() -> None:
    """A request that is rejected as a whole has its error in both forms of the response."""
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    response = cluster_control.by_topic_id(REQUEST, LeaderAndIsrResponse(error_code=stale))
    assert response.error_code == stale


@pytest.mark.parametrize("version", [4, 5])
def test_both_versions_are_served(version: int) -> None:
    """LeaderAndIsr is served with topic ids, and without them."""
    assert version in APIS[4].served
