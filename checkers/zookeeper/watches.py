"""Judges watches: one event for each, before the session sees the change, and none is missed.

A session sees a change when it reads the znode, and when the write that it has made itself is
acknowledged.

A registration ends with its event, also with the notice of kazoo that a watch is lost with its
connection. The asyncio client sets watches again on the next connection.
"""

from collections.abc import Iterator
from typing import NamedTuple

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

SHOWING = ("get", "set")
"""Operations whose answer has the state of the znode."""
LOST = "none"
"""The event of a watch that was lost with its connection."""


class Registration(NamedTuple):
    """A watch that is set."""

    number: int
    call: Call
    """The read that set it."""

    @property
    def mzxid(self) -> int:
        """The state of the znode when the watch was set."""
        return int(self.call.value["stat"]["mzxid"])


class Fired(NamedTuple):
    """A watch whose event has arrived."""

    registration: Registration
    call: Call
    """The call with whose answer the event is recorded."""


class _Session:
    """The watches of one session, call by call."""

    def __init__(self) -> None:
        self._set: dict[int, Registration] = {}
        self._fired: dict[int, Fired] = {}
        self._unread: dict[str, Fired] = {}
        """Events after which the znode was not read yet, by path."""

    def add(self, call: Call) -> Iterator[Found]:
        """Add the next call; yield what it shows to be wrong."""
        unread = dict(self._unread)
        if call.ok and call.value.get("registered") is not None:
            number = call.value["registered"]
            self._set[number] = Registration(number, call)
        for number, kind in call.events:
            yield from self._event(number, kind, call)
        for kind, path in call.value.get("unasked", ()):
            yield Found(
                anomaly="zk-watch-repeated",
                key=path,
                ops=(call.op,),
                why=f"an event ({kind}) of {path} arrived before event {call.op} was completed, and"
                " the session had no watch any more",
            )
        if call.f in SHOWING and call.ok:
            yield from self._missed(call)
        if call.f == "get" and call.ok:
            fired = unread.get(call.path)
            if fired is not None:
                del self._unread[call.path]
                yield from _early(fired, call)

    def _event(self, number: int, kind: str, call: Call) -> Iterator[Found]:
        before = self._fired.get(number)
        if before is not None and kind != LOST:
            yield Found(
                anomaly="zk-watch-repeated",
                key=before.registration.call.path,
                ops=(before.registration.call.op, before.call.op, call.op),
                why=f"the watch of event {before.registration.call.op} fired a second time: its"
                f" events were recorded with events {before.call.op} and {call.op}",
            )
        registration = self._set.pop(number, None)
        if registration is None or kind == LOST:
            return
        fired = self._fired[number] = Fired(registration, call)
        self._unread[registration.call.path] = fired

    def _missed(self, call: Call) -> Iterator[Found]:
        for registration in list(self._set.values()):
            watched = registration.call
            if watched.path != call.path or watched is call:
                continue
            stat = call.value["stat"]
            if stat is None or stat["mzxid"] > registration.mzxid:
                del self._set[registration.number]
                yield Found(
                    anomaly="zk-watch-missed",
                    key=call.path,
                    ops=(watched.op, call.op),
                    why=f"event {call.op} shows a change after event {watched.op} had set a watch,"
                    " and no event of the watch had arrived before",
                )


def _early(fired: Fired, call: Call) -> Iterator[Found]:
    """A read on the same connection after an event must show the change."""
    stat, watched = call.value["stat"], fired.registration.call
    is_same = call.value.get("connection") == fired.call.value.get("connection")
    if is_same and stat is not None and stat["mzxid"] <= fired.registration.mzxid:
        yield Found(
            anomaly="zk-watch-early",
            key=call.path,
            ops=(watched.op, fired.call.op, call.op),
            why=f"the watch of event {watched.op} fired before event {call.op}, which shows the"
            " same state as then",
        )


def notifications(history: History) -> Iterator[Found]:
    """Find watches that fired twice, not at all, or before their change could be read."""
    for calls in history.sessions().values():
        session = _Session()
        for call in calls:
            yield from session.add(call)


def count(history: History) -> int:
    """Return how many watches were set."""
    return sum(call.ok and call.value.get("registered") is not None for call in history.of("get"))
