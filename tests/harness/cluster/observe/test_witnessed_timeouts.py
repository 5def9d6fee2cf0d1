"""The transactions of a coordinator are not aborted before their timeout."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.replica.events import Role
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants.transaction_times import TransactionTimes
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_timeouts import TimeoutWitness

HOME = TopicPartition("__transaction_state", 2)
EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
INIT = InitProducerIdRequest("t", 1000)
ADD = AddPartitionsToTxnRequest(
    v3_and_below_transactional_id="t",
    v3_and_below_producer_id=7,
    v3_and_below_producer_epoch=2,
)
ADD_OFFSETS = AddOffsetsToTxnRequest("t", 7, 2, "g")
END = EndTxnRequest("t", 7, 2, committed=True)


class Coordinator:
    """A broker that coordinates the transactional id t of producer 7."""

    def __init__(self, *, is_steady: bool = True) -> None:
        self.found: list[str] = []
        self.now_s = 10.0
        self.leader_epoch = 5
        self.known: Any = None
        log = SimpleNamespace(offline=None, end_offset=10, epochs=LeaderEpochs([EpochStart(5, 0)]))
        self.home = SimpleNamespace(role=Role.LEADER, leader_epoch=5, log=log, high_watermark=10)
        self.has(EMPTY)
        broker: Any = SimpleNamespace(
            config=SimpleNamespace(transactional_id_expiration_ms=2000),
            replicas=SimpleNamespace(
                leader_epoch=lambda tp: self.leader_epoch, partitions={HOME: self.home}
            ),
            transactions=SimpleNamespace(
                describe=lambda name: self.known, partition_of=lambda name: HOME
            ),
        )
        self.witness = TimeoutWitness(
            Reporter(
                1,
                lambda: int(self.now_s * 1e9),
                lambda violation: self.found.append(violation.invariant),
            ),
            broker,
            TransactionTimes(),
            is_steady=is_steady,
        )

    def has(self, state: TransactionState, epoch: int = 2) -> None:
        """The transactional id has this state from now on."""
        self.known = Metadata(producer_id=7, producer_epoch=epoch, timeout_ms=1000, state=state)

    def ask(self, request: Any, code: int = 0) -> list[str]:
        """Answer a request; return the violations."""
        self.found.clear()
        on_answer = self.witness(request)
        row = SimpleNamespace(partition_error_code=code)
        if on_answer is not None:
            on_answer(
                SimpleNamespace(
                    error_code=code,
                    producer_id=7,
                    producer_epoch=2,
                    results_by_topic_v3_and_below=[SimpleNamespace(results_by_partition=[row])],
                )
            )
        return list(self.found)

    def begins(self, request: Any, code: int = 0) -> None:
        """The producer gets its epoch, and adds a partition to a transaction."""
        assert self.ask(INIT) == []
        assert self.ask(request, code) == []
        self.has(ONGOING)


@pytest.mark.parametrize("add", [ADD, ADD_OFFSETS])
@pytest.mark.parametrize("seen", [ADD, ADD_OFFSETS, END, INIT])
@pytest.mark.parametrize("after_s", [0.5, 1.5])
def test_a_transaction_is_aborted_after_its_timeout(add: Any, seen: Any, after_s: float) -> None:
    """The next request shows it."""
    coordinator = Coordinator()
    coordinator.begins(add)
    assert coordinator.ask(ADD) == []
    coordinator.now_s += after_s
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(seen) == (["aborted-after-timeout"] if after_s < 1 else [])


@pytest.mark.parametrize("request_", [END, INIT])
def test_a_transaction_may_be_ended(request_: Any) -> None:
    """By its producer, or by another one."""
    coordinator = Coordinator()
    coordinator.begins(ADD)
    assert coordinator.ask(request_) == []
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(END) == []


def test_a_wrong_clock_is_not_judged() -> None:
    """The coordinator counts by its own clock."""
    coordinator = Coordinator(is_steady=False)
    coordinator.begins(ADD)
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(END) == []


@pytest.mark.parametrize("add", [ADD, ADD_OFFSETS])
def test_a_refused_addition_begins_nothing(add: Any) -> None:
    """Its transaction may be another one."""
    coordinator = Coordinator()
    coordinator.begins(add, code=51)
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(END) == []


def test_the_coordinator_may_change_meanwhile() -> None:
    """It is loading, or another one has become the leader before the answer."""
    coordinator = Coordinator()
    coordinator.ask(INIT)
    coordinator.known = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert coordinator.ask(ADD) == []
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(END) == []
    coordinator = Coordinator()
    coordinator.ask(INIT)
    on_answer: Any = coordinator.witness(ADD_OFFSETS)
    coordinator.leader_epoch = coordinator.home.leader_epoch = 6
    on_answer(SimpleNamespace(error_code=0))
    coordinator.has(TransactionState.PREPARE_ABORT, epoch=3)
    assert coordinator.ask(END) == []


@pytest.mark.parametrize("after_s", [1.5, 2.5])
@pytest.mark.parametrize("last", [INIT, END])
def test_a_transactional_id_is_kept(last: Any, after_s: float) -> None:
    """Its last use is an InitProducerId, or the end of a transaction."""
    coordinator = Coordinator()
    coordinator.begins(ADD)
    coordinator.now_s += 5
    assert coordinator.ask(last) == []
    coordinator.known = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    coordinator.now_s += after_s
    assert coordinator.ask(ADD, code=49) == (["transactional-id-kept"] if after_s < 2 else [])
    coordinator.home.role = Role.FOLLOWER
    assert coordinator.ask(ADD, code=49) == []


@pytest.mark.parametrize("code", [0, 51])
def test_only_what_changes_a_transactional_id_keeps_it(code: int) -> None:
    """A request that is refused, and the repeated end of a transaction, do not."""
    coordinator = Coordinator()
    coordinator.begins(ADD)
    if code == 0:
        coordinator.has(TransactionState.COMPLETE_COMMIT)
    coordinator.now_s += 5
    assert coordinator.ask(END, code) == []
    coordinator.known = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert coordinator.ask(ADD, code=49) == []


def test_a_coordinator_has_the_timeout_of_the_producer() -> None:
    """The request after the InitProducerId shows it."""
    coordinator = Coordinator()
    assert coordinator.ask(InitProducerIdRequest("t", 3000)) == []
    assert coordinator.ask(ADD) == ["aborted-after-timeout"]
    assert coordinator.ask(INIT) == ["aborted-after-timeout"]
    assert coordinator.ask(ADD) == []
