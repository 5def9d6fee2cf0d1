"""A transaction as an operation, with a scripted producer and consumer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from model.op import MicroOp, Op
from workloads.client import transaction
from workloads.client.common import Place
from workloads.client.outcome import Outcome
from workloads.client.transaction import Failure


class Sent(NamedTuple):
    outcome: Outcome = "ok"
    offset: int | None = 7
    error: str | None = None


class Scripted:
    """A producer whose steps fail as given, and which records its calls."""

    def __init__(
        self, failing: Mapping[str, Failure] | None = None, *, reusable: bool = True
    ) -> None:
        self.failing = failing or {}
        self.reusable = reusable
        self.calls: list[Any] = []
        self.reports: list[Sent] = []

    def _step(self, name: str, *what: Any) -> None:
        self.calls.append((name, *what) if what else name)
        if name in self.failing:
            raise self.failing[name]

    async def begin(self) -> None:
        self._step("begin")

    async def send(self, records: list[tuple[str, int]]) -> list[Sent]:
        self.calls.append(("send", records))
        return self.reports or [Sent()] * len(records)

    async def send_offsets(self, offsets: Mapping[str, Place], group: str) -> None:
        self._step("offsets", group, dict(offsets))

    async def commit(self) -> None:
        self._step("commit")

    async def abort(self) -> None:
        self._step("abort")


class Reader:
    """A consumer whose polls return the given records."""

    def __init__(self, *polls: dict[str, list[list[int]]], error: str | None = None) -> None:
        self.polls = list(polls)
        self.error = error
        self.rewound: dict[str, int] | None = None

    async def poll(self) -> tuple[dict[str, list[list[int]]], str | None]:
        return (self.polls.pop(0) if self.polls else {}), self.error

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        self.rewound = dict(places)
        return None


SEND: MicroOp = ["send", "a-0", 1]


async def carry_out(
    *row: MicroOp, producer: Scripted, reader: Reader | None = None
) -> tuple[Op, bool]:
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="txn", value=list(row))
    return await transaction.carry_out(op, producer, reader)


async def test_neighbouring_sends_are_under_way_together() -> None:
    """Adjacent sends are in flight together, and every result is reported in program order."""
    producer, reader = Scripted(), Reader({"b-0": [[3, 9], [4, 8]]}, {"b-0": [[5, 7]]})
    answer, goes_on = await carry_out(
        ["send", "a-0", 1], ["send", "b-0", 2], ["poll"], ["delay", None, 1], ["send", "a-0", 3],
        ["poll"],
        producer=producer,
        reader=reader,
    )  # fmt: skip
    assert producer.calls == [
        "begin",
        ("send", [("a-0", 1), ("b-0", 2)]),
        ("send", [("a-0", 3)]),
        "commit",
    ]
    assert (answer.type, answer.error, goes_on) == ("ok", None, True)
    assert answer.value == [
        ["send", "a-0", [7, 1]],
        ["send", "b-0", [7, 2]],
        ["poll", {"b-0": [[3, 9], [4, 8]]}],
        ["delay", None, 1],
        ["send", "a-0", [7, 3]],
        ["poll", {"b-0": [[5, 7]]}],
    ]
    assert reader.rewound is None


async def test_positions_are_committed_with_it() -> None:
    """The positions after the polled records are committed, and none without polled records."""
    producer = Scripted()
    reader = Reader({"b-0": [[3, 9], [4, 8]], "c-0": []}, {"b-0": [[9, 7]]})
    row: list[MicroOp] = [["poll"], ["poll"], ["commit", "g", None]]
    answer, _ = await carry_out(*row, producer=producer, reader=reader)
    assert ("offsets", "g", {"b-0": 10}) in producer.calls
    assert answer.value[-1] == ["commit", "g", {"b-0": 10}]
    producer = Scripted()
    answer, _ = await carry_out(*row, producer=producer, reader=Reader())
    assert producer.calls == ["begin", "commit"]
    assert answer.value[-1] == ["commit", "g", {}]


@pytest.mark.parametrize(
    ("refusal", "end", "outcome", "calls"),
    [
        (None, None, ("ok", None, True), ["commit"]),
        (None, Failure("fenced", can_abort=False), ("info", "fenced", False), ["commit"]),
        (Failure("refused"), None, ("fail", "refused", True), ["abort"]),
        (Failure("late", can_abort=False), None, ("info", "late", False), []),
    ],
)
async def test_what_is_committed_plainly_has_happened(
    refusal: Failure | None, end: Failure | None, outcome: Any, calls: list[str]
) -> None:
    """A plain commit takes effect whatever the transaction's outcome."""
    producer = Scripted({"commit": end} if end else {})

    async def plainly(places: Mapping[str, Place], group: str) -> None:
        producer.calls.append(("plainly", group, dict(places)))
        if refusal:
            raise refusal

    row = [["commit", "g", {"a-0": [5, 7]}], ["commit-plainly", "g", {"a-0": 6}]]
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="txn", value=row)
    answer, goes_on = await transaction.carry_out(op, producer, None, plainly)
    assert (answer.type, answer.error, goes_on) == outcome
    assert answer.value == row
    begun = ["begin", ("offsets", "g", {"a-0": [5, 7]}), ("plainly", "g", {"a-0": 6})]
    assert producer.calls == begun + calls


