"""What happens to a leader, and what it asks its server to do."""

from collections.abc import Sequence

import msgspec

from broker_impl.zookeeper.quorum.ensemble import ServerId
from broker_impl.zookeeper.quorum.packets import Packet, Request
from broker_impl.zookeeper.records import Id
from broker_impl.zookeeper.txn_records import Proposal

Key = int
"""A connection of a learner; a server that connects again has another one."""


class Connected(msgspec.Struct, frozen=True):
    """A learner has connected."""

    key: Key
    now: float


class Arrived(msgspec.Struct, frozen=True):
    """A packet of a learner has arrived."""

    key: Key
    packet: Packet
    now: float


class Left(msgspec.Struct, frozen=True):
    """The connection of a learner has ended."""

    key: Key


class Proposed(msgspec.Struct, frozen=True):
    """These transactions are next in the order of all transactions; not empty."""

    proposals: Sequence[Proposal]


class Logged(msgspec.Struct, frozen=True):
    """The leader's own log holds everything up to a zxid, durably."""

    zxid: int


class SyncRequested(msgspec.Struct, frozen=True):
    """A sync is next in the order of all requests; without a key, of a client of the leader."""

    key: Key | None
    request: Request


class Returning(msgspec.Struct, frozen=True):
    """A client has brought its session to a server; without a key, to the leader.

    It is next in the order of all requests.
    """

    key: Key | None
    session_id: int


class Tick(msgspec.Struct, frozen=True):
    """Half a tick has passed."""

    now: float


class StateSent(msgspec.Struct, frozen=True):
    """A learner was sent the state, and everything that was meant for it meanwhile."""

    key: Key


Event = (
    Connected | Arrived | Left | Proposed | Logged | SyncRequested | Returning | StateSent | Tick
)


class Send(msgspec.Struct, frozen=True):
    """Send encoded packets to a learner."""

    key: Key
    data: bytes


class SendState(msgspec.Struct, frozen=True):
    """Send SNAP with the whole state, before everything that follows for this learner.

    ``StateSent`` follows: transactions may be committed meanwhile, and the state that is sent may
    contain their effects.
    """

    key: Key


class Drop(msgspec.Struct, frozen=True):
    """Close the connection of a learner."""

    key: Key
    reason: str


class Serve(msgspec.Struct, frozen=True):
    """The epoch is established: serve clients."""

    epoch: int


class Commit(msgspec.Struct, frozen=True):
    """Apply the transactions up to a zxid."""

    zxid: int


class Forwarded(msgspec.Struct, frozen=True):
    """A learner has forwarded a request of one of its clients: a write or a sync."""

    key: Key
    server: ServerId
    request: Request
    ids: tuple[Id, ...]


class Revalidate(msgspec.Struct, frozen=True):
    """A client has brought its session to a learner, which asks whether the session lives."""

    key: Key
    server: ServerId
    session_id: int
    timeout_ms: int


class Touched(msgspec.Struct, frozen=True):
    """Sessions of a learner's clients have shown signs of life; each with its timeout (ms)."""

    server: ServerId
    sessions: Sequence[tuple[int, int]]


class Synced(msgspec.Struct, frozen=True):
    """Answer a sync of one of the leader's own clients."""

    request: Request


class Returned(msgspec.Struct, frozen=True):
    """Answer whether the session lives that a client has brought to a server, or to the leader.

    Everything is committed that was proposed before the client came: the writes over its former
    connection too. Otherwise the server could take one of them for a write over the new connection
    that has the same number.
    """

    key: Key | None
    session_id: int


class Resign(msgspec.Struct, frozen=True):
    """Give up leading."""

    reason: str


Effect = (
    Send
    | SendState
    | Drop
    | Serve
    | Commit
    | Forwarded
    | Revalidate
    | Touched
    | Synced
    | Returned
    | Resign
)
