"""One thing a checker saw, with the operations that witness it."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``findings.parquet``."""

    anomaly: str
    """Jepsen's id where it has one (``lost-write``), else the catalogue's first name."""
    legal: bool = False
    """Permitted by the run's configured contract: counted, but no reason to fail."""
    key: str | None = None
    """``topic-partition``."""
    group: str | None = None
    """The consumer group, of what is about one."""
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    ops: tuple[int, ...] = ()
    """Indices of the events that witness it, in the order of the argument."""
    faults: tuple[int, ...] = ()
    """Ids of the faults that were active between the witnesses (the blame window)."""
    why: str = ""
    """The argument, in one sentence."""
    folded: int = 0
    """How many derived findings this one explains."""
