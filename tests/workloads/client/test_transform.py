"""Consume, transform, produce as an operation, with a scripted member and producer."""

from collections.abc import Mapping
from typing import Any

import pytest

from model import transform as made
from model.op import MicroOp, Op
from workloads.client import transform
from workloads.client.common import Place
from workloads.client.transaction import Failure


class Sent:
    outcome = "ok"
    offset = 7
    error = None


class Producer:
    reusable = True

    def __init__(self, failing: str | None = None) -> None:
        self.failing = failing
        self.calls: list[Any] = []

    def _step(self, name: str) -> None:
        self.calls.append(name)
        if name == self.failing:
            raise Failure("FENCED", can_abort=False)

    async def begin(self) -> None:
        self._step("begin")

    async def send(self, records: list[tuple[str, int]]) -> list[Any]:
        self.calls.append(records)
        return [Sent()] * len(records)

    async def send_offsets(self, offsets: Mapping[str, Place], group: str) -> None:
        self.calls.append((group, dict(offsets)))
        self._step("offsets")

    async def commit(self) -> None:
        self._step("commit")

    async def abort(self) -> None:
        self._step("abort")


class Member:
    def __init__(
        self, told: list[MicroOp], producer: Producer | None = None, error: str | None = None
    ) -> None:
        self.told, self.error = told, error
        self.producer = producer or Producer()
        self.asked: list[str] | None = None
        self.rewound: dict[str, int] | None = None

    async def poll(self) -> tuple[list[MicroOp], str | None]:
        return self.told, self.error

    async def producer_of(self, keys: list[str]) -> Any:
        self.asked = keys
        return self.producer

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        self.rewound = dict(places)
        return None


ROW: list[MicroOp] = [["poll"], ["transform", "output", 3], ["commit", "g", None]]
ASSIGNED: MicroOp = ["assigned", "g", 4, {"input-1": 5}]
POLLED: MicroOp = ["poll", {"input-1": [[5, 10], [6, 12]]}]


async def carry_out(member: Member, row: list[MicroOp] = ROW) -> tuple[Op, bool]:
    op = Op(index=42, time_ns=0, process=0, type="invoke", f="txn", value=row)
    return await transform.carry_out(op, member)


async def test_what_is_polled_is_sent_on_and_committed_as_read() -> None:
    """Each polled value leads to one output in its partition, and its offset is committed.

    Rebalances come first in the completion.
    """
    member = Member([ASSIGNED, POLLED])
    answer, goes_on = await carry_out(member)
    outputs = [("output-1", made.output(10, 42)), ("output-0", made.output(12, 42))]
    calls = ["begin", outputs, ("g", {"input-1": 7}), "offsets", "commit"]
    assert member.producer.calls == calls
    assert member.asked == ["input-1"]
    assert (answer.type, goes_on) == ("ok", True)
    sends = [["send", key, [7, value]] for key, value in outputs]
    assert answer.value == [ASSIGNED, POLLED, *sends, ["commit", "g", {"input-1": 7}]]


async def test_nothing_polled_is_nothing_to_do() -> None:
    """Without polled records no transaction begins, and rebalances are reported."""
    member = Member([ASSIGNED, ["poll", {}]])
    answer, goes_on = await carry_out(member)
    assert (answer.type, answer.value, goes_on) == ("ok", [ASSIGNED, ["poll", {}]], True)
    assert member.producer.calls == []


async def test_a_poll_that_fails_ends_the_process() -> None:
    """A poll that fails ends the process, certainly without a transaction."""
    member = Member([ASSIGNED, POLLED], error="UNKNOWN_MEMBER_ID")
    answer, goes_on = await carry_out(member)
    assert (answer.type, answer.error, goes_on) == ("fail", "UNKNOWN_MEMBER_ID", False)
    assert answer.value == [ASSIGNED, POLLED]
    assert member.producer.calls == []


async def test_what_nobody_wrote_is_not_sent_on() -> None:
    """A record that no client wrote leads to no output; checkers see it in the poll."""
    strange = Member([["poll", {"input-1": [[5, -9]]}]])
    answer, goes_on = await carry_out(strange)
    assert (answer.type, answer.error, goes_on) == ("fail", "NotAnInput", False)
    assert strange.producer.calls == []


@pytest.mark.parametrize(
    ("failing", "row", "outcome", "rewound"),
    [
        (None, [*ROW, ["abort"]], ("fail", "aborted", True), {"input-1": 5}),
        ("offsets", ROW, ("fail", "FENCED", False), None),
        ("commit", ROW, ("info", "FENCED", False), None),
    ],
)
async def test_a_transaction_that_is_not_committed(
    failing: str | None,
    row: list[MicroOp],
    outcome: tuple[str, str, bool],
    rewound: dict[str, int] | None,
) -> None:
    """A process that continues after an uncommitted transaction polls its records again."""
    member = Member([POLLED], Producer(failing))
    answer, goes_on = await carry_out(member, row)
    assert (answer.type, answer.error, goes_on) == outcome
    assert member.rewound == rewound
    assert answer.value[0] == POLLED
