import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node.fetcher import Fetchers
from broker_impl.node.peers import PeerError
from broker_impl.replica.fetch_targets import FetchChanges, FetchTarget
from broker_impl.replica.replica_state import Stage
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker_impl.wire.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from broker_impl.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset as EpochEnd,
)
from broker_impl.wire.messages.offset_for_leader_epoch_response import (
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.conftest import until

TP = TopicPartition("t", 0)
LEADER = 2


def target(stage: Stage = Stage.FETCH, partition: int = 0) -> FetchTarget:
    return FetchTarget(
        TopicPartition("t", partition), stage, leader_epoch=4, offset=7, last_epoch=3, log_start=1
    )


class FakeReplicas:
    """Replicas that give the fetcher the test's targets, and record the results."""

    def __init__(self) -> None:
        self.targets: list[FetchTarget] = []
        self.former: list[TopicPartition] = []
        self.told: list[Any] = []
        self.retry_at: float | None = None
        self.once = True

    def leaders_followed(self) -> list[int]:
        return [LEADER]

    def fetch_changes(self, leader: int) -> FetchChanges:
        """Return the test's targets as new, and those of the last call as gone."""
        assert leader == LEADER
        if not self.targets and not self.once:
            return FetchChanges([], [])
        former, self.former = self.former, [each.tp for each in self.targets]
        found, self.targets = self.targets, []
        return FetchChanges(found, former)

    def next_retry(self, leader: int) -> float | None:
        return self.retry_at

    def epoch_end_answered(self, *told: Any) -> None:
        self.told.append(("epoch end", *told))

    def bounds_answered(self, *told: Any) -> None:
        self.told.append(("bounds", *told))

    def fetched(self, target: FetchTarget, error: ErrorCode, **told: Any) -> None:
        self.told.append(("fetched", target, error, told))

    def end_offset(self, tp: TopicPartition) -> int:
        return 1 << 40


class FakePeers:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.reply: Callable[[Any], Any] = lambda message: FetchResponse()

    async def request(self, broker: int, message: Any, version: int, *, timeout_s: float) -> Any:
        assert broker == LEADER
        self.asked.append(message)
        await asyncio.sleep(0)
        return self.reply(message)


class World:
    def __init__(self) -> None:
        self.replicas = FakeReplicas()
        self.peers = FakePeers()
        self.failures: list[BaseException] = []
        config = configuration.parse(
            {
                "broker.id": "1",
                "zookeeper.connect": "h:1",
                "replica.fetch.backoff.ms": "5",
                "replica.fetch.wait.max.ms": "77",
            }
        )
        replicas: Any = self.replicas
        peers: Any = self.peers
        quota: Any = SimpleNamespace(throttles=lambda _: False)
        self.fetchers = Fetchers(replicas, peers, config, quota, Counts(), self.failures.append)

    async def tell(self, *targets: FetchTarget) -> list[Any]:
        """Let the fetcher work on these targets, and return the recorded results."""
        self.replicas.targets = list(targets)
        self.fetchers.wake()
        await until(lambda: bool(self.replicas.told or self.failures))
        return list(self.replicas.told)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.fetchers.close()


def partition(session_id: int = 0, **values: Any) -> FetchResponse:
    rows = [PartitionData(**{"partition_index": 0, "records": None} | values)]
    topics = [FetchableTopicResponse(topic="t", partitions=rows)]
    return FetchResponse(session_id=session_id, responses=topics)


async def test_a_fetch_names_epoch_and_offset(world: World) -> None:
    """A fetch has the leader epoch, offset and last epoch; its records and watermark are passed on.

    The leader epoch fences the fetch.
    """
    world.peers.reply = lambda message: partition(
        records=memoryview(b"batch"), high_watermark=9, log_start_offset=2
    )
    [(_, asked, error, told)] = await world.tell(target())
    assert (asked, error) == (target(), ErrorCode.NONE)
    assert (bytes(told["records"]), told["high_watermark"]) == (b"batch", 9)
    assert (told["log_start_offset"], told["diverging"]) == (2, None)
    [request] = world.peers.asked
    assert isinstance(request, FetchRequest)
    assert (request.replica_id, request.max_wait_ms, request.session_epoch) == (1, 77, 0)
    row = request.topics[0].partitions[0]
    assert (row.current_leader_epoch, row.fetch_offset, row.last_fetched_epoch) == (4, 7, 3)
    assert row.log_start_offset == 1


async def test_a_diverging_answer_is_passed_on(world: World) -> None:
    """KIP-595: a diverging epoch and its end offset are passed on to the replica."""
    world.peers.reply = lambda message: partition(
        diverging_epoch=EpochEndOffset(epoch=2, end_offset=5)
    )
    [(_, _, _, told)] = await world.tell(target())
    assert told["diverging"] == (2, 5)
    assert told["records"] == b""


@pytest.mark.parametrize(
    ("number", "error"), [(6, ErrorCode.NOT_LEADER_OR_FOLLOWER), (9999, -1)], ids=repr
)
async def test_errors_are_passed_on(world: World, number: int, error: int) -> None:
    """Errors of a partition are passed on, including error codes that this broker does not know."""
    world.peers.reply = lambda message: partition(error_code=number)
    [(_, _, told, _)] = await world.tell(target())
    assert told == error


async def test_what_was_not_asked_is_not_told(world: World) -> None:
    """A partition in the response that was not in the request is ignored."""
    world.peers.reply = lambda message: FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t",
                partitions=[
                    PartitionData(partition_index=5, records=None),
                    PartitionData(partition_index=0, records=None),
                ],
            )
        ]
    )
    assert len(await world.tell(target())) == 1


