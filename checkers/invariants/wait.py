"""Something that a broker is late with."""

from typing import NamedTuple


class Wait(NamedTuple):
    """What a broker has not done yet, although nothing keeps it from it."""

    key: str
    """The partition."""
    broker: int
    since_ns: int
    """When that was first seen, since snapshots are read without a gap."""
    why: str
