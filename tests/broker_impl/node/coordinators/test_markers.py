"""Transaction markers are sent again until each is written, or not needed any more."""

import asyncio
from typing import Any

import pytest

from broker_impl.api.cluster_view import ClusterView, PartitionView
from broker_impl.coordinator.transactions.events import SendMarkers
from broker_impl.errors import ErrorCode
from broker_impl.node.coordinators import markers
from broker_impl.node.coordinators.markers import Markers
from broker_impl.node.peers import PeerError
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
from broker_impl.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from broker_impl.wire.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Leaders:
    """Leaders that answer WriteTxnMarkers with the given errors, or else with success."""

    def __init__(self) -> None:
        self.orders: dict[TopicPartition, list[ErrorCode | None]] = {}
        """The errors of each partition's next requests; None: no answer."""
        self.asked: list[tuple[int, list[TopicPartition]]] = []
        self.is_answering = asyncio.Event()
        self.is_answering.set()

    async def request(
        self, broker: int, message: WriteTxnMarkersRequest, version: int, *, timeout_s: float
    ) -> Any:
        asked = [
            TopicPartition(topic.name, number)
            for marker in message.markers
            for topic in marker.topics
            for number in topic.partition_indexes
        ]
        self.asked.append((broker, asked))
        await self.is_answering.wait()
        orders = {tp: self.orders[tp].pop(0) for tp in asked if self.orders.get(tp)}
        if None in orders.values():
            raise PeerError("no answer")
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                WritableTxnMarkerPartitionResult(
                                    number,
                                    orders.get(TopicPartition(topic.name, number))
                                    or ErrorCode.NONE,
                                )
                                for number in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in message.markers
            ]
        )


class Sender:
    """The marker sender of one coordinator, in coordinator epoch 4."""

    def __init__(self) -> None:
        self.leaders = Leaders()
        self.view = ClusterView()
        self.view.is_whole = True
        self.epoch = 4
        self.done: list[tuple[str, TopicPartition]] = []
        self.failures: list[BaseException] = []
        self.markers = Markers(
            self.leaders,  # type: ignore[arg-type]  # stands in for peers
            self.view,
            timeout_s=1.0,
            counts=lambda name, epoch: epoch == self.epoch,
            done=lambda sent, tp: self.done.append((sent.transactional_id, tp)),
            on_failure=self.failures.append,
        )
        self.lead(A, 1)
        self.lead(B, 2)

    def lead(self, tp: TopicPartition, leader: int) -> None:
        self.view.topics[tp.topic] = {tp.partition: PartitionView(leader, 0, (1, 2), (1, 2))}

    def send(self, *partitions: TopicPartition, name: str = "tx") -> None:
        sent = SendMarkers(
            transactional_id=name,
            producer_id=7,
            producer_epoch=0,
            is_commit=True,
            partitions=partitions,
        )
        self.markers.send(sent, 4)

    async def ended(self) -> None:
        """Wait until no marker is pending."""
        async with asyncio.timeout(10):
            await self.markers._tasks.ended()
        assert self.failures == []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "_AGAIN_S", 0.001)
    monkeypatch.setattr(markers, "_GONE_AFTER_S", 3600.0)


async def test_each_leader_is_asked_once() -> None:
    sender = Sender()
    sender.send(A, B)
    await sender.ended()
    assert sorted(sender.done) == [("tx", A), ("tx", B)]
    assert sorted(sender.leaders.asked) == [(1, [A]), (2, [B])]


@pytest.mark.parametrize(
    "error",
    [
        None,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
async def test_what_may_not_be_there_is_sent_again(error: ErrorCode | None) -> None:
    """T6: a marker that may not be written is sent again without limit, to the present leader."""
    sender = Sender()
    sender.leaders.orders = {A: [error, error, error]}
    sender.send(A)
    await asyncio.sleep(0)
    sender.lead(A, 2)
    await sender.ended()
    assert sender.done == [("tx", A)]
    assert len(sender.leaders.asked) == 4
    assert sender.leaders.asked[-1][0] == 2


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED]
)
async def test_a_fenced_coordinator_gives_up(error: ErrorCode) -> None:
    """A fenced coordinator stops sending a marker, and does not report it as written.

    A later coordinator has decided since.
    """
    sender = Sender()
    sender.leaders.orders = {A: [error]}
    sender.send(A, B)
    await sender.ended()
    assert sender.done == [("tx", B)]


async def test_a_coordinator_that_was_followed_sends_nothing() -> None:
    """A coordinator that lost its partition sends no markers, and ignores late answers."""
    sender = Sender()
    sender.epoch = 5
    sender.send(A)
    await sender.ended()
    assert (sender.leaders.asked, sender.done) == ([], [])
    sender.epoch = 4
    sender.leaders.is_answering.clear()
    sender.send(A)
    await asyncio.sleep(0.01)
    sender.epoch = 5
    sender.leaders.is_answering.set()
    await sender.ended()
    assert (len(sender.leaders.asked), sender.done) == (1, [])


async def test_what_gathers_meanwhile_goes_in_one_request() -> None:
    sender = Sender()
    sender.leaders.is_answering.clear()
    sender.send(A, name="first")
    await asyncio.sleep(0.01)
    sender.send(A, name="second")
    sender.send(A, name="third")
    sender.leaders.is_answering.set()
    await sender.ended()
    assert sender.leaders.asked == [(1, [A]), (1, [A, A])]
    assert [name for name, _ in sender.done] == ["first", "second", "third"]


async def test_a_partition_without_a_leader_is_waited_for() -> None:
    sender = Sender()
    sender.lead(A, -1)
    sender.send(A)
    await asyncio.sleep(0.05)
    assert (sender.done, sender.leaders.asked) == ([], [])
    sender.lead(A, 2)
    await sender.ended()
    assert sender.done == [("tx", A)]


async def test_a_partition_that_stays_unknown_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker for a partition that stays unknown for long counts as done: its topic was deleted.

    Before that, the view may only lag.
    """
    sender = Sender()
    del sender.view.topics["a"]
    sender.send(A)
    await asyncio.sleep(0.01)
    assert sender.done == []
    monkeypatch.setattr(markers, "_GONE_AFTER_S", 0.0)
    await sender.ended()
    assert (sender.done, sender.leaders.asked) == ([("tx", A)], [])


async def test_no_partition_is_gone_while_the_topics_are_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker that has registered, or sees a new controller, gets the topics after the brokers.

    Until then it cannot know which partitions were deleted.
    """
    monkeypatch.setattr(markers, "_GONE_AFTER_S", 0.0)
    sender = Sender()
    registered = Sender()
    registered.view = registered.markers._view = ClusterView()
    for each in sender, registered:
        each.view.topics.clear()
        each.view.update(UpdateMetadataRequest(controller_id=1, controller_epoch=5, broker_epoch=9))
        each.send(A)
    await asyncio.sleep(0.05)
    for each in sender, registered:
        assert (each.done, each.leaders.asked) == ([], [])
        each.lead(A, 1)
        await each.ended()
        assert (each.done, each.leaders.asked) == ([("tx", A)], [(1, [A])])