async def test_an_epoch_is_asked_for_before_records(world: World) -> None:
    """OffsetForLeaderEpoch comes first, and a fetch in the same round does not wait for data."""

    def reply(message: Any) -> Any:
        if not isinstance(message, OffsetForLeaderEpochRequest):
            return partition()
        rows = [EpochEnd(partition=1, error_code=0, leader_epoch=3, end_offset=6)]
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="t", partitions=rows)]
        )

    world.peers.reply = reply
    await world.tell(target(), target(Stage.EPOCH_END, 1))
    await until(lambda: len(world.replicas.told) == 2)
    asked = target(Stage.EPOCH_END, 1)
    assert world.replicas.told[0] == ("epoch end", asked, ErrorCode.NONE, 3, 6)
    row = world.peers.asked[0].topics[0].partitions[0]
    assert (row.current_leader_epoch, row.leader_epoch) == (4, 3)
    assert world.peers.asked[1].max_wait_ms == 0


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([0, 0], (ErrorCode.NONE, 11, 12)),
        ([6, 0], (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)),
        ([0, 6], (ErrorCode.NOT_LEADER_OR_FOLLOWER, 11, 12)),
    ],
    ids=repr,
)
async def test_bounds_are_two_questions(world: World, errors: list[int], told: Any) -> None:
    """The bounds of a log are two ListOffsets requests; an error of either is the result."""
    answers = iter(zip(errors, (11, 12), strict=True))

    def reply(message: ListOffsetsRequest) -> Any:
        error, offset = next(answers)
        rows = [ListOffsetsPartitionResponse(partition_index=0, error_code=error, offset=offset)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=rows)])

    world.peers.reply = reply
    asked = target(Stage.BOUNDS)
    assert await world.tell(asked) == [("bounds", asked, *told)]
    assert [m.topics[0].partitions[0].timestamp for m in world.peers.asked] == [-2, -1][
        : len(world.peers.asked)
    ]


@pytest.mark.parametrize("refusal", [PeerError("gone"), FetchResponse(error_code=70)], ids=repr)
async def test_a_leader_that_fails_is_asked_again_after_a_pause(world: World, refusal: Any) -> None:
    """After a failure, also of a whole request, the fetcher pauses before it asks again."""

    def reply(message: Any) -> Any:
        if isinstance(refusal, Exception):
            raise refusal
        return refusal

    world.peers.reply = reply
    world.replicas.once = False
    world.replicas.targets = [target()]
    world.fetchers.wake()
    await asyncio.sleep(0.03)
    assert 2 <= len(world.peers.asked) <= 7
    world.peers.reply = lambda message: partition()
    await until(lambda: bool(world.replicas.told))
    assert not world.failures


@pytest.mark.parametrize("error", [70, 71])
async def test_a_lost_session_is_begun_again_at_once(world: World, error: int) -> None:
    """KIP-227: if the leader does not know the session, a full fetch follows without a pause."""
    answers = iter(
        [
            FetchResponse(session_id=5),
            FetchResponse(error_code=error),
            partition(session_id=6),
        ]
    )
    stopped = asyncio.Event()

    def reply(message: Any) -> Any:
        answer = next(answers, None)
        if answer is None:
            stopped.set()
            raise PeerError("enough")
        return answer

    world.peers.reply = reply
    world.replicas.once = False
    world.replicas.targets = [target()]
    world.fetchers.wake()
    await stopped.wait()
    asked = [(each.session_id, each.session_epoch, len(each.topics)) for each in world.peers.asked]
    assert asked[:4] == [(0, 0, 1), (5, 1, 0), (5, 0, 1), (6, 1, 0)]
    assert len(world.replicas.told) == 1


async def test_a_partition_that_is_left_is_forgotten(world: World) -> None:
    """A partition that has another leader now is removed from the session."""
    world.peers.reply = lambda message: partition(session_id=5)
    await world.tell(target(), target(partition=1))
    world.replicas.targets = [target()]
    world.fetchers.wake()
    await until(lambda: len(world.peers.asked) > 1)
    assert not world.peers.asked[1].topics
    [forgotten] = world.peers.asked[1].forgotten_topics_data
    assert (forgotten.topic, forgotten.partitions) == ("t", [1])


async def test_what_waits_after_an_error_is_asked_in_time(world: World) -> None:
    """With no target due the fetcher sleeps until the next retry, or until it is woken."""
    world.peers.reply = lambda message: partition()
    await world.tell(target())
    world.replicas.retry_at = asyncio.get_running_loop().time() + 0.01
    world.fetchers.wake_soon()
    world.fetchers.wake_soon()
    await asyncio.sleep(0)
    world.replicas.targets = [target()]
    await until(lambda: len(world.replicas.told) == 2)


async def test_a_broken_invariant_is_not_swallowed(world: World) -> None:
    """An assertion that fails while a response is handled ends the broker."""

    def fail(*args: Any, **told: Any) -> None:
        raise AssertionError("out of order")

    world.replicas.fetched = fail  # type: ignore[method-assign]
    world.peers.reply = lambda message: partition()
    await world.tell(target())
    assert str(world.failures[0]) == "out of order"


async def test_nothing_wakes_after_the_end(world: World) -> None:
    """A wake-up just before the close starts no task."""
    world.replicas.targets = [target()]
    world.fetchers.wake_soon()
    await world.fetchers.close()
    await asyncio.sleep(0)
    assert world.peers.asked == []
