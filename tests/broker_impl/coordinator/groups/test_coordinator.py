import itertools
from collections.abc import Callable
from typing import Any

import pytest

from broker_impl.coordinator import partitioner, records
from broker_impl.coordinator.groups.coordinator import Groups, office_error
from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Delete,
    DeleteOffsets,
    Effect,
    Heartbeat,
    Join,
    Leave,
    Marked,
    Request,
    Sync,
    Tick,
    Write,
    Written,
)
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import RANGE

PARTITIONS = 5
TP = TopicPartition("t", 0)
GROUP = "g"
HOME = partitioner.partition_of(GROUP, PARTITIONS)


class Office:
    """The groups of a broker, and a log that survives a change of the coordinator."""

    def __init__(self) -> None:
        self.log: list[tuple[int, bytes, bytes | None, int]] = []
        """Rows of offset, key, value, and the producer id of the row's transaction (-1: none)."""
        self.marks: list[Marked] = []
        self.answers: dict[int, Any] = {}
        self.tickets = itertools.count(1)
        self.take()

    def take(self) -> None:
        """Move the partition to another broker, which has not read the log yet."""
        self.groups = Groups(GroupConfig(initial_rebalance_delay_ms=0), PARTITIONS)

    def load(self) -> None:
        loading = self.groups.begin_loading(HOME)
        for at, key, value, producer_id in self.log:
            loading.rows([(at, key, value)], producer_id)
        for marked in self.marks:
            loading.marker(marked.producer_id, marked.at, is_commit=marked.is_commit)
        self.groups.loaded(HOME, 0.0, 0)

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Answered):
                self.answers[effect.ticket] = effect.answer
            else:
                self.write(effect)

    def write(self, write: Write) -> None:
        at = len(self.log)
        self.log += [
            (at + number, key, value, write.producer_id)
            for number, (key, value) in enumerate(write.records)
        ]
        written = Written(number=write.number, error=E.NONE, offset=at)
        self.carry_out(self.groups.written(written, 0.0, 0))

    def ask(self, kind: Any, name: str = GROUP, **fields: Any) -> Any:
        ticket = next(self.tickets)
        self.carry_out(self.groups.handle(name, kind(ticket=ticket, **fields), 0.0, 0))
        return self.answers.get(ticket)

    def commit(self, offset: int, **fields: Any) -> E:
        return E(self.ask(Commit, offsets={TP: Committed(offset, 3, "so far")}, **fields))

    def mark(self, producer_id: int, *, is_commit: bool) -> None:
        marked = Marked(producer_id=producer_id, at=len(self.log), is_commit=is_commit)
        self.marks.append(marked)
        self.carry_out(self.groups.marked(HOME, marked, 0.0, 0))

    def committed(self) -> Committed | None:
        group = self.groups.find(GROUP)
        return None if group is None else group.offsets.get(TP)

    def join(self, **fields: Any) -> Any:
        given = {"member_id": "", "fresh_id": "m1", "protocols": RANGE}
        ticket = next(self.tickets)
        self.carry_out(self.groups.handle(GROUP, Join(ticket=ticket, **(given | fields)), 0.0, 0))
        self.carry_out(self.groups.pass_event(GROUP, Tick(), 0.0, 0))
        return self.answers.get(ticket)


@pytest.fixture
def office() -> Office:
    made = Office()
    made.load()
    return made


REQUESTS: list[Callable[[int], Request]] = [
    lambda ticket: Join(ticket=ticket, member_id="", fresh_id="m"),
    lambda ticket: Sync(ticket=ticket, member_id="m", generation=1),
    lambda ticket: Heartbeat(ticket=ticket, member_id="m", generation=1),
    lambda ticket: Leave(ticket=ticket, members=(("m", None),)),
    lambda ticket: Commit(ticket=ticket, offsets={}),
    lambda ticket: DeleteOffsets(ticket=ticket, partitions=()),
    lambda ticket: Delete(ticket=ticket),
]


@pytest.mark.parametrize("request_of", REQUESTS)
def test_nobody_answers_for_what_is_not_led_or_not_read(
    request_of: Callable[[int], Request],
) -> None:
    """A broker answers NOT_COORDINATOR for partitions it does not lead, and refuses while loading.

    The error while loading is COORDINATOR_LOAD_IN_PROGRESS. Heartbeats succeed meanwhile, and a
    member that asks for its assignment joins again: the rebalance is lost.
    """
    office = Office()

    def error() -> E:
        (told,) = office.groups.handle(GROUP, request_of(1), 0.0, 0)
        assert isinstance(told, Answered)
        return E(getattr(told.answer, "error", told.answer))

    assert error() is E.NOT_COORDINATOR
    office.groups.begin_loading(HOME)
    others = {Heartbeat: E.NONE, Sync: E.REBALANCE_IN_PROGRESS}
    assert error() is others.get(type(request_of(1)), E.COORDINATOR_LOAD_IN_PROGRESS)
    office.groups.loaded(HOME, 0.0, 0)
    office.groups.unload(HOME, 0.0, 0)
    assert error() is E.NOT_COORDINATOR


def test_office_error() -> None:
    """The error depends on whether the partition is loaded, loading, or led by another broker."""
    assert office_error(True, False) is E.NONE
    assert office_error(False, True) is E.COORDINATOR_LOAD_IN_PROGRESS
    assert office_error(False, False) is E.NOT_COORDINATOR


