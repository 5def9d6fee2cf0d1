"""One operation event: what a client or a nemesis asked, or what came of it."""

from typing import Any, Literal

import msgspec

OpType = Literal["invoke", "ok", "fail", "info"]

NEMESIS = -1
"""The process that faults are recorded under."""

CRASH = "crash"
"""Under the nemesis: a node ended by itself; ``{"node", "serves", "status", "last_line"}``, where
``serves`` tells a node of the cluster from what is only around it."""

RECOVER = "recover"
"""Under the nemesis, after the last fault was healed: ``{"recovered": bool}``, was every node up
and every partition led with a full ISR, in time?"""

MicroOp = list[Any]
"""``["send", key, value]``, completed as ``["send", key, [offset, value]]``;
``["poll"]``, completed as ``["poll", {key: [[offset, value], …]}]`` (Jepsen's shapes).
A key is a string that names one partition, ``topic-partition``; values are integers,
unique per key.
"""


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the history. An operation is an ``invoke`` and, perhaps, its completion."""

    index: int
    """Position in the history; no two events share one."""
    time_ns: int
    """Monotonic nanoseconds since the run began, from the one clock of the interpreter."""
    process: int
    """Logical client. A process that ends in ``info`` never acts again; the nemesis is -1."""
    type: OpType
    """``fail`` = certainly did not happen; doubt is ``info``."""
    f: str
    """send, poll, txn, assign, subscribe, commit, crash, or a fault's name."""
    value: Any = None
    """A list of micro-operations for clients; a fault's own description for the nemesis."""
    error: str | None = None
    """The client's error name."""
