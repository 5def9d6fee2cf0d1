"""Runs a transaction as one operation, with any client, and returns the outcome.

The outcome is ``ok`` if the commit was acknowledged. It is ``fail`` if the transaction certainly
did not happen: the producer had not requested the commit, or an abort was acknowledged. It is
``info`` if there was no response to the commit, or an error: an earlier attempt of the same request
may have succeeded.

**A producer whose commit or abort got no response is not used again.** Its request may still be in
flight. In the protocol of Kafka 2.8, the request does not identify the transaction, so a late
request would end the producer's next transaction before it is complete (KAFKA-17754). Therefore the
time limit for the response is shorter than the time after which the client sends the request again,
and the next owner of the transactional id calls ``init_transactions`` first, after which the broker
rejects older requests. Applications do not follow this rule. A client with ``asks_again`` behaves
like them: it sends the request again until it gets a response.
"""

import abc
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from model.op import MicroOp, Op
from workloads.client.base_client import PlainClient
from workloads.client.common import Place, Records, completed
from workloads.client.outcome import Outcome

INIT_TIMEOUT_S = 10.0
"""How long a producer may take to get its id and epoch.

Its predecessor's transaction is ended first.
"""
END_SHARE = 0.9
"""The share of the client's request timeout for which a commit or an abort is awaited."""
END_ATTEMPTS = 5
"""How many attempts a client with ``asks_again`` may make."""


def end_timeout_s(producer: Mapping[str, str], *, asks_again: bool = False) -> float:
    """Return how long to wait for a commit or an abort, according to a producer's settings."""
    names = ("request.timeout.ms", "socket.timeout.ms")
    answer_s = min(int(producer.get(name, "30000")) for name in names) / 1000
    return answer_s * (END_ATTEMPTS if asks_again else END_SHARE)


class Failure(Exception):
    """A step of a transaction failed; the message is the client's name of the error."""

    def __init__(self, name: str, *, can_abort: bool = True) -> None:
        super().__init__(name)
        self.name = name
        self.can_abort = can_abort
        """False if the producer is not usable any more, or if one of its requests is in doubt."""


class Sent(Protocol):
    """The result of a record."""

    @property
    def outcome(self) -> Outcome: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def error(self) -> str | None: ...


class Producer(Protocol):
    """A producer with a transactional id. Every step raises :class:`Failure`."""

    @property
    def reusable(self) -> bool:
        """Whether the producer can begin another transaction after an aborted one."""
        ...

    async def begin(self) -> None: ...
    async def send(self, records: list[tuple[str, int]]) -> Sequence[Sent]:
        """Send all records at once, and return a result for each of them.

        This takes limited time and raises nothing.
        """
        ...

    async def send_offsets(self, offsets: Mapping[str, Place], group: str) -> None: ...
    async def commit(self) -> None: ...
    async def abort(self) -> None: ...


class Owned(Producer, Protocol):
    """A producer that is closed with its process."""

    async def close(self) -> None: ...


Commit = Callable[[Mapping[str, Place], str], Awaitable[None]]
"""Commits offsets of a group outside of any transaction.

Raises :class:`Failure`; its ``can_abort`` is false if the outcome is unknown.
"""


class Reader(Protocol):
    """A consumer with partitions to read."""

    async def poll(self) -> tuple[Records, str | None]:
        """Return records, and the error that ended the poll, if any."""
        ...

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        """Continue reading at these offsets; return the error if that fails."""
        ...


class Taken(NamedTuple):
    """The result of requesting a transactional id."""

    outcome: Outcome
    error: str | None = None
    """The name of the error."""
    identity: list[int] | None = None
    """Producer id and epoch, if the library reveals them."""


class TransactionalClient(PlainClient):
    """A client that also supports the operations ``init`` and ``txn``.

    A process has one transactional id for its whole life. ``init`` creates its producer, and each
    ``txn`` is one transaction.
    """

    _transactor: Owned | None = None
    _commit_plainly: Commit | None = None
    """Commits offsets outside of the transaction that is open; ``None`` if the client cannot."""

    async def invoke(self, op: Op) -> Op:
        match op.f:
            case "init":
                ((_, transactional_id, *_),) = op.value
                assert self._transactor is None, "a process takes only one transactional id"
                taken = await self._take(transactional_id)
                value = [["init", transactional_id, taken.identity]]
                return completed(op, taken.outcome, value, taken.error)
            case "txn":
                assert self._transactor is not None, (
                    "a process runs init before its first transaction"
                )
                answer, goes_on = await carry_out(
                    op, self._transactor, self._read_by(), self._commit_plainly
                )
                self._alive = self._alive and goes_on
                return answer
            case _:
                return await super().invoke(op)

    async def close(self) -> None:
        transactor, self._transactor = self._transactor, None
        rest = super().close()  # type: ignore[safe-super]  # a library's client comes behind this
        await asyncio.gather(rest, *([transactor.close()] if transactor else []))

    @abc.abstractmethod
    async def _take(self, transactional_id: str) -> Taken:
        """Create the producer, and get its id and epoch."""

    @abc.abstractmethod
    def _read_by(self) -> Reader | None:
        """Return the consumer, if there is one."""


