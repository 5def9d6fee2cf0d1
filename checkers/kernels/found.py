"""What a kernel finds, before the contract and the faults are known."""

import msgspec


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel saw. It becomes a :class:`model.finding.Finding` with its contract and
    faults."""

    anomaly: str
    key: str | None = None
    """The partition; ``None`` if the finding is about several."""
    group: str | None = None
    """The consumer group that it is about, if it is about one."""
    offset: int | None = None
    generation: int | None = None
    """The generation of the group that it is about, if it is about one."""
    value: int | None = None
    variant: str = ""
    """A distinction that the contract may need: what shows it (``ack``, ``read``), ``txn`` …"""
    ops: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    """Further offsets or values that the argument rests on; each kernel defines them."""
    why: str = ""
    folded: int = 0


def at(time_ns: int) -> str:
    """Return a time of the history in seconds, for people."""
    return f"{time_ns / 1e9:.3f} s"
