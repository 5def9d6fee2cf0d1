"""How a broker loads and unloads the groups of a partition."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.coordinator import partitioner, records
from broker_impl.coordinator.groups.events import Commit, Heartbeat, Join, Leave
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.errors import StorageError
from broker_impl.node.coordinators.group_coordinator import GroupsRuntime
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.conftest import until

GROUP = "g"
HOME = TopicPartition(records.TOPIC, partitioner.partition_of(GROUP, 50))
TP = TopicPartition("t", 0)


def batch_of(at: int, offset: int, **fields: Any) -> bytes:
    """Encode a commit of ``offset`` for ``TP`` as a batch of the log."""
    key = records.encode_offset_key(GROUP, TP)
    row = Record(key, records.encode_offset(Committed(offset)), 0)
    return batch.encode_batch([row], base_offset=at, **fields)


def marker(at: int, producer_id: int, *, is_commit: bool) -> bytes:
    """Encode a transaction marker as a batch of the log."""
    row = Record(b"\0\0\0" + bytes([is_commit]), b"\0\0\0\0\0\0", 0)
    return batch.encode_batch(
        [row],
        base_offset=at,
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )


class Log:
    """A partition and its log: the two objects that the runtime uses, in one."""

    def __init__(self, *batches: bytes) -> None:
        self.batches = list(batches)
        self.is_committed = asyncio.Event()
        self.leader_epoch = 1
        self.between: Callable[[], None] = lambda: None
        """Called after each batch that is read."""
        self.told: list[Callable[[E, int], None]] = []

    async def read(
        self, tp: TopicPartition, leader_epoch: int
    ) -> AsyncIterator[tuple[BatchHeader, list[Record]]]:
        for data in tuple(self.batches):
            if leader_epoch != self.leader_epoch:
                return
            yield batch.parse_header(data), batch.records(data)
            self.between()
            await asyncio.sleep(0)
        await self.is_committed.wait()

    def append(self, tp: Any, epoch: int, rows: Any, done: Any, **fields: Any) -> None:
        self.told.append(done)


class Office:
    """A broker's groups runtime over one log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.failures: list[BaseException] = []
        config = configuration.parse(
            {
                "broker.id": "1",
                "zookeeper.connect": "z:1",
                "group.initial.rebalance.delay.ms": "0",
            }
        )
        self.runtime = GroupsRuntime(
            config,
            log,  # type: ignore[arg-type]  # what it asks of a log is here
            rng=random.Random(1),
            wall_ms=lambda: 0,
            on_failure=self.failures.append,
        )

    def error(self) -> E:
        found = self.runtime.find(GROUP)
        return found if isinstance(found, E) else E.NONE

    def committed(self) -> int | None:
        found = self.runtime.find(GROUP)
        assert found is not None
        assert not isinstance(found, E)
        kept = found.offsets.get(TP)
        return None if kept is None else kept.offset

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def office_of() -> AsyncIterator[Callable[..., Office]]:
    made: list[Office] = []

    def make(*batches: bytes, is_committed: bool = True) -> Office:
        made.append(Office(Log(*batches)))
        if is_committed:
            made[-1].log.is_committed.set()
        return made[-1]

    yield make
    for office in made:
        await office.runtime.close()
        assert office.failures == []


async def test_nothing_is_told_before_it_is_committed(office_of: Any) -> None:
    """Offsets are not returned before they are committed: the load ends only then.

    Until then the answer is COORDINATOR_LOAD_IN_PROGRESS, because records that were read may be
    lost.
    """
    office = office_of(batch_of(0, 5), batch_of(1, 6), is_committed=False)
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.error() is E.COORDINATOR_LOAD_IN_PROGRESS
    office.log.is_committed.set()
    await office.settle()
    assert office.committed() == 6


async def test_compaction_may_leave_no_marker_in_a_marker_batch(office_of: Any) -> None:
    """KAFKA-7467: a marker batch that compaction emptied is skipped.

    It remains only to keep the state of its producer.
    """
    whole = marker(1, 7, is_commit=True)
    left = batch.with_only(batch.parse_header(whole), [])
    office = office_of(batch_of(0, 5), left, batch_of(2, 6))
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.committed() == 6


