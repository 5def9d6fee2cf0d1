"""The watches of a client: which callbacks an event calls, and what a new connection sets again.

A watch is one-shot, persistent, or persistent and recursive (ZooKeeper 3.6). Paths are the
server's, with the chroot.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from broker_impl.zookeeper.paths import ancestors
from broker_impl.zookeeper.records import EventType, SetWatches, SetWatches2


@dataclass(frozen=True, slots=True, order=True)
class WatchEvent:
    """A change that triggered a watch; its path is the client's, below the chroot."""

    type: EventType
    path: str
    zxid: int = field(default=0, compare=False)
    """The transaction of the change; not above 0 from servers that do not send it (before 3.9), and
    of a change that was missed while there was no connection."""


Watch = Callable[[WatchEvent], None]


class Kind(Enum):
    """The request that sets a watch, and what it found."""

    DATA = "data"
    """Set by ``getData``, and by ``exists`` on a node that exists; triggers once."""
    EXIST = "exist"
    """Set by ``exists`` on a missing node; triggers once."""
    CHILD = "child"
    """Set by ``getChildren``; triggers once."""
    PERSISTENT = "persistent"
    """Set by ``addWatch``: the node, and the list of its children."""
    RECURSIVE = "recursive"
    """Set by ``addWatch``: the node, and all nodes below it."""


_ONE_SHOT: dict[EventType, tuple[Kind, ...]] = {
    EventType.CREATED: (Kind.DATA, Kind.EXIST),
    EventType.CHANGED: (Kind.DATA, Kind.EXIST),
    EventType.DELETED: (Kind.DATA, Kind.EXIST, Kind.CHILD),
    EventType.CHILD: (Kind.CHILD,),
}
"""The one-shot watches that an event of each type calls."""


class ClientWatches:
    """The watches of one session, over all of its connections."""

    def __init__(self) -> None:
        self._watches: dict[tuple[Kind, str], dict[Watch, None]] = {}
        self._recursive = 0

    def add(self, kind: Kind, path: str, watch: Watch) -> None:
        """Add a watch; adding it again has no effect."""
        if (kind, path) not in self._watches:
            self._recursive += kind is Kind.RECURSIVE
        self._watches.setdefault((kind, path), {})[watch] = None

    def remove(self, path: str) -> None:
        """Remove all watches on a path."""
        for kind in Kind:
            self._pop(kind, path)

    def has(self, path: str) -> bool:
        """Return whether there is a watch on a path, of whatever kind."""
        return any((kind, path) in self._watches for kind in Kind)

    def clear(self) -> None:
        """Remove all watches."""
        self._watches.clear()
        self._recursive = 0

    def triggered(self, type_: EventType, path: str) -> list[Watch]:
        """Return the watches that an event calls, and remove those that trigger once."""
        called: dict[Watch, None] = {}
        for kind in _ONE_SHOT[type_]:
            called.update(self._pop(kind, path))
        called.update(self._watches.get((Kind.PERSISTENT, path), {}))
        if self._recursive and type_ is not EventType.CHILD:
            for each in (path, *ancestors(path)):
                called.update(self._watches.get((Kind.RECURSIVE, each), {}))
        return list(called)

    def again(self, zxid: int, bytes_max: int) -> Iterator[SetWatches | SetWatches2]:
        """Return the packets that set all watches on a new connection, of bounded size.

        Changes after ``zxid`` trigger the one-shot watches; persistent watches miss them.
        """
        batch: list[tuple[Kind, str]] = []
        size = 0
        for kind, path in self._watches:
            batch.append((kind, path))
            size += 4 + len(path.encode())
            if size > bytes_max:
                yield _packet(zxid, batch)
                batch, size = [], 0
        if batch:
            yield _packet(zxid, batch)

    def _pop(self, kind: Kind, path: str) -> dict[Watch, None]:
        found = self._watches.pop((kind, path), {})
        self._recursive -= kind is Kind.RECURSIVE and bool(found)
        return found


def _packet(zxid: int, batch: list[tuple[Kind, str]]) -> SetWatches | SetWatches2:
    """Return the packet for these watches: the older one unless a watch is persistent."""
    data, exist, child, persistent, recursive = (
        tuple(path for each, path in batch if each is kind) for kind in Kind
    )
    if persistent or recursive:
        return SetWatches2(zxid, data, exist, child, persistent, recursive)
    return SetWatches(zxid, data, exist, child)
