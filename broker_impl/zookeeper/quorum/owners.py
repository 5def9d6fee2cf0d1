"""Which server each session's client is connected to: writes over a former connection are refused.

A client that moves to another server may have sent writes to the former one, which arrive later
than those it sends now. They would be executed out of their order (ZOOKEEPER-710).
"""

from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.quorum.ensemble import ServerId
from broker_impl.zookeeper.records import Op


def is_refused(owner: ServerId | None, server: ServerId) -> bool:
    """Return whether a write is refused that comes from a server which may not be the owner's."""
    return owner is not None and owner != server


class Owners:
    """The servers of the sessions, as the leader knows them."""

    def __init__(self, me: ServerId) -> None:
        self._me = me
        self._servers: dict[int, ServerId] = {}

    def refusal(self, session_id: int, server: ServerId, op: int) -> Code:
        """Return the error of a write that came from a server; OK if that is the session's.

        A session of which the leader knows no server belongs to the first that writes for it.
        """
        if op == Op.CREATE_SESSION:
            self._servers[session_id] = server
            return Code.OK
        if is_refused(self._servers.get(session_id), server):
            return Code.SESSION_MOVED
        self._servers.setdefault(session_id, server)
        return Code.OK

    def move(self, session_id: int, server: ServerId) -> None:
        """A client has brought its session to a server."""
        self._servers[session_id] = server

    def forget(self, session_id: int) -> None:
        """A session has ended."""
        self._servers.pop(session_id, None)
