"""Fault intervals, as far as kernels need to know faults."""

from typing import NamedTuple


class FaultInterval(NamedTuple):
    """A fault interval: from the fault's request until it was healed, if ever."""

    id: int
    from_ns: int
    to_ns: int | None
    misleads: bool = True
    """Whether it may leave a former leader answering."""
    silences: bool = False
    """Whether the brokers that it struck give no answer while it is active."""
    disconnects: bool = True
    """Whether brokers need their timeouts to hear of a leader after it; otherwise they hear
    soon."""
    nodes: frozenset[str] | None = None
    """The brokers that it struck; ``None`` if it may have been any."""
    restarts: bool = False
    """Whether these brokers ended, and started again with its healing."""
    keys: frozenset[str] | None = None
    """The partitions whose leaders it may have replaced; ``None`` for all partitions of clients."""
    coordinators: bool = True
    """Whether it may have replaced coordinators of groups."""


SETTLED_NS = 15_000_000_000
"""The longest time after such a fault for which a broker may not have heard of a new leader."""
