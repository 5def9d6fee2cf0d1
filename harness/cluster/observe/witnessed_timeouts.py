"""Passes the transactions of simulated coordinators to `checkers.invariants.transaction_times`."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.errors import ErrorCode
from broker_impl.node.broker import Broker
from broker_impl.replica.partition import Partition
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from checkers.invariants.coordinated import ONGOING
from checkers.invariants.transaction_times import Answered, Coordinator, TransactionTimes
from harness.cluster.observe.coordinator_logs import epoch_at, last_before, led
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class _Arrived(NamedTuple):
    """A request for a transactional id, when it arrives."""

    name: str
    at_ns: int
    leader_epoch: int


class TimeoutWitness:
    """Sees the requests of transactional producers to one life of a broker, and their answers.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        times: what all brokers have answered.
        is_steady: whether the wall clocks of all brokers are right.
    """

    def __init__(
        self,
        reporter: Reporter,
        broker: Broker,
        times: TransactionTimes,
        *,
        is_steady: bool,
    ) -> None:
        self._reporter = reporter
        self._broker = broker
        self._times = times
        self._is_steady = is_steady
        self._now_ns = reporter.now_ns

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case _ if not self._is_steady:
                return None
            case InitProducerIdRequest() if request.transactional_id:
                self._look(request.transactional_id)
                self._times.initializes(request.transactional_id)
                arrived = self._arrived(request.transactional_id)
                return lambda answer: self._initialized(request, arrived, answer)
            case EndTxnRequest():
                was = self._look(request.transactional_id)
                self._times.ends(request.transactional_id)
                if was is None or was.state.name != ONGOING:
                    return None
                arrived = self._arrived(request.transactional_id)

                def ended(answer: Any) -> None:
                    self._used(arrived, is_ok=not answer.error_code)

                return ended
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
            if found is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                self._judge_forgotten(name)
            return None
        current, coordinator = (found.producer_id, found.producer_epoch), self._coordinator(name)
        if coordinator is not None:
            why = self._times.judge(name, *current, coordinator, self._now_ns())
            why = why or self._times.judge_timeout(name, *current, found.timeout_ms, coordinator)
            self._found("aborted-after-timeout", name, why)
        return found

    def _coordinator(self, name: str) -> Coordinator | None:
        home = self._home(name)
        return None if home is None else Coordinator(home.leader_epoch, partial(epoch_at, home))

    def _judge_forgotten(self, name: str) -> None:
        coordinator = self._coordinator(name)
        if coordinator is not None:
            expiration_ms = self._broker.config.transactional_id_expiration_ms
            why = self._times.judge_forgotten(name, coordinator, expiration_ms, self._now_ns())
            self._found("transactional-id-kept", name, why)

    def _arrived(self, name: str) -> _Arrived:
        return _Arrived(name, self._now_ns(), self._leader_epoch(name))

    def _answered(self, arrived: _Arrived, *, is_ok: bool) -> Answered | None:
        """Return who answers a request, None if it is refused or the coordinator was replaced."""
        home = self._home(arrived.name)
        if not is_ok or home is None or home.leader_epoch != arrived.leader_epoch:
            return None
        last = last_before(home, home.high_watermark)
        return None if last is None else Answered(arrived.leader_epoch, last)

    def _used(self, arrived: _Arrived, *, is_ok: bool) -> Answered | None:
        """A request is answered from which on the expiration of the transactional id counts."""
        answered = self._answered(arrived, is_ok=is_ok)
        if answered is not None:
            self._times.used(arrived.name, arrived.at_ns, answered)
        return answered

    def _home(self, name: str) -> Partition | None:
        """Return the partition of a transactional id, if this broker leads it."""
        return led(self._broker, self._broker.transactions.partition_of(name))

    def _leader_epoch(self, name: str) -> int:
        home = self._broker.transactions.partition_of(name)
        return self._broker.replicas.leader_epoch(home)

    def _initialized(self, request: InitProducerIdRequest, arrived: _Arrived, answer: Any) -> None:
        self._times.initialized(
            request.transactional_id or "",
            answer.producer_id,
            answer.producer_epoch,
            request.transaction_timeout_ms,
            self._used(arrived, is_ok=not answer.error_code),
        )

    def _add(self, name: str, producer: tuple[int, int], is_ok: Callable[[Any], bool]) -> OnAnswer:
        was, arrived = self._look(name), self._arrived(name)
        begins = was is not None and (
            was.state.name != ONGOING or (was.producer_id, was.producer_epoch) != producer
        )
        added = self._times.adds(name, self._now_ns())

        def on_answer(answer: Any) -> None:
            answered = self._answered(arrived, is_ok=is_ok(answer))
            self._times.added(added, *producer, answered, begins=begins)

        return on_answer

    def _found(self, invariant: str, name: str, why: str | None) -> None:
        self._reporter.found(invariant, why, about=name)


def _has_added(answer: Any) -> bool:
    """Whether all partitions were added: all of them are, or none."""
    return not any(
        row.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    )
