"""What travels over a link: addresses, numbers, flags, bytes; and the settings of TCP."""

from dataclasses import dataclass
from typing import Final, NamedTuple

SYN: Final = 1
FIN: Final = 2
RST: Final = 4
PROBE: Final = 8
"""Wants an acknowledgement though it brings nothing new (a window probe)."""


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
    """Everything before this has arrived; -1 in the first SYN and in a RST of nobody."""
    window: int
    """Bytes after ``ack`` for which there is room."""
    stamp: float
    """When it was sent."""
    echo: float
    """The stamp of what is acknowledged (RFC 7323): tells the round trip."""
    end: int
    """The sequence number after the last byte; see :func:`end_of`."""


def end_of(seq: int, data: bytes, flags: int) -> int:
    """Where a segment ends that begins at ``seq``."""
    return seq + len(data) + 1 if flags & (SYN | FIN) else seq + len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpOptions:
    """Linux's settings, by Linux's defaults, but for those that make a test wait for minutes."""

    send_buffer_bytes: int = 256 * 1024
    """What a kernel takes from a process before the peer's kernel has acknowledged it."""
    receive_buffer_bytes: int = 256 * 1024
    """What a kernel takes from the peer before the process has read it: the window."""
    segment_bytes_max: int = 64 * 1024
    """One segment's data (what segmentation offload hands to the network at once)."""
    split_share: float = 0.05
    """Of the segments, so many are torn in two at a random place."""
    rto_s_min: float = 0.2
    """The first retransmission, unless the round trip is longer; doubled each time."""
    rto_s_max: float = 8.0
    """Linux: 120."""
    give_up_s: float = 20.0
    """Without an acknowledgement for so long, a connection ends (ETIMEDOUT). Linux: 924."""
    syn_rto_s: float = 1.0
    syn_retries: int = 4
    """Unanswered, a connect ends after 31 s (ETIMEDOUT). Linux: 6 retries, 127 s."""
    linger_s: float = 60.0
    """How long a kernel knows a connection that its process has closed (FIN_WAIT_2, TIME_WAIT)."""
