"""A finding: one anomaly that a checker found, with the operations that witness it."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``findings.parquet``."""

    anomaly: str
    """The anomaly's id: Jepsen's if it has one (``lost-write``), else that of docs/anomalies.md."""
    legal: bool = False
    """Permitted by the run's configured contract: counted, but no reason to fail."""
    key: str | None = None
    """``topic-partition``."""
    group: str | None = None
    """The consumer group, if the finding is about one."""
    partition: int | None = None
    offset: int | None = None
    generation: int | None = None
    """The generation of the group, if the finding is about one."""
    value: int | None = None
    ops: tuple[int, ...] = ()
    """Indices of the events that witness the finding, in the order of its argument."""
    faults: tuple[int, ...] = ()
    """Ids of the faults that were active between the witnesses (the blame window)."""
    why: str = ""
    """The argument, in one sentence."""
    folded: int = 0
    """The number of derived findings that this one explains."""