@dataclass(slots=True)
class _Course:
    """The progress of a transaction."""

    micro_ops: list[MicroOp]
    """The micro-operations, completed with their results so far."""
    first: dict[str, int] = field(default_factory=dict)
    """The first offset that was polled, by partition."""
    after: dict[str, int] = field(default_factory=dict)
    """The offset after the last one that was polled, by partition."""
    commit_asked: bool = False
    committed_outside: bool = False
    """Whether an offset may have been committed outside of the transaction, which is not undone."""
    lost_its_place: bool = False
    """Whether the consumer has failed."""

    def polled(self, records: Records) -> None:
        for key, pairs in records.items():
            if pairs:
                self.first.setdefault(key, pairs[0][0])
                self.after[key] = pairs[-1][0] + 1


async def carry_out(
    op: Op, producer: Producer, reader: Reader | None, commit_plainly: Commit | None = None
) -> tuple[Op, bool]:
    """Run a ``txn``; return its completion, and whether its process can continue.

    The supported micro-operations are ``send``, ``poll``, ``["delay", null, milliseconds]``,
    ``["commit", group, null]`` (commit the offsets after the records that this transaction has
    polled), ``["commit", group, {key: offset}]``, ``["commit-plainly", …]`` (commit offsets outside
    of the transaction while it is open) and, as the last one, ``abort``. If the transaction is not
    committed, the consumer is set back to the first offsets that it polled in it.
    """
    course = _Course(micro_ops=[list(micro_op) for micro_op in op.value])
    kind: Outcome = "fail"
    goes_on = True
    try:
        await producer.begin()
        await _work(course, producer, reader, commit_plainly)
        course.commit_asked = True
        await producer.commit()
    except Failure as failure:
        error = failure.name
        goes_on = failure.can_abort and await _aborted(producer)
        if (course.commit_asked and not goes_on) or course.committed_outside:
            kind, goes_on = "info", False
        goes_on = goes_on and producer.reusable and not course.lost_its_place
        if goes_on and reader is not None and course.first:
            goes_on = await reader.rewind(course.first) is None
        return completed(op, kind, course.micro_ops, error), goes_on
    return completed(op, "ok", course.micro_ops), True


async def _work(
    course: _Course, producer: Producer, reader: Reader | None, commit_plainly: Commit | None
) -> None:
    """Run the micro-operations between begin and commit; adjacent sends are sent together."""
    row: list[int] = []
    for number, micro_op in enumerate(course.micro_ops):
        if micro_op[0] == "send":
            row.append(number)
            continue
        await _send(course, producer, row)
        row = []
        match micro_op:
            case ["poll"]:
                assert reader is not None, "partitions are assigned to a process before it polls"
                records, error = await reader.poll()
                micro_op.append(records)
                course.polled(records)
                if error is not None:
                    course.lost_its_place = True
                    raise Failure(error)
            case ["delay", _, milliseconds]:
                await asyncio.sleep(milliseconds / 1000)
            case ["commit", group, None]:
                micro_op[2] = dict(course.after)
                if course.after:
                    await producer.send_offsets(course.after, group)
            case ["commit", group, dict(places)]:
                await producer.send_offsets(places, group)
            case ["commit-plainly", group, places]:
                assert commit_plainly is not None, "this client can commit outside of a transaction"
                try:
                    await commit_plainly(places, group)
                except Failure as failure:
                    course.committed_outside |= not failure.can_abort
                    raise
                course.committed_outside = True
            case ["abort"]:
                raise Failure("aborted")
            case _:
                raise ValueError(f"transactions do not support the micro-operation {micro_op[0]}")
    await _send(course, producer, row)


async def _send(course: _Course, producer: Producer, row: list[int]) -> None:
    if not row:
        return
    reports = await producer.send(
        [(course.micro_ops[at][1], course.micro_ops[at][2]) for at in row]
    )
    for at, report in zip(row, reports, strict=True):
        if report.outcome == "ok":
            course.micro_ops[at][2] = [report.offset, course.micro_ops[at][2]]
    for report in reports:
        if report.error is not None:
            raise Failure(report.error)


async def _aborted(producer: Producer) -> bool:
    try:
        await producer.abort()
    except Failure:
        return False
    return True