IN_TRANSACTION = {"generation": 1, "producer_id": 7, "producer_epoch": 0, "offsets": {}}


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        (Sync, {"member_id": "m", "generation": 1}, E.UNKNOWN_MEMBER_ID),
        (Heartbeat, {"member_id": "m", "generation": 1}, E.UNKNOWN_MEMBER_ID),
        (Commit, {"member_id": "m", "generation": 1, "offsets": {}}, E.ILLEGAL_GENERATION),
        (Commit, IN_TRANSACTION | {"member_id": "m"}, E.UNKNOWN_MEMBER_ID),
        (Commit, IN_TRANSACTION, E.ILLEGAL_GENERATION),
        (DeleteOffsets, {"partitions": ()}, E.GROUP_ID_NOT_FOUND),
        (Delete, {}, E.GROUP_ID_NOT_FOUND),
    ],
)
def test_of_a_group_that_is_not_there(
    office: Office, kind: Any, fields: dict[str, Any], error: E
) -> None:
    """Requests for an unknown group fail, and do not create it."""
    answer = office.ask(kind, **fields)
    assert getattr(answer, "error", answer) is error
    assert office.groups.find(GROUP) is None


def test_a_stranger_makes_no_group(office: Office) -> None:
    """A request with an unknown member id fails, and does not create a group."""
    assert office.join(member_id="m9").error is E.UNKNOWN_MEMBER_ID
    (row,) = office.ask(Leave, members=(("m", None),)).rows
    assert row == ("m", None, E.UNKNOWN_MEMBER_ID)
    assert office.groups.find(GROUP) is None


def test_a_group_without_a_name() -> None:
    """A group with the empty name can keep offsets, as old clients without a group did.

    It cannot have members.
    """
    office = Office()
    home = partitioner.partition_of("", PARTITIONS)
    office.groups.begin_loading(home)
    office.groups.loaded(home, 0.0, 0)
    joined = office.ask(Join, "", member_id="", fresh_id="m", protocols=RANGE)
    assert joined.error is E.INVALID_GROUP_ID
    assert office.ask(Commit, "", offsets={TP: Committed(1)}) is E.NONE


def test_the_next_coordinator_knows_what_was_committed(office: Office) -> None:
    """The next coordinator loads the last commit, with its metadata and leader epoch."""
    assert office.commit(5) is E.NONE
    assert office.commit(3) is E.NONE
    office.take()
    office.load()
    assert office.committed() == Committed(3, 3, "so far")


def test_the_next_coordinator_knows_the_members(office: Office) -> None:
    """The next coordinator loads the members, and serves them in their generation."""
    assert office.join().generation == 1
    synced = office.ask(Sync, member_id="m1", generation=1, assignments={"m1": b"mine"})
    assert synced.assignment == b"mine"
    office.take()
    office.load()
    assert office.ask(Heartbeat, member_id="m1", generation=1) is E.NONE
    assert office.ask(Sync, member_id="m1", generation=1).assignment == b"mine"
    assert office.commit(7, member_id="m1", generation=1) is E.NONE


def test_what_was_deleted_stays_deleted(office: Office) -> None:
    """Deleted offsets and deleted groups with their offsets stay deleted after a failover (F18)."""
    office.commit(5)
    office.ask(DeleteOffsets, partitions=(TP,))
    office.take()
    office.load()
    assert office.committed() is None
    office.commit(6)
    assert office.ask(Delete) is E.NONE
    assert office.groups.find(GROUP) is None
    office.take()
    office.load()
    assert office.groups.find(GROUP) is None
    assert office.commit(7) is E.NONE
    office.take()
    office.load()
    assert office.committed() == Committed(7, 3, "so far")


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_next_coordinator_knows_open_transactions(office: Office, is_commit: bool) -> None:
    """The next coordinator keeps the offsets of open transactions until their marker.

    A marker that was written before loading is applied too.
    """
    office.commit(5)
    office.commit(9, producer_id=7, producer_epoch=0)
    office.take()
    office.load()
    group = office.groups.find(GROUP)
    assert group is not None
    assert group.offsets.is_unstable(TP)
    office.mark(7, is_commit=is_commit)
    counts = Committed(9 if is_commit else 5, 3, "so far")
    assert office.committed() == counts
    office.take()
    office.load()
    assert office.committed() == counts


def test_a_marker_while_the_log_is_read(office: Office) -> None:
    """A marker that arrives while the log is loaded is applied at the end, once or twice.

    Its position may be behind what has been read.
    """
    office.commit(9, producer_id=7, producer_epoch=0)
    office.take()
    loading = office.groups.begin_loading(HOME)
    for at, key, value, producer_id in office.log:
        loading.rows([(at, key, value)], producer_id)
    marked = Marked(producer_id=7, at=len(office.log), is_commit=True)
    office.groups.marked(HOME, marked, 0.0, 0)
    office.groups.loaded(HOME, 0.0, 0)
    assert office.committed() == Committed(9, 3, "so far")


def test_a_write_that_ends_after_leaving_office(office: Office) -> None:
    """A write that ends after an unload answers its request, and changes no group loaded since."""
    event = Commit(ticket=99, offsets={TP: Committed(5)})
    (write,) = office.groups.handle(GROUP, event, 0.0, 0)
    assert isinstance(write, Write)
    office.groups.unload(HOME, 0.0, 0)
    office.load()
    written = Written(number=write.number, error=E.NOT_LEADER_OR_FOLLOWER)
    (told,) = office.groups.written(written, 0.0, 0)
    assert told == Answered(99, E.NOT_COORDINATOR)
    assert office.committed() is None


def test_records_that_nobody_understands_are_passed_over(office: Office) -> None:
    """Loading skips records of later releases and garbage, and reads the rest."""
    office.commit(5)
    key = records.encode_offset_key(GROUP, TP)
    office.log += [(50, b"\0\x09later", b"x", -1), (51, key, b"\0\x63", -1), (52, b"", None, -1)]
    office.take()
    office.load()
    assert office.committed() == Committed(5, 3, "so far")
