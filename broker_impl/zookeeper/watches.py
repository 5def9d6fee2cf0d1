"""The watches of all connections, and which of them a change triggers.

A watch is one-shot or persistent. It belongs to a connection, not to a session: it is removed with
the connection, and the client sets it again on the next one (``SetWatches``).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Generic, TypeVar

from broker_impl.zookeeper.paths import ancestors
from broker_impl.zookeeper.records import EventType, WatcherType
from broker_impl.zookeeper.tree import Change

Watcher = TypeVar("Watcher")


class Kind(StrEnum):
    """The changes that trigger a watch."""

    DATA = "data"
    """The node is created or deleted, or its data is set; set by getData and exists; triggers
    once."""
    CHILD = "child"
    """The node's children change; set by getChildren; triggers once."""
    PERSISTENT = "persistent"
    """Both of these, every time."""
    RECURSIVE = "recursive"
    """DATA changes of the node and of all nodes below it, every time."""


_FIRED_BY: dict[EventType, tuple[Kind, ...]] = {
    EventType.CREATED: (Kind.DATA, Kind.PERSISTENT),
    EventType.CHANGED: (Kind.DATA, Kind.PERSISTENT),
    EventType.DELETED: (Kind.DATA, Kind.CHILD, Kind.PERSISTENT),
    EventType.CHILD: (Kind.CHILD, Kind.PERSISTENT),
}

_REMOVED_BY: dict[int, tuple[Kind, ...]] = {
    WatcherType.CHILDREN: (Kind.CHILD,),
    WatcherType.DATA: (Kind.DATA,),
    WatcherType.ANY: tuple(Kind),
}


def is_one_shot(kind: Kind) -> bool:
    """Return whether a watch is removed when it triggers."""
    return kind in (Kind.DATA, Kind.CHILD)


class WatchTable(Generic[Watcher]):
    """The watches of all connections of one server."""

    def __init__(self) -> None:
        self._watchers: dict[tuple[Kind, str], dict[Watcher, None]] = {}
        self._watches: dict[Watcher, dict[tuple[Kind, str], None]] = {}
        self._recursive = 0

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def __len__(self) -> int:
        return sum(map(len, self._watches.values()))

    @property
    def watchers(self) -> int:
        """The number of connections that have a watch."""
        return len(self._watches)

    @property
    def paths(self) -> int:
        """The number of paths that have a watch."""
        return len({path for _, path in self._watchers})

    def by_path(self) -> dict[str, set[Watcher]]:
        """Return the connections that watch each path, whatever kind their watches are of."""
        found: dict[str, set[Watcher]] = {}
        for (_, path), watchers in self._watchers.items():
            found.setdefault(path, set()).update(watchers)
        return found

    def add(self, kind: Kind, path: str, watcher: Watcher) -> None:
        """Set a watch; setting it again has no effect."""
        key = (kind, path)
        if key in self._watches.setdefault(watcher, {}):
            return
        self._watches[watcher][key] = None
        self._watchers.setdefault(key, {})[watcher] = None
        self._recursive += kind is Kind.RECURSIVE

    def trigger(self, change: Change) -> list[Watcher]:
        """The connections to notify of a change; removes the one-shot watches that it triggers."""
        if not self._watchers:
            return []
        notified: dict[Watcher, None] = {}
        for kind in _FIRED_BY[change.type]:
            watchers = list(self._watchers.get((kind, change.path), ()))
            notified.update(dict.fromkeys(watchers))
            if is_one_shot(kind):
                for watcher in watchers:
                    self._discard((kind, change.path), watcher)
        if self._recursive and change.type is not EventType.CHILD:
            for path in (change.path, *ancestors(change.path)):
                notified.update(dict.fromkeys(self._watchers.get((Kind.RECURSIVE, path), ())))
        return list(notified)

    def find(self, path: str, type_: int, watcher: Watcher) -> list[Kind]:
        """The kinds of watches of that type (``WatcherType``) that a connection has on a path."""
        mine = self._watches.get(watcher, {})
        return [kind for kind in _REMOVED_BY.get(type_, ()) if (kind, path) in mine]

    def remove(self, kinds: Iterable[Kind], path: str, watcher: Watcher) -> None:
        """Remove watches of a connection on a path."""
        for kind in kinds:
            self._discard((kind, path), watcher)

    def forget(self, watcher: Watcher) -> None:
        """Remove all watches of a lost connection."""
        for key in list(self._watches.get(watcher, ())):
            self._discard(key, watcher)

    def _discard(self, key: tuple[Kind, str], watcher: Watcher) -> None:
        del self._watchers[key][watcher]
        if not self._watchers[key]:
            del self._watchers[key]
        del self._watches[watcher][key]
        if not self._watches[watcher]:
            del self._watches[watcher]
        self._recursive -= key[0] is Kind.RECURSIVE
