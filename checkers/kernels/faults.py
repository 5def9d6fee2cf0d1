"""Fault intervals, as far as kernels need to know faults."""

from collections.abc import Sequence
from typing import NamedTuple


class FaultInterval(NamedTuple):
    """The interval of a fault, from its request until it was healed (``None``: never)."""

    id: int
    from_ns: int
    to_ns: int | None
    misleads: bool = True
    """Whether a former leader may continue to answer requests because of the fault."""
    silences: bool = False
    """Whether the affected brokers answer no requests while the fault is active."""
    disconnects: bool = True
    """Whether brokers learn of a new leader only after their timeouts expire, once the fault is
    healed; otherwise they learn of it soon."""
    nodes: frozenset[str] | None = None
    """The affected brokers; ``None`` if the fault may have affected any broker."""
    restarts: bool = False
    """Whether the affected brokers stopped, and were started again by the heal."""
    keys: frozenset[str] | None = None
    """The partitions whose leaders may have been replaced; ``None`` for all of the clients'."""
    coordinators: bool = True
    """Whether the coordinators of groups may have been replaced."""


SETTLED_NS = 15_000_000_000
"""The longest time after the heal of such a fault for which a broker may not know a new leader."""


def healed_ns(ends: Sequence[int | None]) -> int | None:
    """Return when the last of the faults with these ends was healed, 0 without any; ``None`` if one
    was not."""
    return None if None in ends else max((end for end in ends if end is not None), default=0)
