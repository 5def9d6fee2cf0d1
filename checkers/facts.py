"""Facts about a whole history: faults and crashes, its recovery, and the kinds of its topics."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np

from checkers import micro_ops, vocabulary
from checkers.columns import INVOKE, Columns, Rows
from model.op import CRASH, NEMESIS, RECOVER, UNRESPONSIVE


class Fault(msgspec.Struct, frozen=True):
    """A fault that was requested, as the nemesis's own events report it."""

    id: int
    fault: str
    from_ns: int
    """When it was requested."""
    to_ns: int | None
    """When its healing was complete; ``None`` if it never was."""
    proved: bool
    """Whether its effect was measured."""
    how: str
    targets: Any = None
    unhealed: str | None = None
    """Why its healing is in doubt; ``None`` if it is not, or was not tried yet."""
    options: Any = None
    """The options of the request."""


class Crash(msgspec.Struct, frozen=True):
    """A node that exited by itself."""

    op: int
    time_ns: int
    node: str
    serves: bool
    """Whether it is part of the cluster itself, and not of its surroundings."""
    status: int
    last_line: str


class Silence(msgspec.Struct, frozen=True):
    """A node that ran, and answered nothing, after all faults were healed."""

    op: int
    time_ns: int
    node: str
    for_s: float


def faults(columns: Columns) -> tuple[Fault, ...]:
    """Return the faults that were requested, sorted by id."""
    found: dict[int, dict[str, Any]] = {}
    for row, value in columns.of_nemesis():
        if not isinstance(value.get("id"), int):
            continue
        time_ns, done = int(columns.time_ns[row]), columns.type[row] != INVOKE
        fault = found.setdefault(
            value["id"],
            {
                "fault": columns.f_names[columns.f[row]],
                "from_ns": time_ns,
                "to_ns": None,
                "proved": False,
                "how": "no value was measured",
                "targets": value.get("targets"),
                "unhealed": None,
                "options": value.get("options"),
            },
        )
        effect = value.get("effect")
        if value.get("phase") == "heal":
            if done:
                result = effect if isinstance(effect, dict) else {"proved": True}
                healed = result.get("proved") is True
                fault["to_ns"] = time_ns if healed else None
                fault["unhealed"] = None if healed else str(result.get("how", ""))
        elif done and isinstance(effect, dict):
            fault["to_ns"] = fault["unhealed"] = None  # it may be another try
            fault["proved"] = effect.get("proved") is True
            fault["how"] = str(effect.get("how", ""))
            fault["targets"] = value.get("targets")
    return tuple(Fault(id=id_, **fault) for id_, fault in sorted(found.items()))


def crashes(columns: Columns) -> tuple[Crash, ...]:
    """Return the nodes that exited by themselves."""
    return tuple(
        Crash(
            op=int(columns.index[row]),
            time_ns=int(columns.time_ns[row]),
            node=str(value["node"]),
            serves=value.get("serves") is not False,
            status=int(value["status"]),
            last_line=str(value.get("last_line", "")),
        )
        for row, value in columns.of_nemesis()
        if columns.f_names[columns.f[row]] == CRASH
    )


def recovered(columns: Columns) -> bool | None:
    """Return whether the cluster was whole before the final reads; ``None`` if the history does not
    say."""
    flags = [
        value.get("recovered") is True
        for row, value in columns.of_nemesis()
        if columns.f_names[columns.f[row]] == RECOVER
    ]
    return flags[-1] if flags else None


def silences(columns: Columns) -> tuple[Silence, ...]:
    """Return the nodes that answered nothing after all faults were healed."""
    return tuple(
        Silence(
            op=int(columns.index[row]),
            time_ns=int(columns.time_ns[row]),
            node=str(value["node"]),
            for_s=float(value["for_s"]),
        )
        for row, value in columns.of_nemesis()
        if columns.f_names[columns.f[row]] == UNRESPONSIVE
    )


def ignored(columns: Columns) -> dict[str, int]:
    """Count the operations and micro-operations of clients that no checker knows, by name."""
    found: Counter[str] = Counter()
    invoked = (columns.process != NEMESIS) & (columns.type == INVOKE)
    count = np.bincount(columns.f[invoked], minlength=len(columns.f_names)).tolist()
    for name, times in zip(columns.f_names, count, strict=True):
        if name not in vocabulary.OPERATIONS:
            found[name] += times
    asked = (*vocabulary.MICRO_OPERATIONS, micro_ops.ASSIGN, micro_ops.TRANSFORM)
    rows = np.flatnonzero(~columns.is_op(*asked))
    if len(rows):
        events = np.searchsorted(columns.micro_op_end, rows, side="right") - 1
        for code in columns.op[rows[invoked[events]]].tolist():
            found[columns.op_names[code]] += 1
    return {name: times for name, times in found.items() if times}


def compacted(columns: Columns) -> frozenset[int]:
    """Return the partitions of compacted topics."""
    return _of_topics(columns, np.flatnonzero(columns.is_op(micro_ops.CREATE_COMPACTED)))


def deleted(columns: Columns, events: Rows) -> frozenset[int]:
    """Return the partitions of topics that these events deleted, or may have deleted."""
    return _of_topics(columns, columns.micro_ops(events, columns.is_op(micro_ops.DELETE_TOPIC))[0])


def _of_topics(columns: Columns, rows: Rows) -> frozenset[int]:
    """Return the partitions of the topics that these micro-operations name."""
    topics = {columns.keys[code] for code in {*columns.op_key[rows].tolist()}}
    return frozenset(
        code for code, key in enumerate(columns.keys) if key.rpartition("-")[0] in topics
    )
