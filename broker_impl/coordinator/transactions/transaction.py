"""One transactional id as a state machine: `handle` takes an event and returns effects.

A change takes effect only once it is stored: it is written first, and the next request is answered
CONCURRENT_TRANSACTIONS until then. A stored decision is always carried out: markers are sent until
all partitions have theirs, and then the completion is stored, too.

A producer is fenced with an epoch that its successor never gets: the epoch under which its
transaction is aborted. That epoch counts from the moment of fencing. If it cannot be written, the
next attempt uses the same one; otherwise a failing log would use up the epochs (KAFKA-9666).

Stricter than Kafka 2.8: a producer that sends an old epoch is fenced at once, even while its
successor has a transaction open, which Kafka would abort first.
"""

from collections.abc import Callable
from typing import assert_never

import msgspec

from broker_impl.coordinator import transaction_records
from broker_impl.coordinator.transactions import rules, states
from broker_impl.coordinator.transactions.events import (
    AddPartitions,
    Answered,
    Effect,
    End,
    Event,
    Forgotten,
    InitAnswer,
    InitProducerId,
    Marked,
    Resume,
    SendMarkers,
    Tick,
    Unload,
    Write,
    Written,
)
from broker_impl.coordinator.transactions.metadata import NO_EPOCH, NO_ID, Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch, TopicPartition


