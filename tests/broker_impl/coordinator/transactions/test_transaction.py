"""The states of one transactional id: fencing, decisions, and when they take effect."""

from typing import Any

import pytest

from broker_impl.coordinator import transaction_records
from broker_impl.coordinator.transactions import rules, states
from broker_impl.coordinator.transactions.coordinator import (
    TransactionConfig,
    TransactionCoordinator,
)
from broker_impl.coordinator.transactions.events import (
    AddPartitions,
    Answered,
    Effect,
    End,
    Forgotten,
    InitAnswer,
    InitProducerId,
    Request,
    SendMarkers,
    Write,
)
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
LOST = ErrorCode.NOT_ENOUGH_REPLICAS
TIMEOUT_MS = 1000


class Driver:
    """A coordinator of one partition, its log, and a clock."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.writes: list[Write] = []
        self.markers: list[SendMarkers] = []
        self.answers: dict[int, Any] = {}
        self.ids = 100
        self.tickets = 0
        self.epoch = 0
        self.writes_fail = False
        self.holds_writes = False
        self.start()

    def start(self) -> None:
        """Start a coordinator that loads the log."""
        self.coordinator = TransactionCoordinator(TransactionConfig(partitions=1))
        self.coordinator.begin(0, self.epoch)
        self.carry_out(self.coordinator.loaded(0, self.epoch, self.log, self.now_ms))

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answered(ticket, answer):
                    self.answers[ticket] = answer
                case Write():
                    self.writes.append(effect)
                case SendMarkers():
                    self.markers.append(effect)
                case Forgotten():
                    pass
        if not self.holds_writes:
            self.write()

    def write(self) -> None:
        while self.writes:
            write = self.writes.pop(0)
            if not self.writes_fail:
                self.log.append((write.key, write.value))
            error = LOST if self.writes_fail else NONE
            self.carry_out(
                self.coordinator.written(write.transactional_id, write.number, error, self.now_ms)
            )

    def ask(self, request: Request) -> Any:
        """Send a request, and return its answer, or None if it is not answered yet."""
        self.carry_out(self.coordinator.request("tx", request, self.now_ms))
        return self.answers.get(request.ticket)

    def ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    def init(self, producer_id: int = -1, epoch: int = -1) -> Any:
        fresh_id = None
        if self.coordinator.needs_id("tx", epoch):
            self.ids += 1
            fresh_id = self.ids
        return self.ask(
            InitProducerId(
                ticket=self.ticket(),
                timeout_ms=TIMEOUT_MS,
                producer_id=producer_id,
                producer_epoch=epoch,
                fresh_id=fresh_id,
            )
        )

    def add(self, *partitions: TopicPartition, epoch: int = 0, producer_id: int = 101) -> Any:
        return self.ask(
            AddPartitions(
                ticket=self.ticket(),
                producer_id=producer_id,
                producer_epoch=epoch,
                partitions=partitions,
            )
        )

    def end(self, *, commit: bool = True, epoch: int = 0, producer_id: int = 101) -> Any:
        return self.ask(
            End(
                ticket=self.ticket(),
                producer_id=producer_id,
                producer_epoch=epoch,
                is_commit=commit,
            )
        )

    def mark(self) -> None:
        """Report every requested marker as written."""
        while self.markers:
            sent = self.markers.pop(0)
            for tp in sent.partitions:
                self.carry_out(self.coordinator.marked(sent, tp, self.now_ms))

    def tick(self, after_ms: int) -> None:
        self.now_ms += after_ms
        self.carry_out(self.coordinator.tick(self.now_ms))

    @property
    def metadata(self) -> Metadata:
        found = self.coordinator.describe("tx")
        assert isinstance(found, Metadata)
        return found

    def state(self) -> TransactionState:
        return self.metadata.state

    @property
    def logged(self) -> list[str]:
        return [
            "Gone" if value is None else transaction_records.decode_value(value).state.title
            for _, value in self.log
        ]


def driven(state: TransactionState) -> Driver:
    """A driver whose transactional id has producer 101, epoch 0, and is in this state."""
    driver = Driver()
    assert driver.init() == InitAnswer(producer_id=101, producer_epoch=0)
    if state is TransactionState.EMPTY:
        return driver
    assert driver.add(A, B) is NONE
    if state is TransactionState.ONGOING:
        return driver
    commit = state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    assert driver.end(commit=commit) is NONE
    if not states.is_decided(state):
        driver.mark()
    assert driver.state() is state
    return driver


def test_a_transaction_is_kept_step_by_step() -> None:
    """T6: each step of a transaction is logged: begun, decided, complete after the last marker."""
    driver = driven(TransactionState.ONGOING)
    assert driver.end() is NONE
    (sent,) = driver.markers
    assert (sent.producer_id, sent.producer_epoch, sent.is_commit) == (101, 0, True)
    assert sent.partitions == (A, B)
    driver.carry_out(driver.coordinator.marked(sent, A, 0))
    assert driver.state() is TransactionState.PREPARE_COMMIT
    driver.carry_out(driver.coordinator.marked(sent, A, 0))
    assert driver.state() is TransactionState.PREPARE_COMMIT
    driver.carry_out(driver.coordinator.marked(sent, B, 0))
    assert driver.logged == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert driver.metadata.partitions == ()


def test_nothing_is_answered_before_it_is_kept() -> None:
    """T4, T6: neither an epoch nor a decision is answered before it is logged.

    Other requests for the id get CONCURRENT_TRANSACTIONS meanwhile.
    """
    driver = Driver()
    driver.holds_writes = True
    assert driver.init() is None
    assert driver.init() == InitAnswer(error=BUSY)
    driver.write()
    assert driver.answers[1] == InitAnswer(producer_id=101, producer_epoch=0)
    assert driver.add(A) is None
    assert driver.end() is BUSY
    driver.write()
    assert driver.answers[3] is NONE
    assert driver.end() is None
    assert driver.add(B) is BUSY
    assert driver.markers == []
    driver.write()
    assert len(driver.markers) == 1


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (TransactionState.EMPTY, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.ONGOING, NONE, NONE),
        (TransactionState.PREPARE_COMMIT, BUSY, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.PREPARE_ABORT, ErrorCode.INVALID_TXN_STATE, BUSY),
        (TransactionState.COMPLETE_COMMIT, NONE, ErrorCode.INVALID_TXN_STATE),
        (TransactionState.COMPLETE_ABORT, ErrorCode.INVALID_TXN_STATE, NONE),
    ],
)
def test_end_txn(state: TransactionState, commit: ErrorCode, abort: ErrorCode) -> None:
    """EndTxn answers as in TV1; a repeated EndTxn after completion gets the same success."""
    assert driven(state).end(commit=True) is commit
    assert driven(state).end(commit=False) is abort


@pytest.mark.parametrize(
    ("state", "expected", "then"),
    [
        (TransactionState.EMPTY, NONE, TransactionState.ONGOING),
        (TransactionState.ONGOING, NONE, TransactionState.ONGOING),
        (TransactionState.PREPARE_COMMIT, BUSY, TransactionState.PREPARE_COMMIT),
        (TransactionState.PREPARE_ABORT, BUSY, TransactionState.PREPARE_ABORT),
        (TransactionState.COMPLETE_COMMIT, NONE, TransactionState.ONGOING),
        (TransactionState.COMPLETE_ABORT, NONE, TransactionState.ONGOING),
    ],
)
def test_add_partitions(
    state: TransactionState, expected: ErrorCode, then: TransactionState
) -> None:
    driver = driven(state)
    assert driver.add(A) is expected
    assert driver.state() is then


def test_partitions_that_are_in_are_not_written_again() -> None:
    driver = driven(TransactionState.ONGOING)
    written = len(driver.log)
    assert driver.add(B) is NONE
    assert len(driver.log) == written
    assert driver.add(B, TopicPartition("c", 0)) is NONE
    assert len(driver.log) == written + 1


def test_a_second_transaction_forgets_the_first_ones_partitions() -> None:
    driver = driven(TransactionState.COMPLETE_ABORT)
    driver.now_ms = 77
    driver.add(B)
    assert driver.metadata.partitions == (B,)
    assert driver.metadata.started_ms == 77


@pytest.mark.parametrize(
    ("producer_id", "epoch", "expected"),
    [
        (101, 1, ErrorCode.PRODUCER_FENCED),
        (101, -1, ErrorCode.PRODUCER_FENCED),
        (7, 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_strangers_are_refused(producer_id: int, epoch: int, expected: ErrorCode) -> None:
    """A request with another epoch, even a later one, or with another producer id is refused."""
    driver = driven(TransactionState.ONGOING)
    assert driver.add(A, producer_id=producer_id, epoch=epoch) is expected
    assert driver.end(producer_id=producer_id, epoch=epoch) is expected


@pytest.mark.parametrize(
    "state",
    [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT],
)
def test_the_next_producer_fences_the_one_before(state: TransactionState) -> None:
    """T-06: each InitProducerId gets a new epoch, which fences the producer before it."""
    driver = driven(state)
    assert driver.init() == InitAnswer(producer_id=101, producer_epoch=1)
    assert driver.add(A, epoch=0) is ErrorCode.PRODUCER_FENCED
    assert driver.add(A, epoch=1) is NONE


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_what_is_decided_is_waited_for(state: TransactionState) -> None:
    driver = driven(state)
    assert driver.init() == InitAnswer(error=BUSY)
    driver.mark()
    assert driver.init() == InitAnswer(producer_id=101, producer_epoch=1)


def test_what_a_producer_left_open_is_aborted() -> None:
    """InitProducerId aborts an open transaction under an epoch that no producer receives.

    The next producer retries, and gets the epoch after that one.
    """
    driver = driven(TransactionState.ONGOING)
    assert driver.init() == InitAnswer(error=BUSY)
    (sent,) = driver.markers
    assert (sent.producer_epoch, sent.is_commit) == (1, False)
    assert driver.end(epoch=0) is ErrorCode.PRODUCER_FENCED
    driver.mark()
    assert driver.init() == InitAnswer(producer_id=101, producer_epoch=2)
    assert driver.logged[2:] == ["PrepareAbort", "CompleteAbort", "Empty"]


def test_a_fence_that_cannot_be_written_uses_one_epoch() -> None:
    """KAFKA-9666: a fence that cannot be written uses up one epoch, and fences at once."""
    driver = driven(TransactionState.ONGOING)
    driver.writes_fail = True
    for _ in range(3):
        assert driver.init() == InitAnswer(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert driver.end(epoch=0) is ErrorCode.PRODUCER_FENCED
    driver.writes_fail = False
    assert driver.init() == InitAnswer(error=BUSY)
    assert driver.markers[0].producer_epoch == 1


def test_a_transaction_that_is_open_for_too_long_is_aborted() -> None:
    """KAFKA-6119: a transaction that is open for too long is aborted with an epoch bump.

    The bump fences its producer, which could otherwise continue.
    """
    driver = driven(TransactionState.ONGOING)
    driver.tick(TIMEOUT_MS)
    assert driver.state() is TransactionState.ONGOING
    driver.tick(1)
    assert driver.state() is TransactionState.PREPARE_ABORT
    assert driver.markers[0].producer_epoch == 1
    assert driver.add(A, epoch=0) is ErrorCode.PRODUCER_FENCED
    driver.mark()
    assert driver.end(epoch=0) is ErrorCode.PRODUCER_FENCED


def test_a_change_that_cannot_be_written_is_as_if_never_asked_for() -> None:
    """KAFKA-5351: a change that cannot be written has no effect, and does not block the id."""
    driver = driven(TransactionState.EMPTY)
    driver.writes_fail = True
    assert driver.add(A) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.state() is TransactionState.EMPTY
    driver.writes_fail = False
    assert driver.add(A) is NONE
    driver.writes_fail = True
    assert driver.end() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.state() is TransactionState.ONGOING
    assert driver.markers == []


def test_completion_is_tried_until_it_is_written() -> None:
    driver = driven(TransactionState.PREPARE_COMMIT)
    driver.writes_fail = True
    driver.mark()
    assert driver.state() is TransactionState.PREPARE_COMMIT
    driver.writes_fail = False
    driver.tick(1)
    assert driver.state() is TransactionState.COMPLETE_COMMIT


def test_the_next_coordinator_carries_out_what_was_decided() -> None:
    """KAFKA-5131: the next coordinator sends all markers of a decided transaction again.

    It cannot know which of them are written.
    """
    driver = driven(TransactionState.PREPARE_COMMIT)
    driver.markers.clear()
    driver.start()
    assert driver.end() is BUSY
    (sent,) = driver.markers
    assert sorted(sent.partitions) == [A, B]
    driver.mark()
    assert driver.end() is NONE


def test_the_answer_to_an_old_marker_is_not_taken_for_a_new_one() -> None:
    """KAFKA-16352: the answer to a marker of an older epoch does not count for a later one."""
    driver = driven(TransactionState.ONGOING)
    driver.init()
    late = driver.markers[0]
    driver.mark()
    driver.init()
    driver.add(A, B, epoch=2)
    driver.end(epoch=2)
    driver.carry_out(driver.coordinator.marked(late, A, 0))
    driver.carry_out(driver.coordinator.marked(late, B, 0))
    assert driver.state() is TransactionState.PREPARE_COMMIT


def test_a_producer_may_bump_its_own_epoch_and_ask_again() -> None:
    """KIP-360: a producer may bump its own epoch, and a retry gets the same answer again.

    A producer that initialized in between fences it.
    """
    driver = driven(TransactionState.COMPLETE_ABORT)
    bumped = InitAnswer(producer_id=101, producer_epoch=1)
    assert driver.init(101, 0) == bumped
    assert driver.init(101, 0) == bumped
    assert driver.init(101, 1) == InitAnswer(producer_id=101, producer_epoch=2)
    assert driver.init(101, 0) == InitAnswer(error=ErrorCode.PRODUCER_FENCED)
    assert driver.init(55, 2) == InitAnswer(error=ErrorCode.PRODUCER_FENCED)
    assert driver.init() == InitAnswer(producer_id=101, producer_epoch=3)
    assert driver.init(101, 2) == InitAnswer(error=ErrorCode.PRODUCER_FENCED)


def test_a_zombie_does_not_abort_its_successors_transaction() -> None:
    """An InitProducerId with an old epoch is fenced, and aborts no transaction of its successor.

    Kafka 2.8 is less strict: it aborts first, and fences at the second attempt.
    """
    driver = driven(TransactionState.EMPTY)
    driver.init()
    driver.add(A, epoch=1)
    assert driver.init(101, 0) == InitAnswer(error=ErrorCode.PRODUCER_FENCED)
    assert driver.state() is TransactionState.ONGOING


def exhausted(driver: Driver, state: TransactionState = TransactionState.EMPTY) -> None:
    last = Metadata(
        producer_id=101,
        producer_epoch=rules.EPOCH_LAST - 1,
        timeout_ms=TIMEOUT_MS,
        state=state,
        partitions=(A,) if state is TransactionState.ONGOING else (),
        started_ms=0,
        updated_ms=0,
    )
    driver.log.append(
        (transaction_records.encode_key("tx"), transaction_records.encode_value(last))
    )
    driver.ids = 101
    driver.start()


def test_an_exhausted_epoch_leads_to_another_id() -> None:
    """KIP-360: after epoch 32766 the id gets a new producer id; a retry gets the same answer."""
    driver = Driver()
    exhausted(driver)
    epoch = rules.EPOCH_LAST - 1
    fresh = InitAnswer(producer_id=102, producer_epoch=0)
    assert driver.init(101, epoch) == fresh
    assert driver.init(101, epoch) == fresh
    assert driver.init() == InitAnswer(producer_id=102, producer_epoch=1)
    assert driver.init(101, epoch) == InitAnswer(error=ErrorCode.PRODUCER_FENCED)


def test_there_is_an_epoch_left_to_fence_the_last_one() -> None:
    driver = Driver()
    exhausted(driver, TransactionState.ONGOING)
    assert driver.init() == InitAnswer(error=BUSY)
    assert driver.markers[0].producer_epoch == rules.EPOCH_LAST
    driver.mark()
    assert driver.init() == InitAnswer(producer_id=102, producer_epoch=0)


def test_an_id_is_forgotten_but_never_in_a_transaction() -> None:
    """T-43: a transactional id expires only without a transaction in progress."""
    expiration_ms = TransactionConfig().expiration_ms
    driver = driven(TransactionState.EMPTY)
    driver.tick(expiration_ms - 1)
    assert driver.state() is TransactionState.EMPTY
    driver.tick(1)
    assert driver.coordinator.describe("tx") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert driver.logged[-1] == "Gone"
    driver.start()
    assert driver.coordinator.describe("tx") is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    decided = driven(TransactionState.PREPARE_ABORT)
    decided.tick(expiration_ms)
    assert decided.state() is TransactionState.PREPARE_ABORT


def test_whether_a_transaction_is_open_can_be_asked() -> None:
    """T9: verify checks that a producer's open transaction, in its epoch, has the partitions."""
    driver = driven(TransactionState.ONGOING)
    other = TopicPartition("c", 0)
    assert driver.coordinator.verify("tx", 101, 0, (A, other)) == {
        A: NONE,
        other: ErrorCode.INVALID_TXN_STATE,
    }
    assert driver.coordinator.verify("tx", 101, 1, (A,)) == {A: ErrorCode.PRODUCER_FENCED}
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.coordinator.verify("tx", 5, 0, (A,)) == {A: unknown}
    assert driver.coordinator.verify("other", 101, 0, (A,)) == {A: unknown}
    driver.end()
    assert driver.coordinator.verify("tx", 101, 0, (A,)) == {A: BUSY}
    driver.mark()
    assert driver.coordinator.verify("tx", 101, 0, (A,)) == {A: ErrorCode.INVALID_TXN_STATE}


def test_every_state_has_a_way_in_and_none_but_the_dead_is_an_end() -> None:
    """Every state can be reached, and every state except Dead can be left."""
    assert set(states.PREDECESSORS) == set(TransactionState)
    assert all(states.PREDECESSORS.values())
    left = set().union(*states.PREDECESSORS.values())
    assert set(TransactionState) - left == {TransactionState.DEAD}
