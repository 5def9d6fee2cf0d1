"""The network: hosts by name and address, and one link for each direction between two hosts."""

import random
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from harness.simulation.interceptors import Run, Tap
from harness.simulation.segment import RST, SYN, Segment, end_of
from harness.simulation.timeline import Timeline
from harness.simulation.tracing import Trace

LOOPBACK = "127.0.0.1"


class ConnectionEnd(Protocol):
    """One end of a connection."""

    def reset(self) -> None:
        """Receive a RST that a third party sent to end the connection."""


class NetworkHost(Protocol):
    """A host, as links see it."""

    name: str
    ip: str
    is_on: bool

    def arrive(self, segment: Segment) -> None:
        """Process a segment that has arrived at this host."""

    def refuse(self, segment: Segment) -> None:
        """Answer a segment of an unknown connection with a RST."""

    def towards(self, ip: str) -> Sequence[ConnectionEnd]:
        """The local ends of open connections with an address."""


class Link:
    """The path from one host to another. TCP sends again what is lost on it."""

    def __init__(
        self, network: "Network", source: NetworkHost, target: NetworkHost, number: int
    ) -> None:
        self.source = source
        self.target = target
        self.name = f"{source.name}>{target.name}"
        self.latency_s = network.latency_s if source is not target else network.latency_s / 10
        self.jitter_s = network.jitter_s if source is not target else network.jitter_s / 10
        """The latency is longer by up to this much, uniformly distributed."""
        self.bytes_per_s: float | None = None
        """Bandwidth; None without a limit."""
        self.is_cut = False
        """A black hole: segments sent or in flight are lost without an error."""
        self.refuses = False
        """Connects are answered with a RST, even if a process listens."""
        self.loss = 0.0
        """The share of segments that are lost at random, 0 to 1."""
        self.dropped = 0
        """The number of segments lost at random."""
        self.taps: list[Tap] = []
        self.carried = 0
        """The number of segments that arrived."""
        self.lost = 0
        """The number of segments lost to a cut, or to a host that is off."""
        self.back: Link = self
        self._number = number
        self._network = network
        self._timeline = network.timeline
        self._random = network.rng.random
        self._free_at = 0.0

    def carry(self, segment: Segment, not_before: float) -> float:
        """Send a segment; return when it arrives, which is never before ``not_before``."""
        if self.is_cut:
            self.lost += 1
            return not_before
        if self.loss and self._random() < self.loss:
            self.dropped += 1
            return not_before
        leaves = self._timeline.now
        if self.bytes_per_s is not None:
            leaves = max(leaves, self._free_at) + len(segment.data) / self.bytes_per_s
            self._free_at = leaves
        arrives = leaves + self.latency_s + self.jitter_s * self._random()
        if arrives < not_before:
            arrives = not_before
        self._timeline.at(arrives, self._arrive, segment)
        return arrives

    def show(self, run: Run) -> None:
        """Show bytes to the watcher of the network, if there is one."""
        if self._network.watch is not None:
            self._network.watch(run)

    def _arrive(self, segment: Segment) -> None:
        if self.is_cut or not self.target.is_on:
            self.lost += 1
            return
        self.carried += 1
        flags = segment.flags
        self._network.trace.segment(
            self._timeline.now, self._number, self.name, flags, segment.data
        )
        if self.refuses and flags & SYN and segment.ack < 0:
            self.target.refuse(segment)
        else:
            self.target.arrive(segment)


class Network:
    """All hosts and links of a world."""

    def __init__(
        self,
        timeline: Timeline,
        trace: Trace,
        rng: random.Random,
        *,
        latency_s: float = 0.0002,
        jitter_s: float = 0.0008,
    ) -> None:
        """``latency_s``, ``jitter_s``: the defaults of new links; loopback links take a tenth."""
        self.timeline = timeline
        self.trace = trace
        self.rng = rng
        self.latency_s = latency_s
        self.jitter_s = jitter_s
        self.watch: Callable[[Run], None] | None = None
        """Sees the bytes that servers receive, as the taps have left them, and the end of each
        connection there; and the bytes that servers have sent, before the taps see them."""
        self._by_name: dict[str, NetworkHost] = {}
        self._by_ip: dict[str, NetworkHost] = {}
        self._links: dict[tuple[str, str], Link] = {}

    def add(self, stack: NetworkHost) -> None:
        """Add a host."""
        if stack.name in self._by_name or stack.ip in self._by_ip:
            raise ValueError(f"the host {stack.name} or the address {stack.ip} exists already")
        self._by_name[stack.name] = self._by_ip[stack.ip] = stack

    def resolve(self, name: str) -> str:
        """Resolve a host name to its address; an address resolves to itself.

        Raises:
            socket.gaierror: no host has that name.
        """
        if name == "localhost" or name.startswith("127."):
            return LOOPBACK
        stack = self._by_name.get(name)
        if stack is not None:
            return stack.ip
        if name.replace(".", "").isdigit() and name.count(".") == 3:
            return name
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def route(self, origin: NetworkHost, ip: str) -> Link:
        """The link for segments to an address; a black hole if no host has the address."""
        target = origin if ip == LOOPBACK else self._by_ip.get(ip)
        if target is not None:
            return self.link(origin.name, target.name)
        nowhere = Link(self, origin, origin, -1)
        nowhere.is_cut = True
        return nowhere

    def link(self, source: str, target: str) -> Link:
        """The link from one host to another, by name."""
        found = self._links.get((source, target))
        if found is None:
            there, back = self._by_name[source], self._by_name[target]
            found = self._links[source, target] = Link(self, there, back, len(self._links))
            if source != target:
                found.back = self.link(target, source)
                found.back.back = found
        return found

    # Faults.

    def cut(self, source: str, target: str) -> None:
        """Lose everything sent from one host to the other, in this direction only."""
        self._note(f"cut {source}>{target}")
        self.link(source, target).is_cut = True

    def heal(self, source: str, target: str) -> None:
        """End a cut; TCP sends again what was lost."""
        self._note(f"heal {source}>{target}")
        self.link(source, target).is_cut = False

    def reset(self, one: str, other: str) -> int:
        """End every connection between two hosts by a RST to both ends; return how many ends."""
        self._note(f"reset {one}-{other}")
        ends = [*self._by_name[one].towards(self._by_name[other].ip)]
        if one != other:
            ends += self._by_name[other].towards(self._by_name[one].ip)
        for end in ends:
            end.reset()
        return len(ends)

    def refuse(self, source: str, target: str) -> None:
        """Refuse connects from one host to the other; existing connections continue."""
        self._note(f"refuse {source}>{target}")
        self.link(source, target).refuses = True

    def admit(self, source: str, target: str) -> None:
        """End the refusal of connects."""
        self._note(f"admit {source}>{target}")
        self.link(source, target).refuses = False

    def _note(self, what: str) -> None:
        self.trace.note(self.timeline.now, what)


def rst(to: Segment) -> Segment:
    """The RST that a kernel sends for a connection it does not know."""
    seq = max(to.ack, 0)
    end = end_of(seq, b"", RST)
    return Segment(to.target, to.source, seq, b"", RST, to.end, 0, to.stamp, to.stamp, end)
