"""A session with ZooKeeper, as the clients of workloads use it: requests, watches, and its end.

Both libraries (:mod:`workloads.client.zk_kazoo`, :mod:`workloads.client.zk_asyncio`) are adapted to
this interface. A session moves to another server when its connection is lost, and is never
replaced by a new one: once it has expired or is closed, the client has ended.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

WATCH_LOST = "none"
"""The event of a watch that the library has forgotten, because its connection was lost."""


class Stat(NamedTuple):
    """A znode's metadata, as far as histories record it."""

    czxid: int
    """The transaction that created it."""
    mzxid: int
    """The transaction that last set its data."""
    pzxid: int
    """The last transaction that created or deleted a child."""
    version: int
    cversion: int
    owner: int
    """The session of an ephemeral znode; 0 for any other."""


class Create(NamedTuple):
    """A part of a multi: create a znode."""

    path: str
    data: str
    ephemeral: bool = False


class SetData(NamedTuple):
    """A part of a multi: set a znode's data."""

    path: str
    data: str
    version: int = -1


class Delete(NamedTuple):
    """A part of a multi: delete a znode."""

    path: str
    version: int = -1


class Check(NamedTuple):
    """A part of a multi: require the version of a znode."""

    path: str
    version: int


Part = Create | SetData | Delete | Check


class Rejected(Exception):
    """The server has answered that the request was not executed; the message is its error."""


class Unknown(Exception):
    """No answer says whether the request was executed; the message says why."""


class NotSent(Exception):
    """The request was certainly not sent, since the session has no connection."""


Event = tuple[str, str]
"""The type of a change (``created``, ``changed``, ``deleted``, ``child``; ``none`` if the watch was
lost) and the path of the znode."""
Watch = Callable[[Event], None]


class Session(Protocol):
    """One session. Requests raise :class:`Rejected`, :class:`Unknown` and :class:`NotSent`.

    No request is ever sent again. A watch is called before any reply that shows the change.
    """

    @property
    def id(self) -> int:
        """The id that the server gave to the session."""
        ...

    @property
    def zxid(self) -> int:
        """The zxid of the latest reply."""
        ...

    @property
    def connections(self) -> int:
        """How many connections have carried the session."""
        ...

    @property
    def timeout_ms(self) -> int:
        """The timeout of the session that the server has granted."""
        ...

    @property
    def has_expired(self) -> bool:
        """Whether a server has said that the session has expired."""
        ...

    @property
    def unasked(self) -> list[Event]:
        """The events that came without a watch; the client removes those that it has recorded."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the session has expired or was closed."""
        ...

    async def open(self) -> None:
        """Start the session; return once it exists."""
        ...

    async def connected(self, timeout_s: float) -> None:
        """Wait until requests can be sent; raises :class:`NotSent` if they cannot in time."""
        ...

    async def close(self) -> bool:
        """End the session; return whether the server has confirmed that."""
        ...

    async def abandon(self) -> None:
        """Stop without ending the session, as a killed client does."""
        ...

    async def create(self, path: str, data: str, *, ephemeral: bool, sequential: bool) -> str:
        """Create a znode and return its path."""
        ...

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode of that version; -1 matches any."""
        ...

    async def set(self, path: str, data: str, version: int = -1) -> Stat:
        """Set the data of a znode of that version; -1 matches any."""
        ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[str, Stat]:
        """Return a znode's data and Stat."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return a znode's Stat; ``None`` if there is none."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        """Return the names of a znode's children, sorted, and its Stat."""
        ...

    async def multi(self, parts: Sequence[Part]) -> list[Stat | str | None]:
        """Execute all parts or none; return the Stat of a set, the path of a creation."""
        ...

    async def intrude(self, session: int) -> bool:
        """Ask for another session with a wrong password; return whether a server gives it away."""
        ...

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed."""
        ...