async def test_a_new_epoch_while_reading_reads_anew(office_of: Any) -> None:
    """A new leader epoch during a load starts the load again.

    Otherwise half a log would be taken for all of it.
    """
    office = office_of(batch_of(0, 5), batch_of(1, 6))

    def next_epoch() -> None:
        office.log.between = lambda: None
        office.log.leader_epoch = 2
        office.runtime.taken(HOME, 2)

    office.log.between = next_epoch
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.committed() == 6


async def test_losing_office_while_reading(office_of: Any) -> None:
    """Losing the partition during a load drops what was read; the next load starts over."""
    office = office_of(batch_of(0, 5), is_committed=False)
    office.runtime.taken(HOME, 1)
    await office.settle()
    office.runtime.lost(HOME)
    assert office.error() is E.NOT_COORDINATOR
    office.log.is_committed.set()
    office.log.leader_epoch = 3
    office.runtime.taken(HOME, 3)
    await office.settle()
    assert office.committed() == 5


async def test_transactions_in_the_log(office_of: Any) -> None:
    """A load applies committed transactions, drops aborted ones, and keeps open ones pending."""
    transactional = {"producer_epoch": 0, "transactional": True}
    office = office_of(
        batch_of(0, 5, producer_id=7, **transactional),
        marker(1, 7, is_commit=True),
        batch_of(2, 6, producer_id=8, **transactional),
        marker(3, 8, is_commit=False),
        batch_of(4, 9, producer_id=9, **transactional),
    )
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.committed() == 5
    office.runtime.marked(HOME.partition, 9, 5, is_commit=True)
    assert office.committed() == 9


async def test_a_request_is_answered_now_or_later(office_of: Any) -> None:
    """A request is answered at once if it needs no write, and a commit when it is written.

    A cancelled request is not answered.
    """
    office = office_of()
    office.runtime.taken(HOME, 1)
    await office.settle()

    def beat(ticket: int) -> Heartbeat:
        return Heartbeat(ticket=ticket, member_id="m", generation=1)

    def commit(ticket: int) -> Commit:
        return Commit(ticket=ticket, offsets={TP: Committed(5)})

    assert office.runtime.ask(GROUP, beat, lambda error: error) is E.UNKNOWN_MEMBER_ID
    answer = office.runtime.ask(GROUP, commit, lambda error: SimpleNamespace(error=error))
    given_up = office.runtime.ask(GROUP, commit, lambda error: error)
    given_up.cancel()
    await office.settle()
    assert not answer.done()
    for number, done in enumerate(office.log.told):
        done(E.NONE, number)
    assert (await answer).error is E.NONE
    assert office.committed() == 5


async def test_a_failure_while_time_passes_ends_the_broker(office_of: Any) -> None:
    """A disk error at a member's deadline ends the broker, since no connection could report it."""
    office = office_of()
    office.runtime.taken(HOME, 1)
    await office.settle()
    failure = StorageError("no space left")

    def refuse(*ignored: Any, **named: Any) -> None:
        raise failure

    office.log.append = refuse
    office.runtime.ask(
        GROUP,
        lambda ticket: Join(ticket=ticket, member_id="", fresh_id="m", protocols=(("range", b""),)),
        lambda answer: answer,
    )
    office.runtime.ask(
        GROUP, lambda ticket: Leave(ticket=ticket, members=(("m", None),)), lambda answer: answer
    )
    await until(lambda: bool(office.failures))
    assert office.failures == [failure]
    office.failures.clear()


async def test_fresh_ids(office_of: Any) -> None:
    """A fresh member id is the client id and a unique suffix."""
    office = office_of()
    one, two = office.runtime.fresh_id("c"), office.runtime.fresh_id("c")
    assert one != two
    assert one.startswith("c-")
    assert len(one) == len("c-") + 36
