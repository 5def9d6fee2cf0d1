"""An event of a history: the invocation or completion of a client's or nemesis's operation."""

from typing import Any, Literal

import msgspec

OpType = Literal["invoke", "ok", "fail", "info"]

NEMESIS = -1
"""The process under which faults are recorded."""

CRASH = "crash"
"""The nemesis's event for a node that exited unexpectedly.

Its value is ``{"node", "serves", "status", "last_line"}``; ``serves`` is true for a node of the
cluster, and false for an auxiliary process.
"""

RECOVER = "recover"
"""The nemesis's event after the last heal, ``{"recovered": bool}``.

The value is true if every node was up, and every partition had a leader and a full ISR, in time.
"""

UNRESPONSIVE = "unresponsive"
"""The nemesis's event for a node that runs, and that answered no probe after the recovery.

Its value is ``{"node", "for_s"}``: for how many seconds it was asked.
"""

ZNODE_READS = frozenset(("get", "read", "children"))
"""Operations on ZooKeeper that only read. The values of its operations are objects."""

MicroOp = list[Any]
"""A part of an operation's value, in the shapes of Jepsen.

``["send", key, value]`` is completed as ``["send", key, [offset, value]]``, and ``["poll"]`` as
``["poll", {key: [[offset, value], …]}]``. A key is a string that names one partition,
``topic-partition``. Values are integers, unique per partition.
"""


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of the history. An operation is an ``invoke`` event and, perhaps, its completion."""

    index: int
    """The event's position in the history; no two events share one."""
    time_ns: int
    """Monotonic nanoseconds since the run began, on the interpreter's clock."""
    process: int
    """The logical client. A process that ends in ``info`` never acts again; the nemesis is -1."""
    type: OpType
    """``fail`` means that the operation certainly did not happen; ``info``: it may have."""
    f: str
    """send, poll, txn, assign, subscribe, commit, crash, or a fault's name."""
    value: Any = None
    """A list of micro-operations for clients; the description of a fault for the nemesis."""
    error: str | None = None
    """The client's error name."""
