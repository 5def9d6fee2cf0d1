"""Holds, drops or corrupts single messages on the links of a simulated world.

A tap sees bytes; this module finds Kafka's frames in them: a size, followed by the header of a
request, or by the correlation id of the request that is answered. A tap that is set in the middle
of a connection synchronizes at the first run of bytes that can only be the beginning of a message.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from broker_impl.wire.messages.apis import APIS
from harness.simulation.interceptors import Connection, Deliver, Hold, Kill, Run, Verdict
from harness.simulation.network import Link, Network
from model.capabilities.network import Interception
from model.roles import NodeId

_REQUEST: Final = Struct(">ihhi")
"""Size, API key, API version, correlation id."""
_RESPONSE: Final = Struct(">ii")
"""Size, correlation id."""
_SIZE_BYTES: Final = 4
_FLIPPED_FROM_END: Final = 9
"""The distance of the byte to flip from the end of a request.

In a Produce request of one partition from the workloads' clients, the value of the last record is
there: one byte for its number of headers, which is 0, follows it.
"""
_FRAME_BYTES: Final = range(8, 1 << 27)
"""The possible sizes of a message."""


def api_key(name: str) -> int:
    """The key of an API; ``ValueError`` if no API has this name."""
    for key, api in APIS.items():
        if api.name == name:
            return key
    raise ValueError(f"no API is called {name}")


class Walk:
    """Finds the beginnings of frames in one direction of one connection as bytes arrive."""

    def __init__(self, head: Struct) -> None:
        """``head``: the layout of the beginning of a frame."""
        self._head = head
        self._is_lost = True
        self._skip = 0
        self._begun = b""

    def frames(self, data: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the index in ``data`` at which each frame begins, and its head.

        A frame whose head ends in a later run begins at 0 of that run.
        """
        at = min(self._skip, len(data))
        self._skip -= at
        if self._is_lost:
            self._begun = b""
        while at < len(data):
            start = max(at - len(self._begun), 0)
            head = self._begun + data[at : at + self._head.size - len(self._begun)]
            if len(head) < self._head.size:
                self._begun = head
                return
            fields = self._head.unpack(head)
            self._is_lost = fields[0] not in _FRAME_BYTES or not self._is_plausible(fields)
            if self._is_lost:
                return
            end = at - len(self._begun) + _SIZE_BYTES + fields[0]
            self._begun = b""
            yield start, fields
            at = min(end, len(data))
            self._skip = end - at

    def _is_plausible(self, fields: tuple[int, ...]) -> bool:
        if self._head is _RESPONSE:
            return fields[1] >= 0
        _, key, version, number = fields
        return key in APIS and version in APIS[key].versions and number >= 0


class MessageInterceptor:
    """Waits on some links for one message, and holds, drops or corrupts it."""

    def __init__(self, links: Sequence[Link], apis: Sequence[str], what: Interception) -> None:
        """``links`` lead from client to server; catches the first message of one of ``apis``."""
        self._apis = {api_key(api): api for api in apis}
        self._what = what
        self._links = tuple(links)
        self._walks: dict[tuple[Connection, bool], Walk] = {}
        self._asked: dict[tuple[Connection, int], str] = {}
        self._held: Run | None = None
        self.caught: str | None = None
        """A description of the caught message; ``None`` before that."""
        for link in self._links:
            link.taps.append(self._see_request)
            if what in ("hold-response", "drop-response"):
                link.back.taps.append(self._see_response)

    @property
    def is_holding(self) -> bool:
        return self._held is not None

    def open(self) -> None:
        """Deliver the held message, if any, and stop waiting for one."""
        self._remove()
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def _see_request(self, run: Run) -> Verdict:
        if not run.to_server:
            return Deliver()
        for start, (size, key, _, number) in self._walk(run, _REQUEST).frames(run.data):
            api = self._apis.get(key)
            if api is None:
                continue
            if self._what == "corrupt-request":
                end = start + _SIZE_BYTES + size
                if end > len(run.data) or size <= _REQUEST.size + _FLIPPED_FROM_END:
                    continue
                flipped = Deliver(_flipped(run.data, end - _FLIPPED_FROM_END))
                return self._catch(run, flipped, f"{api} of {run.source} to {run.target}")
            if self._what == "hold-request":
                return self._catch(run, Hold(start), f"{api} of {run.source} to {run.target}")
            self._asked[run.connection, number] = api
        return Deliver()

    def _see_response(self, run: Run) -> Verdict:
        if run.to_server:
            return Deliver()
        for start, (_, number) in self._walk(run, _RESPONSE).frames(run.data):
            api = self._asked.get((run.connection, number))
            if api is not None:
                verdict = Hold(start) if self._what == "hold-response" else Kill()
                return self._catch(run, verdict, f"{api} of {run.target} to {run.source}")
        return Deliver()

    def _walk(self, run: Run, head: Struct) -> Walk:
        return self._walks.setdefault((run.connection, run.to_server), Walk(head))

    def _catch(self, run: Run, verdict: Verdict, message: str) -> Verdict:
        self._remove()
        if isinstance(verdict, Hold):
            self._held = run
        self.caught = message
        return verdict

    def _remove(self) -> None:
        for link in self._links:
            _take_out(link, self._see_request)
            _take_out(link.back, self._see_response)


def _flipped(data: bytes, at: int) -> bytes:
    """Flip one bit of the byte at ``at``."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _take_out(link: Link, tap: object) -> None:
    link.taps[:] = [each for each in link.taps if each != tap]


class Messages:
    """All traps of a cluster, by number."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._interceptors: list[MessageInterceptor] = []

    def trap(
        self, links: Sequence[tuple[NodeId, NodeId]], apis: Sequence[str], what: Interception
    ) -> int:
        """Set a trap and return its number."""
        found = [self._network.link(*link) for link in links]
        self._interceptors.append(MessageInterceptor(found, apis, what))
        return len(self._interceptors) - 1

    def __getitem__(self, number: int) -> MessageInterceptor:
        return self._interceptors[number]

    def open_all(self) -> None:
        """Open all traps."""
        for trap in self._interceptors:
            trap.open()
