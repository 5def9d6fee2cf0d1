from uuid import UUID

import pytest

from broker_impl.api.cluster_view import ClusterView, PartitionView
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker_impl.wire.types import TopicPartition


def order(
    leader: int,
    leader_epoch: int,
    *,
    controller_epoch: int = 1,
    topic: str = "t",
    broker_epoch: int = 7,
) -> UpdateMetadataRequest:
    """An UpdateMetadata request about partition 0 of `topic`, in a cluster of one broker."""
    return UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[
            UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=UUID(int=leader_epoch),
                partition_states=[
                    UpdateMetadataPartitionState(
                        partition_index=0,
                        leader=leader,
                        leader_epoch=leader_epoch,
                        isr=[1, 2],
                        replicas=[1, 2, 3],
                    )
                ],
            )
        ],
        live_brokers=[
            UpdateMetadataBroker(
                id=1,
                rack="r",
                endpoints=[UpdateMetadataEndpoint(port=1, host="h", listener="CLIENT")],
            )
        ],
    )


TP = TopicPartition("t", 0)


def test_the_controllers_word_replaces_the_view() -> None:
    """An UpdateMetadata request sets brokers, their endpoints by listener, and partitions."""
    view = ClusterView()
    view.update(order(1, 5))
    assert view.partition(TP) == PartitionView(1, 5, (1, 2), (1, 2, 3))
    assert view.topic_ids == {"t": UUID(int=5)}
    assert view.brokers[1].endpoints == {"CLIENT": ("h", 1)}
    assert list(view.partitions()) == [(TP, PartitionView(1, 5, (1, 2), (1, 2, 3)))]


def brokers_only(*, controller_epoch: int = 1, broker_epoch: int = 7) -> UpdateMetadataRequest:
    """The UpdateMetadata request that every broker receives when brokers come and go."""
    request = order(1, 5, controller_epoch=controller_epoch, broker_epoch=broker_epoch)
    request.topic_states = []
    return request


def test_a_new_controller_says_everything_anew() -> None:
    """The first message of a new controller with topics replaces the topics of the view.

    The view thus loses topics whose deletion it has missed.
    """
    view = ClusterView()
    view.update(order(1, 5, topic="ghost"))
    view.update(brokers_only(controller_epoch=2))
    assert list(view.topics) == ["ghost"], "clients are not told in between that there is nothing"
    view.update(order(1, 5, controller_epoch=2))
    assert list(view.topics) == list(view.topic_ids) == ["t"]
    view.update(order(1, 0, controller_epoch=2, topic="new"))
    assert list(view.topics) == ["t", "new"]


@pytest.mark.parametrize(("controller_epoch", "broker_epoch"), [(2, 7), (1, 8)])
def test_a_cluster_whose_last_topic_was_deleted(controller_epoch: int, broker_epoch: int) -> None:
    """If a new controller, or one that saw a registration, has no topics, the view loses its own.

    The first request has the brokers only, so that it says nothing about topics.
    """
    view = ClusterView()
    view.update(order(1, 5))
    request = brokers_only(controller_epoch=controller_epoch, broker_epoch=broker_epoch)
    view.update(request)
    assert list(view.topics) == ["t"]
    view.update(request)
    assert view.topics == view.topic_ids == {}
    view.update(
        order(1, 0, topic="new", controller_epoch=controller_epoch, broker_epoch=broker_epoch)
    )
    view.update(request)
    assert list(view.topics) == ["new"]


def test_a_broker_that_registers_again_forgets_old_epochs() -> None:
    """After a broker registers again, its view accepts epoch 0 for a topic recreated meanwhile."""
    view = ClusterView()
    view.update(order(1, 5))
    view.update(brokers_only(broker_epoch=8))
    view.update(order(2, 0, broker_epoch=8))
    assert view.topics["t"][0].leader == 2


def test_the_whole_state_is_kept_when_only_a_change_follows() -> None:
    """The state that a controller sends after a registration replaces the topics, and no later one.

    The controller may see the registration before the broker knows that it succeeded; the topics
    that the broker received before it knew are not forgotten then.
    """
    view = ClusterView()
    view.update(order(1, 5, topic="deleted"))
    view.update(order(1, 5, topic="t", broker_epoch=8))
    view.update(order(2, 0, topic="other", broker_epoch=8))
    assert list(view.topics) == ["t", "other"]


def test_the_view_is_whole_once_topics_were_told() -> None:
    """The view is whole after the first message with topics, or a second one without topics."""
    view, empty = ClusterView(), ClusterView()
    view.update(brokers_only())
    assert not view.is_whole
    view.update(order(1, 5))
    assert view.is_whole
    empty.update(brokers_only())
    empty.update(brokers_only())
    assert empty.is_whole


def test_a_leader_epoch_never_goes_back() -> None:
    """KAFKA-7738: a late message does not send clients to an old leader."""
    view = ClusterView()
    view.update(order(1, 5))
    view.update(order(2, 4))
    assert view.topics["t"][0].leader == 1
    view.update(order(3, 5))
    assert view.topics["t"][0].leader == 3


def test_a_deleted_topic_is_gone_and_may_come_back() -> None:
    """Leader -2 removes a topic from the view; a topic that is created again starts at epoch 0."""
    view = ClusterView()
    view.update(order(1, 5))
    view.update(order(-2, 6))
    assert view.topics == view.topic_ids == {}
    assert view.not_here(TP) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    view.update(order(2, 0))
    assert view.topics["t"][0].leader == 2
    assert view.not_here(TP) is ErrorCode.NOT_LEADER_OR_FOLLOWER
