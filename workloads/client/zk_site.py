"""What an operation on ZooKeeper works with: a session that notes what it has written and seen.

An operation may consist of several requests. Whether its outcome is certain depends on those before
the one that failed, which is noted here.
"""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from workloads.client.zk_session import (
    Change,
    Event,
    NotSent,
    Part,
    Rejected,
    Session,
    Stat,
    Unknown,
    Watch,
)

T = TypeVar("T")


class Withdrawn(Exception):
    """The operation has undone what it had begun, and so has had no lasting effect."""


class Site:
    """A session, with the notes of one operation and the watches of all."""

    def __init__(self, session: Session, *, patience_s: float, wait_s: float) -> None:
        """``patience_s`` is how long a request waits for a connection; ``wait_s``, how long an
        operation waits for other clients."""
        self.session = session
        self.wait_s = wait_s
        self._patience_s = patience_s
        self.events: list[list[int | str]] = []
        """The watch events since the last completion: number and type."""
        self._watching: dict[str, int] = {}
        """The number of the watch that is set on each znode."""
        self.changes: list[list[int | str]] = []
        """The events of persistent watches since the last completion: number, type, path, zxid."""
        self._observed: dict[str, int] = {}
        """The number of the persistent watch that is set on each znode."""
        self.has_written = False
        """Whether a write of this operation was executed, or may have been."""
        self.attempt: dict[str, object] = {}
        """What the write was whose outcome is unknown."""

    def begin(self) -> None:
        """Begin the next operation."""
        self.has_written = False
        self.attempt = {}

    async def create(
        self, path: str, data: str, *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a znode and return its path."""
        await self._ready()
        return await self._write(
            self.session.create(path, data, ephemeral=ephemeral, sequential=sequential)
        )

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode of that version; -1 matches any."""
        await self._ready()
        await self._write(self.session.delete(path, version))

    async def set(self, path: str, data: str, version: int = -1) -> Stat:
        """Set the data of a znode of that version; -1 matches any."""
        await self._ready()
        return await self._write(self.session.set(path, data, version))

    async def multi(self, parts: Sequence[Part]) -> list[Stat | str | None]:
        """Execute all parts or none."""
        await self._ready()
        return await self._write(self.session.multi(parts))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[str, Stat]:
        """Return a znode's data and Stat."""
        await self._ready()
        return await self.session.get(path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return a znode's Stat; ``None`` if there is none."""
        await self._ready()
        return await self.session.exists(path, watch)

    async def children(self, path: str) -> tuple[list[str], Stat]:
        """Return the names of a znode's children, sorted, and its Stat."""
        await self._ready()
        return await self.session.children(path)

    async def sync(self, path: str) -> int:
        """Synchronize the server; return the number of the connection for which that holds."""
        await self._ready()
        number = self.session.connections
        await self.session.sync(path)
        return number

    def watch(self, path: str, number: int) -> Watch | None:
        """Return a watch of that number that records its event; ``None`` if the session has a
        watch on the znode already."""
        if path in self._watching:
            return None
        self._watching[path] = number

        def record(event: Event) -> None:
            if self._watching.get(path) == number:
                del self._watching[path]
            self.events.append([number, event[0]])

        return record

    def unwatch(self, path: str, number: int) -> None:
        """Forget a watch that was not set, since the request was not executed."""
        if self._watching.get(path) == number:
            del self._watching[path]

    async def observe(self, path: str, number: int, *, recursive: bool) -> bool:
        """Set a persistent watch of that number that records its events; return false if the
        session has one on the znode already."""
        if path in self._observed:
            return False

        def record(change: Change) -> None:
            self.changes.append([number, *change])

        await self._ready()
        await self.session.observe(path, record, recursive=recursive)
        self._observed[path] = number
        return True

    async def unobserve(self, path: str) -> int | None:
        """Remove the persistent watch on a znode, and return its number."""
        await self._ready()
        try:
            await self.session.unobserve(path)
        except Rejected:
            self._observed.pop(path, None)  # the server has none
            raise
        return self._observed.pop(path, None)

    async def _ready(self) -> None:
        await self.session.connected(self._patience_s)

    async def _write(self, request: Awaitable[T]) -> T:
        try:
            result = await request
        except (Rejected, NotSent):
            raise
        except Unknown:
            self.has_written = True
            raise
        self.has_written = True
        return result
