"""What a kernel finds, before the contract and the faults are known."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A violation that a kernel has found. It is later extended by contract and faults to a
    :class:`model.finding.Finding`."""

    anomaly: str
    key: str | None = None
    """The partition; ``None`` if the violation concerns several partitions."""
    group: str | None = None
    """The consumer group, if the violation concerns one."""
    offset: int | None = None
    generation: int | None = None
    """The generation of the group that it is about, if it is about one."""
    value: int | None = None
    variant: str = ""
    """A distinction that the contract may need, such as the evidence (``ack``, ``read``) or
    ``txn``."""
    ops: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    """Further offsets or values that prove the violation; each kernel defines their meaning."""
    why: str = ""
    folded: int = 0


def at(time_ns: int) -> str:
    """Format a time of the history in seconds, for messages."""
    return f"{time_ns / 1e9:.3f} s"
