"""The rows of partitions in metadata, which responses share until the view changes."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.cluster_view import ClusterView
from broker_impl.api.metadata import metadata
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.metadata_response import MetadataResponsePartition
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataBroker
from tests.broker_impl.api.test_cluster_view import brokers_only, order


def row(view: ClusterView, listener: str = "CLIENT", version: int = 9) -> MetadataResponsePartition:
    """Partition 0 of the topic, as a client of this listener gets it."""
    context: Any = SimpleNamespace(
        services=SimpleNamespace(view=view, cluster_id="", config=None),
        listener=listener,
        version=version,
    )
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    request.allow_auto_topic_creation = False
    answer: Any = metadata(context, request)
    rows: list[MetadataResponsePartition] = answer.topics[0].partitions
    return rows[0]


@pytest.fixture
def view() -> ClusterView:
    view = ClusterView()
    view.update(order(1, 5))
    return view


def test_an_update_changes_the_next_response(view: ClusterView) -> None:
    """A response shares its rows with the one before it, and never with one before an update."""
    first = row(view)
    assert (first.leader_id, first.leader_epoch, first.offline_replicas) == (1, 5, [2, 3])
    assert row(view) is first
    view.update(order(1, 6))
    assert row(view).leader_epoch == 6
    update = brokers_only()
    update.live_brokers = []
    view.update(update)
    gone = row(view)
    assert (gone.error_code, gone.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert gone.offline_replicas == [1, 2, 3]


def test_listeners_and_old_clients_have_rows_of_their_own(view: ClusterView) -> None:
    """A leader without the client's listener is an error, which depends on the version."""
    codes = [
        row(view, listener, version).error_code
        for listener, version in (("CLIENT", 9), ("OTHER", 9), ("OTHER", 5), ("CLIENT", 5))
    ]
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NONE,
    ]


def test_replicas_in_failed_directories_are_offline(view: ClusterView) -> None:
    """A live broker's replica is offline while the controller reports it; a dead one's always."""
    update = order(1, 5)
    update.topic_states[0].partition_states[0].offline_replicas = [1, 2]
    view.update(update)
    assert row(view).offline_replicas == [1, 2, 3]
    update = brokers_only()
    update.live_brokers.append(UpdateMetadataBroker(id=2))
    view.update(update)
    assert row(view).offline_replicas == [1, 3], "broker 2 was dead, and is back"
    view.update(order(1, 5))
    assert row(view).offline_replicas == [2, 3]