REFUSED = Sent("info", None, "MSG_TIMED_OUT")
FATAL = Failure("FENCED", can_abort=False)
ABORTABLE = Failure("ABORTABLE")


@pytest.mark.parametrize(
    ("failing", "row", "outcome", "asked", "goes_on"),
    [
        # on purpose; the abort is acknowledged or not
        ({}, [SEND, ["abort"]], ("fail", "aborted"), ["abort"], True),
        ({"abort": FATAL}, [SEND, ["abort"]], ("fail", "aborted"), ["abort"], False),
        # before a commit was requested nothing can have been committed
        ({"begin": FATAL}, [SEND], ("fail", "FENCED"), [], False),
        ({"offsets": FATAL}, [["poll"], ["commit", "g", None]], ("fail", "FENCED"), [], False),
        (
            {"offsets": ABORTABLE},
            [["poll"], ["commit", "g", None]],
            ("fail", "ABORTABLE"),
            ["abort"],
            True,
        ),
        # afterwards only an acknowledged abort is certain
        ({"commit": FATAL}, [SEND], ("info", "FENCED"), ["commit"], False),
        ({"commit": ABORTABLE}, [SEND], ("fail", "ABORTABLE"), ["commit", "abort"], True),
        (
            {"commit": ABORTABLE, "abort": FATAL},
            [SEND],
            ("info", "ABORTABLE"),
            ["commit", "abort"],
            False,
        ),
    ],
)
async def test_how_it_fails(
    failing: dict[str, Failure],
    row: list[MicroOp],
    outcome: tuple[str, str],
    asked: list[str],
    goes_on: bool,
) -> None:
    """``fail`` is certain, and doubt or a producer that cannot be reused ends the process."""
    producer, reader = Scripted(failing), Reader({"b-0": [[3, 9]]})
    answer, alive = await carry_out(*row, producer=producer, reader=reader)
    assert ((answer.type, answer.error), alive) == (outcome, goes_on)
    assert [call for call in producer.calls if call in ("commit", "abort")] == asked


async def test_a_record_that_is_not_delivered_aborts_it() -> None:
    """A record that is not delivered aborts the transaction, and delivered records are reported."""
    producer = Scripted()
    producer.reports = [Sent(), REFUSED]
    answer, goes_on = await carry_out(SEND, ["send", "b-0", 2], ["poll"], producer=producer)
    assert producer.calls[2:] == ["abort"]
    assert (answer.type, answer.error, goes_on) == ("fail", "MSG_TIMED_OUT", True)
    assert answer.value == [["send", "a-0", [7, 1]], ["send", "b-0", 2], ["poll"]]
    useless = Scripted(reusable=False)
    useless.reports = [REFUSED]
    _, goes_on = await carry_out(SEND, producer=useless)
    assert not goes_on


async def test_what_was_polled_is_polled_again() -> None:
    """After an uncommitted transaction the consumer returns to its first polled offsets."""
    reader = Reader({"b-0": [[3, 9], [4, 8]]}, {"b-0": [[5, 7]], "c-0": [[0, 1]]})
    _, goes_on = await carry_out(
        SEND, ["poll"], ["poll"], ["abort"], producer=Scripted(), reader=reader
    )
    assert goes_on
    assert reader.rewound == {"b-0": 3, "c-0": 0}


async def test_a_consumer_that_failed_ends_the_process() -> None:
    """A consumer that failed ends its process, and the transaction is aborted."""
    producer, reader = Scripted(), Reader({"b-0": [[3, 9]]}, error="_FATAL")
    answer, goes_on = await carry_out(["poll"], SEND, producer=producer, reader=reader)
    assert producer.calls == ["begin", "abort"]
    assert (answer.type, answer.error, goes_on) == ("fail", "_FATAL", False)
    assert answer.value == [["poll", {"b-0": [[3, 9]]}], SEND]


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"request.timeout.ms": "1000"}, 0.9),
        ({"request.timeout.ms": "1000", "socket.timeout.ms": "500"}, 0.45),
        ({}, 27.0),
    ],
)
def test_an_end_is_waited_for_less_long_than_the_client_waits(
    settings: dict[str, str], seconds: float
) -> None:
    """The wait for a commit's response ends before the client would repeat the request."""
    assert transaction.end_timeout_s(settings) == pytest.approx(seconds)


def test_who_asks_again_gets_the_time_to() -> None:
    """A client with ``asks_again`` has time for several attempts."""
    settings = {"request.timeout.ms": "1000"}
    assert transaction.end_timeout_s(settings, asks_again=True) == pytest.approx(5.0)
