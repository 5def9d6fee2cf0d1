"""Holds, drops, corrupts or repeats single messages on the links of a simulated world.

A tap sees bytes, in which Kafka's frames are found first. The frame that a fault concerns is then
held or changed, or its connection is reset.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from harness.cluster.mesh import message_frames
from harness.cluster.mesh.message_frames import FLIPPED_FROM_END, REQUEST, RESPONSE, SIZE_BYTES
from harness.cluster.simulated.frame_walk import Walk
from harness.simulation.interceptors import Connection, Deliver, Hold, Kill, Run, Verdict
from harness.simulation.network import Link, Network
from model.capabilities.network import Interception, Selection
from model.roles import NodeId


class _Repeated(NamedTuple):
    """A request that was delivered twice."""

    connection: Connection
    number: int
    """Its correlation id."""


class MessageInterceptor:
    """Waits on some links for one message, and holds, drops, corrupts or repeats it."""

    def __init__(self, links: Sequence[Link], selection: Selection, what: Interception) -> None:
        """``links`` lead from client to server; catches the first of the selected messages."""
        self._apis = {message_frames.api_key(api): api for api in selection.apis}
        self._naming = selection.naming
        self._what = what
        self._links = tuple(links)
        self._walks: dict[tuple[Connection, bool], Walk] = {}
        self._asked: dict[tuple[Connection, int], str] = {}
        self._held: Run | None = None
        self._repeated: _Repeated | None = None
        self._responses = 0
        """How many responses to the repeated request have arrived."""
        self.caught: str | None = None
        """A description of the caught message; ``None`` before that."""
        for link in self._links:
            link.taps.append(self._see_request)
            if what in ("hold-response", "drop-response", "duplicate-request"):
                link.back.taps.append(self._see_response)

    @property
    def is_holding(self) -> bool:
        return self._held is not None

    def open(self) -> None:
        """Deliver the held message, if any, and stop waiting for one."""
        self._remove_from_requests()
        if self._repeated is None:
            self._remove_from_responses()
        held, self._held = self._held, None
        if held is not None:
            held.release()

    def _see_request(self, run: Run) -> Verdict:
        if not run.to_server:
            return Deliver()
        for start, (size, key, _, number) in self._walk(run, REQUEST).frames(run.data):
            api = self._apis.get(key)
            end = start + SIZE_BYTES + size
            if api is None or not self._is_named(run.data[start:end], size):
                continue
            verdict = self._on_request(run, start, end, number)
            if verdict is not None:
                return self._catch(run, verdict, f"{api} of {run.source} to {run.target}")
            self._asked[run.connection, number] = api
        return Deliver()

    def _on_request(self, run: Run, start: int, end: int, number: int) -> Verdict | None:
        """The verdict on a run with a selected request; ``None`` if it passes unchanged."""
        is_whole = end <= len(run.data)
        match self._what:
            case "hold-request":
                return Hold(start)
            case "drop-request":
                return Kill()
            case "corrupt-request" if is_whole:
                if message_frames.is_long_enough_to_flip(run.data[start:end]):
                    flipped = message_frames.with_flipped_bit(run.data, end - FLIPPED_FROM_END)
                    return Deliver(flipped)
            case "duplicate-request" if is_whole:
                self._repeated = _Repeated(run.connection, number)
                return Deliver(run.data[:end] + run.data[start:])
            case _:
                pass
        return None

    def _is_named(self, frame: bytes, size: int) -> bool:
        """Return whether a request names what the selection does; a part of one does not."""
        if self._naming is None:
            return True
        is_whole = len(frame) == SIZE_BYTES + size
        return is_whole and message_frames.has_string(frame, self._naming)

    def _see_response(self, run: Run) -> Verdict:
        if run.to_server:
            return Deliver()
        if self._what == "duplicate-request":
            return self._without_second_response(run)
        for start, (_, number) in self._walk(run, RESPONSE).frames(run.data):
            api = self._asked.get((run.connection, number))
            if api is not None:
                verdict = Hold(start) if self._what == "hold-response" else Kill()
                return self._catch(run, verdict, f"{api} of {run.target} to {run.source}")
        return Deliver()

    def _without_second_response(self, run: Run) -> Verdict:
        """Remove the second response to a repeated request, which has arrived whole, as a rule.

        If it arrives in pieces, the connection is reset.
        """
        for start, (size, number) in self._walk(run, RESPONSE).frames(run.data):
            if self._repeated != _Repeated(run.connection, number):
                continue
            self._responses += 1
            if self._responses == 2:
                self._remove_from_responses()
                end = start + SIZE_BYTES + size
                is_whole = RESPONSE.pack(size, number) == run.data[start : start + RESPONSE.size]
                if not is_whole or end > len(run.data):
                    return Kill()
                return Deliver(run.data[:start] + run.data[end:])
        return Deliver()

    def _walk(self, run: Run, head: Struct) -> Walk:
        return self._walks.setdefault((run.connection, run.to_server), Walk(head))

    def _catch(self, run: Run, verdict: Verdict, message: str) -> Verdict:
        self._remove_from_requests()
        if self._what != "duplicate-request":
            self._remove_from_responses()
        if isinstance(verdict, Hold):
            self._held = run
        self.caught = message
        return verdict

    def _remove_from_requests(self) -> None:
        for link in self._links:
            _take_out(link, self._see_request)

    def _remove_from_responses(self) -> None:
        for link in self._links:
            _take_out(link.back, self._see_response)


def _take_out(link: Link, tap: object) -> None:
    link.taps[:] = [each for each in link.taps if each != tap]


class Messages:
    """All traps of a cluster, by number."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._interceptors: list[MessageInterceptor] = []

    def trap(
        self, links: Sequence[tuple[NodeId, NodeId]], selection: Selection, what: Interception
    ) -> int:
        """Set a trap and return its number."""
        found = [self._network.link(*link) for link in links]
        self._interceptors.append(MessageInterceptor(found, selection, what))
        return len(self._interceptors) - 1

    def __getitem__(self, number: int) -> MessageInterceptor:
        return self._interceptors[number]

    def open_all(self) -> None:
        """Open all traps."""
        for trap in self._interceptors:
            trap.open()
