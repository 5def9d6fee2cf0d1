"""Follows the connections to brokers, and checks the order of the responses."""

from collections.abc import Callable
from typing import Final

from checkers.invariants.response_order import HANDSHAKE, ResponseOrder
from harness.cluster.mesh.message_frames import REQUEST, RESPONSE
from harness.cluster.simulated.frame_walk import Walk
from harness.simulation.interceptors import Connection, Run
from model import roles

_BROKER: Final = roles.broker(1)[:-1]
"""What the names of all brokers' hosts begin with."""
_Place = tuple[str, Connection]
"""A broker's host, and a connection to it."""


class _Followed:
    """A connection: its requests that have no response yet, and where its frames begin."""

    __slots__ = ("order", "requests", "responses")

    def __init__(self) -> None:
        self.requests = Walk(REQUEST, is_lost=False)
        self.responses = Walk(RESPONSE, is_lost=False)
        self.order = ResponseOrder()


class ResponseWatch:
    """Sees what brokers receive and what they have sent, of all their connections.

    A connection is not followed any more once it carries something else than Kafka's frames, such
    as the tokens of a client that has asked for them with SaslHandshake v0.

    Args:
        found: is called with a broker and what is wrong about one of its responses.
    """

    def __init__(self, found: Callable[[int, str], None]) -> None:
        self._found = found
        self._followed: dict[_Place, _Followed] = {}
        self._unjudged: set[_Place] = set()

    def __call__(self, run: Run) -> None:
        """See bytes that a server has received, or sent, or the end of its connection."""
        server = run.target if run.to_server else run.source
        if not server.startswith(_BROKER):
            return
        place = server, run.connection
        if not run.data:
            self._followed.pop(place, None)
            self._unjudged.discard(place)
        elif place not in self._unjudged and not self._is_judged(place, run):
            self._followed.pop(place, None)
            self._unjudged.add(place)

    def _is_judged(self, place: _Place, run: Run) -> bool:
        """Judge the bytes; return whether those that follow on this connection are judged, too."""
        followed = self._followed.get(place)
        if followed is None:
            if not run.to_server:
                return True
            followed = self._followed[place] = _Followed()
        if run.to_server:
            for _, (_, api_key, version, number) in followed.requests.frames(run.data):
                followed.order.asked(api_key, number)
                if api_key == HANDSHAKE and version == 0:
                    return False
            return not followed.requests.is_lost
        for _, (_, number) in followed.responses.frames(run.data):
            why = followed.order.answered(number)
            if why is not None:
                self._found(roles.number(place[0]), f"on the connection of {run.target}, {why}")
                return False
        return not followed.responses.is_lost
