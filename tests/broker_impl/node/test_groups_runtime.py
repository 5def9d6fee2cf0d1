"""How a broker takes over the groups of a partition, and gives them up."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl import config as configuration
from broker_impl.api.waiting import Waiting
from broker_impl.coordinator import placing, records
from broker_impl.coordinator.groups.events import Commit, Heartbeat
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.node.groups import GroupsRuntime
from broker_impl.node.tasks import Tasks
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition

GROUP = "g"
HOME = TopicPartition(records.TOPIC, placing.partition_of(GROUP, 50))
TP = TopicPartition("t", 0)


def batch_of(at: int, offset: int, **fields: Any) -> bytes:
    """A commit of ``offset`` for ``TP``, as it lies in the log."""
    key = records.encode_offset_key(GROUP, TP)
    row = Record(key, records.encode_offset(Committed(offset)), 0)
    return batch.encode_batch([row], base_offset=at, **fields)


def marker(at: int, producer_id: int, *, is_commit: bool) -> bytes:
    """The end of a transaction."""
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
    """A partition and its log, as the runtime sees them through two objects."""

    def __init__(self, *batches: bytes) -> None:
        self.batches = list(batches)
        self.high_watermark = 0
        self.partitions = {HOME: self}
        self.leader_epoch = 1
        self.between: Callable[[], None] = lambda: None
        """Happens after each batch that is read."""
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

    def append(self, tp: Any, epoch: int, rows: Any, done: Any, **fields: Any) -> None:
        self.told.append(done)


class Office:
    """A broker's part in groups, over one log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.waiting = Waiting()
        self.failures: list[BaseException] = []
        self.tasks = Tasks(self.failures.append)
        config = configuration.parse({"broker.id": "1", "zookeeper.connect": "z:1"})
        self.runtime = GroupsRuntime(
            config,
            log,  # type: ignore[arg-type]  # what it asks of both is here
            log,  # type: ignore[arg-type]
            self.waiting,
            self.tasks,
            rng=random.Random(1),
            wall_ms=lambda: 0,
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

    def make(*batches: bytes) -> Office:
        made.append(Office(Log(*batches)))
        return made[-1]

    yield make
    for office in made:
        office.runtime.close()
        office.tasks.cancel()
        await office.tasks.ended()
        assert office.failures == []


async def test_nothing_is_told_before_it_is_committed(office_of: Any) -> None:
    """What was read may yet be lost: "loading" until the high watermark has passed it."""
    office = office_of(batch_of(0, 5), batch_of(1, 6))
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.error() is E.COORDINATOR_LOAD_IN_PROGRESS
    office.log.high_watermark = 1
    office.waiting.poke(HOME)
    await office.settle()
    assert office.error() is E.COORDINATOR_LOAD_IN_PROGRESS
    office.log.high_watermark = 2
    office.waiting.poke(HOME)
    await office.settle()
    assert office.committed() == 6


async def test_a_new_epoch_while_reading_reads_anew(office_of: Any) -> None:
    """Half a log would be taken for all of it."""
    office = office_of(batch_of(0, 5), batch_of(1, 6))
    office.log.high_watermark = 2

    def next_epoch() -> None:
        office.log.between = lambda: None
        office.log.leader_epoch = 2
        office.runtime.taken(HOME, 2)

    office.log.between = next_epoch
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.committed() == 6


async def test_losing_office_while_reading(office_of: Any) -> None:
    """Nothing of it is left, and taking office again begins anew."""
    office = office_of(batch_of(0, 5))
    office.runtime.taken(HOME, 1)
    await office.settle()
    office.runtime.lost(HOME)
    assert office.error() is E.NOT_COORDINATOR
    office.log.high_watermark, office.log.leader_epoch = 1, 3
    office.runtime.taken(HOME, 3)
    await office.settle()
    assert office.committed() == 5


async def test_transactions_in_the_log(office_of: Any) -> None:
    """Committed, aborted and open ones are told apart by their markers."""
    transactional = {"producer_epoch": 0, "transactional": True}
    office = office_of(
        batch_of(0, 5, producer_id=7, **transactional),
        marker(1, 7, is_commit=True),
        batch_of(2, 6, producer_id=8, **transactional),
        marker(3, 8, is_commit=False),
        batch_of(4, 9, producer_id=9, **transactional),
    )
    office.log.high_watermark = 5
    office.runtime.taken(HOME, 1)
    await office.settle()
    assert office.committed() == 5
    office.runtime.marked(HOME.partition, 9, is_commit=True)
    assert office.committed() == 9


async def test_a_request_is_answered_now_or_later(office_of: Any) -> None:
    """What needs no write at once, a commit when it is written, and who hung up not at all."""
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


async def test_fresh_ids(office_of: Any) -> None:
    """Begin with what the client calls itself, and are never the same."""
    office = office_of()
    one, two = office.runtime.fresh_id("c"), office.runtime.fresh_id("c")
    assert one != two
    assert one.startswith("c-")
    assert len(one) == len("c-") + 36
