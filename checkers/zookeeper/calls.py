"""Calls: the operations of ZooKeeper's clients, each with its answer and what its session had seen.

A process has one session for its whole life, so that the calls of a process are those of a session.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from checkers.facts import Fault
from model.history import BadHistory
from model.op import NEMESIS, Op

Outcome = Literal["ok", "fail", "info"]
NEVER = 1 << 62
"""The place of the completion of a call that was never completed."""
SETTLED_NS = 30 * 10**9
"""How long after a fault a leader may still be replaced because of it."""


class Call(NamedTuple):
    """An operation of a client."""

    f: str
    value: Mapping[str, Any]
    """What was asked, with what was answered."""
    outcome: Outcome
    process: int
    invoked: int
    """The index of its invocation."""
    completed: int
    """The index of its completion; NEVER if there is none."""
    began_ns: int
    ended_ns: int
    """When it was completed; if it never was, when the history ends."""
    seen: int
    """The largest zxid with which its session had been answered before."""
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.outcome == "ok"

    @property
    def may_have_happened(self) -> bool:
        """Whether it succeeded, or its outcome is unknown."""
        return self.outcome != "fail"

    @property
    def path(self) -> str:
        """The path that it is about."""
        return str(self.value.get("path", ""))

    @property
    def place(self) -> str:
        """What the workload calls one place: the path, or the parent of many."""
        return str(self.value.get("place", self.path))

    @property
    def zxid(self) -> int:
        """The zxid of its reply; 0 without one."""
        return int(self.value.get("zxid", 0))

    @property
    def events(self) -> list[list[Any]]:
        """The watch events that its session received since its last call: number and type."""
        return self.value.get("events") or []

    @property
    def op(self) -> int:
        """The index of its last event."""
        return self.invoked if self.completed == NEVER else self.completed

    def precedes(self, other: "Call") -> bool:
        """Return whether it was completed before the other one was invoked."""
        return self.completed < other.invoked


class History:
    """All calls of a history, in the order of their invocations."""

    def __init__(
        self, calls: list[Call], faults: Iterable[Fault] = (), recovered: bool | None = None
    ) -> None:
        """``recovered``: whether all servers had recovered before the final reads, if known."""
        self.calls = calls
        self.faults = tuple(faults)
        self.recovered = recovered

    def of(self, *names: str) -> Iterator[Call]:
        """Yield the calls of these operations."""
        return (call for call in self.calls if call.f in names)

    def sessions(self) -> dict[int, list[Call]]:
        """Return the calls of each process in their order."""
        found: dict[int, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.process, []).append(call)
        return found

    def by_path(self, *names: str) -> dict[str, list[Call]]:
        """Return the calls of these operations by their path."""
        found: dict[str, list[Call]] = {}
        for call in self.of(*names):
            found.setdefault(call.path, []).append(call)
        return found

    def by_place(self, *names: str) -> dict[str, list[Call]]:
        """Return the calls of these operations by their place."""
        found: dict[str, list[Call]] = {}
        for call in self.of(*names):
            found.setdefault(call.place, []).append(call)
        return found

    def is_final(self, call: Call) -> bool:
        """Return whether a call is a read after ``sync``, when all servers had recovered."""
        value = call.value
        asked = value.get("final") and value.get("sync")
        return bool(call.ok and asked and self.recovered is not False)

    def is_disturbed(self, call: Call) -> bool:
        """Return whether a leader may have been replaced during a call, because of a fault."""
        return self.is_disturbed_between(call.began_ns, call.ended_ns)

    def is_disturbed_between(
        self,
        from_ns: int,
        to_ns: int,
        excluding: Collection[str] = (),
        settled_ns: int = SETTLED_NS,
    ) -> bool:
        """Return whether a fault had effects within a time.

        ``excluding`` are kinds of faults, ``settled_ns`` is how long one has effects afterwards.
        """
        return any(
            fault.from_ns <= to_ns
            and (fault.to_ns is None or fault.to_ns + settled_ns >= from_ns)
            and fault.fault not in excluding
            for fault in self.faults
        )


def of_events(
    events: Iterable[Op], faults: Iterable[Fault] = (), recovered: bool | None = None
) -> History:
    """Return the calls of a history's clients.

    Raises :class:`~model.history.BadHistory` for an event that no client of ZooKeeper records.
    """
    open_: dict[int, Op] = {}
    seen: dict[int, int] = {}
    found: list[Call] = []
    last_ns = 0
    for event in events:
        last_ns = max(last_ns, event.time_ns)
        if event.process == NEMESIS:
            continue
        if not isinstance(event.value, dict):
            raise BadHistory(f"event {event.index}: the value of {event.f} is not an object")
        if event.type == "invoke":
            if event.process in open_:
                raise BadHistory(
                    f"event {event.index}: process {event.process} invokes an operation before its"
                    " last one was completed"
                )
            open_[event.process] = event
            continue
        begun = open_.pop(event.process, None)
        if begun is None:
            raise BadHistory(f"event {event.index}: its operation was never invoked")
        call = _call(begun, event, seen.get(event.process, 0))
        seen[event.process] = max(call.seen, call.zxid)
        found.append(call)
    found += [_open(begun, last_ns, seen.get(process, 0)) for process, begun in open_.items()]
    return History(sorted(found, key=lambda call: call.invoked), faults, recovered)


def _call(begun: Op, event: Op, seen: int) -> Call:
    assert event.type != "invoke", "a completion"
    return Call(
        f=event.f,
        value={**begun.value, **event.value},
        outcome=event.type,
        process=event.process,
        invoked=begun.index,
        completed=event.index,
        began_ns=begun.time_ns,
        ended_ns=event.time_ns,
        seen=seen,
        error=event.error,
    )


def _open(begun: Op, last_ns: int, seen: int) -> Call:
    return Call(
        f=begun.f,
        value=begun.value,
        outcome="info",
        process=begun.process,
        invoked=begun.index,
        completed=NEVER,
        began_ns=begun.time_ns,
        ended_ns=last_ns,
        seen=seen,
    )