class _Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is being written."""

    number: int
    metadata: Metadata
    request: InitProducerId | AddPartitions | End | None
    answer: InitAnswer | ErrorCode
    """The answer to the request once the change is stored."""
    fences: bool


class Transaction:
    """The coordinator's state machine for one transactional id; see the module."""

    def __init__(
        self, transactional_id: str, metadata: Metadata, next_number: Callable[[], int]
    ) -> None:
        """Create the state machine of one id.

        ``next_number`` returns the numbers of writes, each used once per coordinator.
        """
        self.transactional_id = transactional_id
        self.metadata = metadata
        """The stored state; but while a producer is being fenced, its epoch is ahead of the stored
        one."""
        self._next_number = next_number
        self._pending: _Pending | None = None
        self._unmarked: dict[TopicPartition, None] = {}
        self._failed_to_fence = False

    @property
    def is_blank(self) -> bool:
        """Has nothing ever been stored for this id?"""
        return self.metadata.producer_epoch == NO_EPOCH and self._pending is None

    # Events.

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; ``now_ms`` is the wall clock."""
        effects: list[Effect] = []
        match event:
            case InitProducerId():
                self._init(event, now_ms, effects)
            case AddPartitions():
                self._add(event, now_ms, effects)
            case End():
                self._end(event, now_ms, effects)
            case Written():
                self._written(event, now_ms, effects)
            case Marked():
                self._marked(event, now_ms, effects)
            case Resume():
                if rules.goes_on_after_loading(self.metadata.state):
                    self._carry_out(now_ms, effects)
            case Tick():
                self._tick(event, now_ms, effects)
            case Unload():
                self._unload(effects)
            case _:
                assert_never(event)
        self.check()
        return effects

    @property
    def unmarked(self) -> tuple[TopicPartition, ...]:
        """The partitions that have no marker yet, although the transaction is decided."""
        return tuple(self._unmarked)

    def check(self) -> None:
        """Check the invariants that hold after each event."""
        metadata, name = self.metadata, self.transactional_id
        assert self._unmarked.keys() <= set(metadata.partitions), (
            f"{name}: a marker is pending for a partition outside of the transaction"
        )
        assert not self._unmarked or states.is_decided(metadata.state), (
            f"{name}: markers are pending, but the transaction is neither committing nor aborting"
        )
        assert metadata.producer_epoch <= rules.EPOCH_LAST, (
            f"{name}: the producer epoch is too large"
        )
        assert bool(metadata.partitions) <= (not states.is_at_rest(metadata.state)), (
            f"{name}: the transaction is {metadata.state.name}, but has partitions"
        )

    # Requests.

    def needs_id(self, expected: Epoch) -> bool:
        """Would an InitProducerId with this epoch use a new producer id?"""
        return (
            self._pending is None
            and states.is_at_rest(self.metadata.state)
            and rules.is_id_needed(self.metadata, expected)
        )

    def _init(self, event: InitProducerId, now_ms: int, effects: list[Effect]) -> None:
        metadata = self.metadata
        expected = event.producer_epoch
        if self._pending is not None or states.is_decided(metadata.state):
            _refuse(event, ErrorCode.CONCURRENT_TRANSACTIONS, effects)
        elif event.producer_id != NO_ID and not rules.is_known_producer(
            metadata, event.producer_id, expected
        ):
            _refuse(event, ErrorCode.PRODUCER_FENCED, effects)
        elif metadata.state is TransactionState.ONGOING:
            if rules.bumped(metadata, expected) is None:
                _refuse(event, ErrorCode.PRODUCER_FENCED, effects)
            else:
                self._fence(now_ms, effects, event)
        elif rules.is_id_needed(metadata, expected):
            self._take_new_id(event, now_ms, effects)
        else:
            self._take_next_epoch(event, now_ms, effects)

    def _take_new_id(self, event: InitProducerId, now_ms: int, effects: list[Effect]) -> None:
        if event.fresh_id is None:  # `needs_id` said no earlier; the client tries again
            _refuse(event, ErrorCode.CONCURRENT_TRANSACTIONS, effects)
            return
        metadata = self.metadata
        repeatable = event.producer_epoch != NO_EPOCH and metadata.producer_id != NO_ID
        self._begin(
            Metadata(
                producer_id=event.fresh_id,
                producer_epoch=0,
                last_producer_id=metadata.producer_id if repeatable else NO_ID,
                last_producer_epoch=metadata.producer_epoch if repeatable else NO_EPOCH,
                timeout_ms=rules.timeout_ms(metadata, event.timeout_ms),
                updated_ms=now_ms,
            ),
            effects,
            event,
            InitAnswer(producer_id=event.fresh_id, producer_epoch=0),
        )

    def _take_next_epoch(self, event: InitProducerId, now_ms: int, effects: list[Effect]) -> None:
        metadata = self.metadata
        bumped = rules.bumped(metadata, event.producer_epoch)
        if bumped is None:
            _refuse(event, ErrorCode.PRODUCER_FENCED, effects)
            return
        epoch, last = bumped
        self._begin(
            Metadata(
                producer_id=metadata.producer_id,
                producer_epoch=epoch,
                last_producer_id=metadata.last_producer_id,
                last_producer_epoch=last,
                timeout_ms=rules.timeout_ms(metadata, event.timeout_ms),
                updated_ms=now_ms,
            ),
            effects,
            event,
            InitAnswer(producer_id=metadata.producer_id, producer_epoch=epoch),
        )

    def _add(self, event: AddPartitions, now_ms: int, effects: list[Effect]) -> None:
        metadata = self.metadata
        error = rules.refuse_client(metadata, event.producer_id, event.producer_epoch)
        if error is ErrorCode.NONE:
            error = self._busy() or rules.on_add(metadata.state)
        if error is not ErrorCode.NONE:
            _refuse(event, error, effects)
            return
        is_ongoing = metadata.state is TransactionState.ONGOING
        known = metadata.partitions if is_ongoing else ()
        added = rules.with_added(known, event.partitions)
        if is_ongoing and len(added) == len(known):
            effects.append(Answered(event.ticket, ErrorCode.NONE))
            return
        changed = msgspec.structs.replace(
            metadata,
            state=TransactionState.ONGOING,
            partitions=added,
            started_ms=rules.begun_ms(metadata, now_ms),
            updated_ms=now_ms,
        )
        self._begin(changed, effects, event, ErrorCode.NONE)

    def _end(self, event: End, now_ms: int, effects: list[Effect]) -> None:
        error: ErrorCode | None
        error = rules.refuse_client(self.metadata, event.producer_id, event.producer_epoch)
        if error is ErrorCode.NONE:
            error = self._busy() or rules.on_end(self.metadata.state, event.is_commit)
        if error is not None:
            effects.append(Answered(event.ticket, error))
            return
        self._decide(event.is_commit, now_ms, effects, event, ErrorCode.NONE)

    def _busy(self) -> ErrorCode:
        """Reject a request while another change is being written."""
        return ErrorCode.NONE if self._pending is None else ErrorCode.CONCURRENT_TRANSACTIONS

    # Changes.

    def _begin(
        self,
        changed: Metadata,
        effects: list[Effect],
        request: InitProducerId | AddPartitions | End | None = None,
        answer: InitAnswer | ErrorCode = ErrorCode.NONE,
        *,
        fences: bool = False,
    ) -> None:
        """Start to write a change, and remember the request that it answers."""
        former = TransactionState.PREPARE_EPOCH_FENCE if fences else self.metadata.state
        assert self._pending is None, (
            f"{self.transactional_id}: the transaction has two pending changes"
        )
        assert states.may_follow(changed.state, former), (
            f"{self.transactional_id}: {changed.state.name} after {former.name}"
        )
        number = self._next_number()
        self._pending = _Pending(
            number=number, metadata=changed, request=request, answer=answer, fences=fences
        )
        is_last = changed.state is TransactionState.DEAD
        effects.append(
            Write(
                transactional_id=self.transactional_id,
                number=number,
                key=transaction_records.encode_key(self.transactional_id),
                value=None if is_last else transaction_records.encode_value(changed),
            )
        )

    def _decide(
        self,
        is_commit: bool,
        now_ms: int,
        effects: list[Effect],
        request: InitProducerId | End | None,
        answer: InitAnswer | ErrorCode,
        *,
        fences: bool = False,
    ) -> None:
        decided = msgspec.structs.replace(
            self.metadata,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            updated_ms=now_ms,
        )
        self._begin(decided, effects, request, answer, fences=fences)

    def _fence(
        self, now_ms: int, effects: list[Effect], request: InitProducerId | None = None
    ) -> None:
        """Abort the open transaction under a new epoch that no producer ever gets."""
        assert states.may_follow(TransactionState.PREPARE_EPOCH_FENCE, self.metadata.state), (
            f"{self.transactional_id}: a transaction that is {self.metadata.state.name} "
            "cannot be fenced"
        )
        if not self._failed_to_fence:
            self.metadata = msgspec.structs.replace(
                self.metadata,
                producer_epoch=rules.fenced(self.metadata.producer_epoch),
                last_producer_epoch=NO_EPOCH,
            )
        # The producer retries, and gets its epoch once the abort is complete.
        answer = InitAnswer(error=ErrorCode.CONCURRENT_TRANSACTIONS)
        self._decide(False, now_ms, effects, request, answer, fences=True)

    def _written(self, event: Written, now_ms: int, effects: list[Effect]) -> None:
        pending = self._pending
        if pending is None or pending.number != event.number:
            return
        if rules.gives_way(event.error):
            self._pending = None
        if event.error is not ErrorCode.NONE:
            self._failed_to_fence |= pending.fences
            if pending.request is not None:
                _refuse(pending.request, rules.written(event.error), effects)
            return
        self.metadata = pending.metadata
        if pending.fences:
            self._failed_to_fence = False
        if pending.metadata.state is TransactionState.DEAD:
            effects.append(Forgotten(self.transactional_id))
            return
        if pending.request is not None:
            effects.append(Answered(pending.request.ticket, pending.answer))
        self._carry_out(now_ms, effects)

    def _carry_out(self, now_ms: int, effects: list[Effect]) -> None:
        """Send the decision's markers to each partition."""
        metadata = self.metadata
        if not states.is_decided(metadata.state):
            return
        self._unmarked = dict.fromkeys(rules.to_mark(metadata.partitions))
        if not self._unmarked:
            self._complete(now_ms, effects)
            return
        effects.append(
            SendMarkers(
                transactional_id=self.transactional_id,
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                is_commit=metadata.state is TransactionState.PREPARE_COMMIT,
                partitions=tuple(self._unmarked),
            )
        )

    def _marked(self, event: Marked, now_ms: int, effects: list[Effect]) -> None:
        metadata = self.metadata
        is_ours = (event.producer_id, event.producer_epoch) == (
            metadata.producer_id,
            metadata.producer_epoch,
        )
        # With another epoch, it is the late answer to a marker of an earlier transaction.
        if is_ours and event.partition in self._unmarked:
            del self._unmarked[event.partition]
            if not self._unmarked:
                self._complete(now_ms, effects)

    def _complete(self, now_ms: int, effects: list[Effect]) -> None:
        committed = self.metadata.state is TransactionState.PREPARE_COMMIT
        done = msgspec.structs.replace(
            self.metadata,
            state=TransactionState.COMPLETE_COMMIT
            if committed
            else TransactionState.COMPLETE_ABORT,
            partitions=(),
            updated_ms=now_ms,
        )
        self._begin(done, effects)

    # Timeouts and unloading.

    def _tick(self, event: Tick, now_ms: int, effects: list[Effect]) -> None:
        if self._pending is not None:
            return
        if rules.is_to_complete(self.metadata.state, self._unmarked):
            self._complete(now_ms, effects)
        elif rules.is_timed_out(self.metadata, now_ms):
            self._fence(now_ms, effects)
        elif rules.may_expire(self.metadata, now_ms, event.expiration_ms):
            self._begin(
                msgspec.structs.replace(self.metadata, state=TransactionState.DEAD), effects
            )

    def _unload(self, effects: list[Effect]) -> None:
        pending, self._pending = self._pending, None
        self._unmarked = {}
        if pending is not None and pending.request is not None:
            _refuse(pending.request, ErrorCode.NOT_COORDINATOR, effects)

    # Queries.

    def verify(
        self, producer_id: int, producer_epoch: Epoch, partitions: tuple[TopicPartition, ...]
    ) -> dict[TopicPartition, ErrorCode]:
        """Is the transaction of this producer open, and are these part of it (KIP-890)?"""
        error = rules.refuse_client(self.metadata, producer_id, producer_epoch)
        if error is ErrorCode.NONE and states.is_decided(self.metadata.state):
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error is not ErrorCode.NONE:
            return dict.fromkeys(partitions, error)
        return {
            tp: ErrorCode.NONE if tp in self.metadata.partitions else ErrorCode.INVALID_TXN_STATE
            for tp in partitions
        }


def _refuse(
    request: InitProducerId | AddPartitions | End, error: ErrorCode, effects: list[Effect]
) -> None:
    effects.append(Answered(request.ticket, request.refused(error)))
