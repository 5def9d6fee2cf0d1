"""The coordinator answers for a transactional id only while its partition is led and loaded."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.coordinator import transaction_records
from broker_impl.coordinator.transactions import states
from broker_impl.coordinator.transactions.coordinator import (
    TransactionConfig,
    TransactionCoordinator,
    fold,
)
from broker_impl.coordinator.transactions.events import (
    AddPartitions,
    Answered,
    Effect,
    End,
    Forgotten,
    InitAnswer,
    InitProducerId,
    SendMarkers,
    Write,
)
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import TopicPartition

A = TopicPartition("a", 0)


def init(ticket: int = 1, *, timeout_ms: int = 1000, epoch: int = -1) -> InitProducerId:
    return InitProducerId(ticket=ticket, timeout_ms=timeout_ms, producer_epoch=epoch, fresh_id=7)


def refused(effects: list[Effect]) -> ErrorCode:
    (effect,) = effects
    assert isinstance(effect, Answered)
    answer = effect.answer
    return answer.error if isinstance(answer, InitAnswer) else answer


def coordinator() -> TransactionCoordinator:
    return TransactionCoordinator(TransactionConfig(partitions=1))


def test_only_what_is_led_and_loaded_is_answered() -> None:
    """T-17: requests are refused while the partition loads: an id in the log is not a new one."""
    here = coordinator()
    assert refused(here.request("tx", init(), 0)) is ErrorCode.NOT_COORDINATOR
    here.begin(0, 3)
    assert here.is_loading
    assert refused(here.request("tx", init(), 0)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert here.describe("tx") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert here.loaded(0, 2, [], 0) == []
    assert here.is_loading
    here.loaded(0, 3, [], 0)
    assert isinstance(here.request("tx", init(), 0)[0], Write)
    assert here.epoch_of("tx") == 3


def test_whoever_waits_is_sent_away_when_the_partition_moves() -> None:
    """T-16: unloading refuses parked requests, drops all state, and ignores late orders."""
    here = coordinator()
    here.begin(0, 3)
    here.loaded(0, 3, [], 0)
    (write,) = here.request("tx", init(5), 0)
    assert isinstance(write, Write)
    assert here.end(0, 2) == []
    assert here.end(0, 4) == [Answered(5, InitAnswer(error=ErrorCode.NOT_COORDINATOR))]
    assert here.written("tx", write.number, ErrorCode.NONE, 0) == []
    here.begin(0, 5)
    here.loaded(0, 5, [], 0)
    assert here.written("tx", write.number, ErrorCode.NONE, 0) == []
    assert here.describe("tx") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_later_leadership_replaces_one_without_an_end_in_between() -> None:
    here = coordinator()
    here.begin(0, 3)
    here.loaded(0, 3, [], 0)
    here.request("tx", init(5), 0)
    assert here.begin(0, 3) == []
    assert refused(here.begin(0, 4)) is ErrorCode.NOT_COORDINATOR
    assert here.is_loading


def test_impossible_requests_are_refused() -> None:
    """Invalid requests are refused.

    They have a timeout beyond transaction.max.timeout.ms, an epoch without a producer id, an
    empty transactional id, or one that is not known.
    """
    here = coordinator()
    here.begin(0, 0)
    here.loaded(0, 0, [], 0)
    for timeout_ms in (0, -1, 900_001):
        error = refused(here.request("tx", init(timeout_ms=timeout_ms), 0))
        assert error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert refused(here.request("tx", init(epoch=1), 0)) is ErrorCode.INVALID_REQUEST
    assert refused(here.request("", init(), 0)) is ErrorCode.INVALID_REQUEST
    end = End(ticket=1, producer_id=1, producer_epoch=0, is_commit=True)
    assert refused(here.request("tx", end, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_id_whose_first_write_fails_was_never_there() -> None:
    here = coordinator()
    here.begin(0, 0)
    here.loaded(0, 0, [], 0)
    (write,) = here.request("tx", init(), 0)
    assert isinstance(write, Write)
    here.written("tx", write.number, ErrorCode.NOT_ENOUGH_REPLICAS, 0)
    assert list(here.all()) == []
    assert here.needs_id("tx", -1)


def entry(transactional_id: str, state: TransactionState | None) -> tuple[bytes, bytes | None]:
    key = transaction_records.encode_key(transactional_id)
    if state is None:
        return key, None
    value = Metadata(producer_id=1, producer_epoch=0, timeout_ms=1, state=state)
    return key, transaction_records.encode_value(value)


def test_the_last_word_on_each_id_counts() -> None:
    """The last record of each transactional id counts; a tombstone removes the id."""
    found = fold(
        [
            entry("a", TransactionState.EMPTY),
            entry("b", TransactionState.EMPTY),
            entry("a", TransactionState.ONGOING),
            entry("b", None),
            (b"\x00\x63later", b"?"),
        ]
    )
    assert {name: metadata.state for name, metadata in found.items()} == {
        "a": TransactionState.ONGOING
    }


class World:
    """Consecutive coordinators of one id, a log whose writes may fail, and late markers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.decided: dict[tuple[int, int, int], bool] = {}
        self.epoch = 0
        self.waiting: list[Write] = []
        self.markers: list[tuple[SendMarkers, TopicPartition]] = []
        self.tickets = 0
        self.given: set[tuple[int, int]] = set()
        self.next_id = 0
        self.producer = (0, 0)
        self.here = coordinator()
        self.lead()

    def lead(self) -> None:
        self.epoch += 1
        self.waiting.clear()
        self.markers.clear()
        self.here.begin(0, self.epoch)
        self.take(self.here.loaded(0, self.epoch, self.log, self.now_ms))

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Write():
                    self.waiting.append(effect)
                case SendMarkers():
                    self.markers += [(effect, tp) for tp in effect.partitions]
                    self.check_decision(effect)
                case Answered(_, InitAnswer(error=ErrorCode.NONE) as answer):
                    self.producer = (answer.producer_id, answer.producer_epoch)
                    assert self.producer not in self.given, "an epoch was given twice"
                    self.given.add(self.producer)
                case Answered() | Forgotten():
                    pass

    def check_decision(self, sent: SendMarkers) -> None:
        """Check that a transaction whose markers are being sent keeps its decision."""
        metadata = self.here.describe("tx")
        if isinstance(metadata, Metadata):  # otherwise the transaction was just loaded
            name = (sent.producer_id, sent.producer_epoch, metadata.started_ms)
            assert self.decided.setdefault(name, sent.is_commit) is sent.is_commit

    def settle(self) -> None:
        if not self.waiting:
            return
        write = self.waiting.pop(0)
        outcome = self.rng.random()
        if outcome < 0.9:  # the write succeeds, though a part of these are reported as timed out
            self.log.append((write.key, write.value))
        error = ErrorCode.NONE if outcome < 0.8 else ErrorCode.REQUEST_TIMED_OUT
        self.take(self.here.written("tx", write.number, error, self.now_ms))

    def step(self) -> None:
        self.now_ms += 1 + self.rng.randrange(300)
        self.tickets += 1
        producer_id, epoch = self.producer
        match self.rng.randrange(9):
            case 0:
                fresh_id = None
                if self.here.needs_id("tx", -1):
                    self.next_id += 1
                    fresh_id = self.next_id
                self.request(
                    InitProducerId(ticket=self.tickets, timeout_ms=1000, fresh_id=fresh_id)
                )
            case 1 | 2:
                tp = TopicPartition("a", self.rng.randrange(3))
                self.request(
                    AddPartitions(
                        ticket=self.tickets,
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        partitions=(tp,),
                    )
                )
            case 3:
                self.request(
                    End(
                        ticket=self.tickets,
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        is_commit=self.rng.random() < 0.5,
                    )
                )
            case 4 | 5 | 6:
                self.settle()
            case 7:
                if self.markers:
                    self.take(self.here.marked(*self.markers.pop(0), self.now_ms))
            case 8:
                if self.rng.random() < 0.2:
                    self.lead()
                else:
                    self.take(self.here.tick(self.now_ms))
            case choice:
                raise AssertionError(choice)

    def request(self, request: Any) -> None:
        self.take(self.here.request("tx", request, self.now_ms))


@settings(max_examples=150)
@given(st.integers(0, 10**6))
def test_whatever_happens_a_decision_stands(seed: int) -> None:
    """T3, T4: no producer epoch is given twice, and every transaction completes in the end."""
    world = World(seed)
    for _ in range(120):
        world.step()
    for _ in range(50):
        world.rng = random.Random(1)
        world.now_ms += 1000
        while world.waiting or world.markers:
            world.settle()
            if world.markers:
                world.take(world.here.marked(*world.markers.pop(0), world.now_ms))
        world.take(world.here.tick(world.now_ms))
    assert all(states.is_at_rest(metadata.state) for _, metadata in world.here.all())
