"""Judges persistent watches: an event for each change, in order, before the session sees it.

A watch stays set until it is removed, also over reconnections, where it misses changes. The replies
to a session and its events are one stream per connection. So between two replies that show the
state of a znode, the events must be exactly the changes from one state to the other.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

CHILD = "child"
"""The event of a change of the list of children."""


class Watch(NamedTuple):
    """A persistent watch that is set, or was."""

    path: str
    is_recursive: bool
    call: Call
    """The call that set it, or removed it."""

    def covers(self, path: str) -> bool:
        """Return whether changes of a znode trigger it."""
        return path == self.path or (self.is_recursive and path.startswith(f"{self.path}/"))


class Seen(NamedTuple):
    """The state of a znode, as a reply shows it."""

    call: Call
    version: int | None
    """``None`` if there is no znode."""
    czxid: int | None = None
    """``None`` if the reply does not show it."""
    cversion: int | None = None


class Change(NamedTuple):
    """An event of a persistent watch."""

    kind: str
    zxid: int
    """Not above 0 if the server does not send it."""
    call: Call
    """The call with whose answer it is recorded."""


class _Session:
    """The persistent watches of one session, call by call."""

    def __init__(self) -> None:
        self._connection: int | None = None
        self._set: dict[str, Watch] = {}
        self._removed: dict[str, Watch] = {}
        """The watches that were removed over the present connection."""
        self._seen: dict[str, Seen] = {}
        """What replies over the present connection have shown last."""
        self._changes: dict[str, list[Change]] = {}
        """The events since then."""
        self._latest: Change | None = None

    def add(self, call: Call) -> Iterator[Found]:
        """Add the next call; yield what it shows to be wrong."""
        connection = call.value.get("connection")
        if connection is None:
            return  # not the client's answer
        if connection != self._connection:
            self._forget()
            self._connection = connection
        else:
            yield from self._events(call)
        yield from self._registered(call)
        path = call.value.get("created", call.path)
        seen = _seen(call)
        watch = self._covering(path)
        if seen is not None and watch is not None:
            before, changes = self._seen.get(path), self._changes.pop(path, [])
            self._seen[path] = seen
            found = [] if before is None else [*_compared(watch, path, before, changes, seen)]
            if found:
                del self._seen[path]  # an event that came too late is no second finding
            yield from found

    def _forget(self) -> None:
        """Begin with another connection: what happened in between is not reported."""
        for table in (self._removed, self._seen, self._changes):
            table.clear()
        self._latest = None

    def _events(self, call: Call) -> Iterator[Found]:
        for _, kind, path, zxid in call.value.get("changes", ()):
            change = Change(kind, zxid, call)
            if self._latest is not None and 0 < zxid < self._latest.zxid:
                yield Found(
                    anomaly="zk-watch-order",
                    key=path,
                    ops=(self._latest.call.op, call.op),
                    why=f"the event of transaction {zxid:#x}, which event {call.op} records, came"
                    f" after that of transaction {self._latest.zxid:#x}",
                )
            self._latest = change if zxid > 0 else self._latest
            self._changes.setdefault(path, []).append(change)
        for kind, path, _ in call.value.get("strays", ()):
            removed = next((each for each in self._removed.values() if each.covers(path)), None)
            if removed is not None and self._covering(path) is None:
                yield Found(
                    anomaly="zk-watch-after-removal",
                    key=path,
                    ops=(removed.call.op, call.op),
                    why=f"event {call.op} records that the znode was {kind}, although event"
                    f" {removed.call.op} had removed the persistent watch",
                )

    def _registered(self, call: Call) -> Iterator[Found]:
        if call.f == "watch" and call.ok and call.value.get("registered") is not None:
            watch = Watch(call.path, bool(call.value.get("recursive")), call)
            self._set[call.path] = watch
            self._removed.pop(call.path, None)
            for table in (self._seen, self._changes):
                for path in [path for path in table if watch.covers(path)]:
                    del table[path]
        elif call.f == "unwatch" and call.ok:
            before = self._set.pop(call.path, None)
            if before is not None:
                self._removed[call.path] = before._replace(call=call)
        elif call.f == "unwatch" and call.error == "no-watcher":
            before = self._set.pop(call.path, None)
            if before is not None:
                yield Found(
                    anomaly="zk-watch-vanished",
                    key=call.path,
                    ops=(before.call.op, call.op),
                    why=f"the server of event {call.op} has no watch to remove, although event"
                    f" {before.call.op} had set a persistent one",
                )

    def _covering(self, path: str) -> Watch | None:
        return next((watch for watch in self._set.values() if watch.covers(path)), None)


def _seen(call: Call) -> Seen | None:
    """Return the state of its znode that the answer of a call shows."""
    if not call.ok:
        return None
    if call.f in ("get", "set"):
        stat = call.value["stat"]
        if stat is None:
            return Seen(call, None)
        return Seen(call, stat["version"], stat["czxid"], stat["cversion"])
    if call.f == "create":
        return Seen(call, 0)
    return Seen(call, None) if call.f == "delete" else None


def _compared(
    watch: Watch, path: str, before: Seen, changes: Sequence[Change], after: Seen
) -> Iterator[Found]:
    """Compare the events between two replies with what the replies show."""
    own = [change for change in changes if change.kind != CHILD]
    fault = _repeated(own) or _own(before, own, after)
    if fault is None and not watch.is_recursive:
        fault = _of_children(before, len(changes) - len(own), after)
    if fault is not None:
        anomaly, what = fault
        kinds = ", ".join(change.kind for change in changes) or "none"
        yield Found(
            anomaly=anomaly,
            key=path,
            ops=(watch.call.op, before.call.op, after.call.op),
            why=f"{what}: event {before.call.op} shows {_state(before)}, event {after.call.op}"
            f" {_state(after)}; the events of the persistent watch of event {watch.call.op}"
            f" between them: {kinds}",
        )


Fault = tuple[str, str]
"""An anomaly, and what is wrong."""
_REPEATED: Fault = ("zk-watch-repeated", "the event of one transaction came twice")
_MISSED: Fault = ("zk-watch-missed", "no event had come before the reply that shows a change")
_EARLY: Fault = ("zk-watch-early", "the reply does not show a change whose event had come")
_ORDER: Fault = ("zk-watch-order", "no changes have events in this order")


def _repeated(changes: Sequence[Change]) -> Fault | None:
    known = [(change.kind, change.zxid) for change in changes if change.zxid > 0]
    return _REPEATED if len({*known}) < len(known) else None


def _own(before: Seen, changes: Sequence[Change], after: Seen) -> Fault | None:
    """Apply the changes of the znode itself to the first state, and compare it with the second."""
    version, was_deleted = before.version, False
    for change in changes:
        if (version is None) != (change.kind == "created"):
            return _ORDER
        was_deleted |= change.kind == "deleted"
        version = {"created": 0, "deleted": None}.get(change.kind, (version or 0) + 1)
    is_same = before.version is not None and before.czxid == after.czxid is not None
    if is_same and was_deleted:
        return _EARLY
    is_other = before.czxid is not None and after.czxid not in (None, before.czxid)
    if version == after.version and not (is_other and not was_deleted):
        return None
    is_ahead = version is not None and after.version is not None and version > after.version
    return _EARLY if is_ahead and not (is_other and not was_deleted) else _MISSED


def _of_children(before: Seen, events: int, after: Seen) -> Fault | None:
    """Compare the number of changes of the list of children."""
    if before.cversion is None or after.cversion is None or before.czxid != after.czxid:
        return None
    changes = after.cversion - before.cversion
    if events == changes:
        return None
    return _MISSED if events < changes else _EARLY


def _state(seen: Seen) -> str:
    if seen.version is None:
        return "no znode"
    children = "" if seen.cversion is None else f" with {seen.cversion} changes of its children"
    return f"version {seen.version}{children}"


def notifications(history: History) -> Iterator[Found]:
    """Find events of persistent watches that are missing, too many, or at the wrong time."""
    for calls in history.sessions().values():
        session = _Session()
        for call in calls:
            yield from session.add(call)


def count(history: History) -> int:
    """Return how many persistent watches were set."""
    return sum(c.ok and c.value.get("registered") is not None for c in history.of("watch"))
