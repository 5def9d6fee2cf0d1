"""A TCP segment as it travels over a link, and the settings of TCP."""

from dataclasses import dataclass
from typing import Final, NamedTuple

SYN: Final = 1
FIN: Final = 2
RST: Final = 4
PROBE: Final = 8
"""Asks for an acknowledgement although it carries nothing new (a window probe)."""


class Address(NamedTuple):
    """One end of a connection."""

    ip: str
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}"


class Segment(NamedTuple):
    """One unit of TCP. Sequence numbers count bytes from 0; SYN and FIN take one each."""

    source: Address
    target: Address
    seq: int
    data: bytes
    flags: int
    ack: int
    """All bytes before this number have arrived; -1 in a client's SYN."""
    window: int
    """The number of bytes after ``ack`` for which there is room."""
    stamp: float
    """When the segment was sent."""
    echo: float
    """The stamp of what is acknowledged (RFC 7323); the sender computes the round trip from it."""
    end: int
    """The sequence number after the last byte; see :func:`end_of`."""


def end_of(seq: int, data: bytes, flags: int) -> int:
    """Return where a segment ends that begins at ``seq``."""
    return seq + len(data) + 1 if flags & (SYN | FIN) else seq + len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpOptions:
    """Linux's TCP settings and defaults, except those that would make a test wait for minutes."""

    send_buffer_bytes: int = 256 * 1024
    """What a kernel takes from a process before the peer's kernel has acknowledged it."""
    receive_buffer_bytes: int = 256 * 1024
    """What a kernel takes from the peer before the process has read it: the window."""
    segment_bytes_max: int = 64 * 1024
    """The most data in one segment (as segmentation offload passes to the network at once)."""
    split_share: float = 0.05
    """The share of segments that are split at a random place."""
    rto_s_min: float = 0.2
    """The first retransmission time-out, unless the round trip is longer; doubled each time."""
    rto_s_max: float = 8.0
    """Linux: 120."""
    give_up_s: float = 20.0
    """Without an acknowledgement for this long, a connection ends (ETIMEDOUT). Linux: 924."""
    syn_rto_s: float = 1.0
    syn_retries: int = 4
    """A connect without an answer ends after 31 s (ETIMEDOUT). Linux: 6 retries, 127 s."""
    linger_s: float = 60.0
    """How long a kernel keeps a connection that its process has closed (FIN_WAIT_2, TIME_WAIT)."""
