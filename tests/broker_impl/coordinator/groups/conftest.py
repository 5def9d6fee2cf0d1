import itertools
from typing import Any

import pytest

from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Event,
    Heartbeat,
    Join,
    Leave,
    Marked,
    Sync,
    Tick,
    Write,
    Written,
)
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import TopicPartition

MAYBE_STORED = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)
"""The errors of writes that are in the log, perhaps for ever."""
CONFIG = GroupConfig(initial_rebalance_delay_ms=0)
NAME = "g"


def subscription(*topics: str) -> bytes:
    """Encode a ConsumerProtocolSubscription of version 0."""
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


RANGE = (("range", subscription("t")),)


class Room:
    """One group with its clock and its log, and the answers that its requests received."""

    def __init__(self, config: GroupConfig = CONFIG, *, writes: bool = True) -> None:
        """If ``writes`` is true, the writes of the group complete at once."""
        numbers = itertools.count(1)
        self.now = 100.0
        self.wall_ms = 1_000_000
        self.group = Group(NAME, config, lambda: next(numbers), self.wall_ms)
        self.answers: dict[int, Any] = {}
        self.unwritten: list[Write] = []
        self.log: list[tuple[bytes, bytes | None]] = []
        self.history: list[tuple[int, Write | Marked]] = []
        """The writes with their positions in the log, and the markers that ended transactions."""
        self.writes = writes
        self._tickets = itertools.count(1)
        self._ids = itertools.count(1)

    def is_in(self, state: GroupStatus) -> bool:
        return self.group.state is state

    def happen(self, event: Event) -> None:
        for effect in self.group.handle(event, self.now, self.wall_ms):
            if isinstance(effect, Answered):
                assert effect.ticket not in self.answers, "one answer to one request"
                self.answers[effect.ticket] = effect.answer
            else:
                self.unwritten.append(effect)
        if self.writes:
            self.write()

    def write(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Complete all pending writes, or fail them with `error`."""
        while self.unwritten:
            write = self.unwritten.pop(0)
            at = len(self.log)
            if not error or error in MAYBE_STORED:
                self.log += write.records
                self.history.append((at, write))
            is_appended = not error or error in MAYBE_STORED
            self.happen(Written(number=write.number, error=error, offset=at if is_appended else -1))

    def mark(self, producer_id: int, *, is_commit: bool) -> None:
        marked = Marked(producer_id=producer_id, at=len(self.log), is_commit=is_commit)
        self.history.append((len(self.log), marked))
        self.happen(marked)

    def request(self, kind: Any, **fields: Any) -> int:
        ticket = next(self._tickets)
        self.happen(kind(ticket=ticket, **fields))
        return ticket

    def ask(self, kind: Any, **fields: Any) -> Any:
        return self.answers[self.request(kind, **fields)]

    def join(self, member_id: str = "", **fields: Any) -> int:
        given = {"protocols": RANGE, "rebalance_timeout_ms": 60_000, "session_timeout_ms": 10_000}
        return self.request(
            Join, member_id=member_id, fresh_id=f"m{next(self._ids)}", **(given | fields)
        )

    def sync(self, member_id: str, generation: int, **fields: Any) -> int:
        return self.request(Sync, member_id=member_id, generation=generation, **fields)

    def beat(self, member_id: str, generation: int, **fields: Any) -> ErrorCode:
        return ErrorCode(self.ask(Heartbeat, member_id=member_id, generation=generation, **fields))

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        answer = self.ask(Leave, members=((member_id, instance_id),))
        return ErrorCode(answer.error or answer.rows[0][2])

    def commit(self, offset: int, topic: str = "t", **fields: Any) -> int:
        offsets = {TopicPartition(topic, 0): Committed(offset, committed_ms=self.wall_ms)}
        return self.request(Commit, offsets=offsets, **fields)

    def committed(self, topic: str = "t") -> int | None:
        kept = self.group.offsets.get(TopicPartition(topic, 0))
        return None if kept is None else kept.offset

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, and deliver a Tick at each deadline on the way."""
        end = self.now + seconds
        while self.group.deadline <= end:
            self.now = max(self.now, self.group.deadline)
            self.happen(Tick())
        self.now = end
        self.wall_ms = 1_000_000 + round((end - 100.0) * 1000)

    def stable(self, count: int, **fields: Any) -> list[str]:
        """Bring `count` dynamic members to Stable, the leader first, each with its assignment."""
        tickets = [self.join(**fields) for _ in range(count)]
        self.pass_time(0)
        return self.settle([self.answers[ticket].member_id for ticket in tickets])

    def settle(self, members: list[str]) -> list[str]:
        """Let the leader assign its own name to each member, and let all members sync."""
        group = self.group
        assert group.leader is not None
        generation = group.generation
        mine = {member: member.encode() for member in group.members}
        tickets = [self.sync(group.leader, generation, assignments=mine)]
        tickets += [self.sync(each, generation) for each in members if each != group.leader]
        for ticket in tickets:
            assert self.answers[ticket].error == ErrorCode.NONE
        return members


def statics(room: Room) -> str:
    """Bring two members to Stable of which the second, ``m2``, is static."""
    room.join(session_timeout_ms=30_000)
    room.join(instance_id="i", session_timeout_ms=30_000)
    room.pass_time(0)
    room.settle(["m1", "m2"])
    return "m2"


@pytest.fixture
def room() -> Room:
    return Room()
