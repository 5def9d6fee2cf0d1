"""Passes the transactions of simulated coordinators to `checkers.invariants.transaction_times`."""

from collections.abc import Callable
from typing import Any

from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.node.broker import Broker
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from checkers.invariants.coordinated import ONGOING
from checkers.invariants.transaction_times import TransactionTimes
from model.violation import Violation

OnAnswer = Callable[[Any], None]


class TimeoutWitness:
    """Sees the requests of transactional producers to one life of a broker, and their answers.

    Args:
        number: the broker's id.
        broker: the broker.
        times: what all brokers have answered.
        is_steady: whether the wall clocks of all brokers are right.
        now_ns: returns the history's time.
        report: is called with each violation.
    """

    def __init__(
        self,
        number: int,
        broker: Broker,
        times: TransactionTimes,
        *,
        is_steady: bool,
        now_ns: Callable[[], int],
        report: Callable[[Violation], None],
    ) -> None:
        self._number = number
        self._broker = broker
        self._times = times
        self._is_steady = is_steady
        self._now_ns = now_ns
        self._report = report

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case _ if not self._is_steady:
                return None
            case InitProducerIdRequest() if request.transactional_id:
                self._look(request.transactional_id)
                self._times.initializes(request.transactional_id)
                return lambda answer: self._initialized(request, answer)
            case EndTxnRequest():
                self._look(request.transactional_id)
                self._times.ends(request.transactional_id)
                return None
            case AddPartitionsToTxnRequest() if not request.transactions:
                return self._add(
                    request.v3_and_below_transactional_id,
                    (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
                    _has_added,
                )
            case AddOffsetsToTxnRequest():
                producer = request.producer_id, request.producer_epoch
                return self._add(
                    request.transactional_id, producer, lambda answer: not answer.error_code
                )
            case _:
                return None

    def _look(self, name: str) -> Metadata | None:
        """Judge a transactional id when a request arrives; return it, if it is known here."""
        found = self._broker.transactions.describe(name)
        if not isinstance(found, Metadata):
            return None
        current = found.producer_id, found.producer_epoch
        why = self._times.judge(name, *current, self._leader_epoch(name), self._now_ns())
        if why is not None:
            self._report(
                Violation(
                    invariant="aborted-after-timeout",
                    time_ns=self._now_ns(),
                    brokers=(self._number,),
                    why=f"broker {self._number}, {name}: {why}",
                )
            )
        return found

    def _leader_epoch(self, name: str) -> int:
        home = self._broker.transactions.partition_of(name)
        return self._broker.replicas.leader_epoch(home)

    def _initialized(self, request: InitProducerIdRequest, answer: Any) -> None:
        producer = -1 if answer.error_code else answer.producer_id
        self._times.initialized(
            request.transactional_id or "",
            producer,
            answer.producer_epoch,
            request.transaction_timeout_ms,
        )

    def _add(self, name: str, producer: tuple[int, int], is_ok: Callable[[Any], bool]) -> OnAnswer:
        was, epoch = self._look(name), self._leader_epoch(name)
        begins = was is not None and (
            was.state.name != ONGOING or (was.producer_id, was.producer_epoch) != producer
        )
        added = self._times.adds(name, self._now_ns())

        def on_answer(answer: Any) -> None:
            who = producer if is_ok(answer) else (-1, -1)
            is_same = self._leader_epoch(name) == epoch
            self._times.added(added, *who, epoch, begins=begins and is_same)

        return on_answer


def _has_added(answer: Any) -> bool:
    """Whether all partitions were added: all of them are, or none."""
    return not any(
        row.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    )
