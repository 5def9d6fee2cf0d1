"""Decides which message of a connection is held, dropped, changed or sent twice; opens no socket.

An interception waits on some links for the first request of some APIs, or for the response to one.
It catches one message only.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cluster.mesh import message_frames
from harness.cluster.mesh.message_frames import Piece
from model.capabilities.network import Interception, Selection
from model.roles import NodeId

Way = tuple[NodeId, NodeId]
"""A link: the client of requests, and their server."""


class Interceptor:
    """Waits for one message, and remembers it."""

    def __init__(self, links: Sequence[Way], selection: Selection, what: Interception) -> None:
        """``ValueError`` for an unknown API."""
        self.what = what
        self.caught: str | None = None
        """A description of the caught message; ``None`` before that."""
        self._links = frozenset(links)
        self._apis = {message_frames.api_key(api): api for api in selection.apis}
        self._naming = selection.naming
        self._released = asyncio.Event()
        self._is_holding = False

    @property
    def is_waiting(self) -> bool:
        """True until a message is caught or the interception is released."""
        return self.caught is None and not self._released.is_set()

    @property
    def is_holding(self) -> bool:
        """True while a message is held that can still be delivered."""
        return self._is_holding and not self._released.is_set()

    def api_of(self, way: Way, request: Piece) -> str | None:
        """The API of a request that is waited for on this link; ``None`` for any other piece."""
        if request.head is None or way not in self._links:
            return None
        api = self._apis.get(request.head[1])
        if api is None or self._naming is None:
            return api
        return api if message_frames.has_string(request.data, self._naming) else None

    def catch(self, message: str) -> None:
        """Wait for no other message."""
        self.caught = message
        self._is_holding = self.what in ("hold-request", "hold-response")

    async def hold(self) -> None:
        """Return when the message is released; if this is cancelled, the message is lost."""
        try:
            await self._released.wait()
        finally:
            self._is_holding = False

    def release(self) -> None:
        """Deliver the held message, if any, and stop waiting for one."""
        self._released.set()


class Interceptors:
    """All interceptions of a cluster, by number."""

    def __init__(self) -> None:
        self._all: list[Interceptor] = []

    def add(self, links: Sequence[Way], selection: Selection, what: Interception) -> int:
        """Wait for a message; return the number of the interception."""
        self._all.append(Interceptor(links, selection, what))
        return len(self._all) - 1

    def __getitem__(self, number: int) -> Interceptor:
        return self._all[number]

    def waiting(self) -> list[Interceptor]:
        """Those that have caught nothing yet, the oldest first."""
        return [each for each in self._all if each.is_waiting]

    def release_all(self) -> None:
        """Deliver all held messages."""
        for each in self._all:
            each.release()


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass these bytes on, which may be none."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Hold:
    """Pass these bytes on, and all that follow in their direction, once they are released."""

    data: bytes
    interceptor: Interceptor


@dataclass(frozen=True, slots=True)
class Reset:
    """Drop the message, and reset the connection."""


Verdict = Pass | Hold | Reset


class Conversation:
    """The messages of one connection: requests and responses in, verdicts out."""

    def __init__(self, way: Way, interceptors: Interceptors) -> None:
        self._way = way
        self._interceptors = interceptors
        self._awaited: dict[int, tuple[Interceptor, str]] = {}
        """By correlation id: which interception waits for the response, and its API."""
        self._doubled: dict[int, int] = {}
        """By correlation id of a request that was sent twice: its responses so far."""

    def request(self, piece: Piece) -> Verdict:
        """What happens to the next piece from the client."""
        for interceptor in self._interceptors.waiting():
            api = interceptor.api_of(self._way, piece)
            if api is None or piece.head is None:
                continue
            number = piece.head[-1]
            match interceptor.what:
                case "hold-response" | "drop-response":
                    self._awaited.setdefault(number, (interceptor, api))
                case "corrupt-request" if not message_frames.is_long_enough_to_flip(piece.data):
                    pass
                case _:
                    return self._caught(interceptor, api, piece, number)
        return Pass(piece.data)

    def response(self, piece: Piece) -> Verdict:
        """What happens to the next piece from the server."""
        if piece.head is None:
            return Pass(piece.data)
        number = piece.head[-1]
        if number in self._doubled:
            self._doubled[number] += 1
            if self._doubled[number] == 2:
                del self._doubled[number]
                return Pass(b"")
        interceptor, api = self._awaited.pop(number, (None, ""))
        if interceptor is None or not interceptor.is_waiting:
            return Pass(piece.data)
        return self._caught(interceptor, api, piece, number)

    def _caught(self, interceptor: Interceptor, api: str, piece: Piece, number: int) -> Verdict:
        interceptor.catch("{} of {} to {}".format(api, *self._way))
        match interceptor.what:
            case "hold-request" | "hold-response":
                return Hold(piece.data, interceptor)
            case "drop-request" | "drop-response":
                return Reset()
            case "corrupt-request":
                at = -message_frames.FLIPPED_FROM_END
                return Pass(message_frames.with_flipped_bit(piece.data, at))
            case "duplicate-request":
                self._doubled[number] = 0
                return Pass(piece.data * 2)
