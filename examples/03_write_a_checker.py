"""A checker is a pure function: the columns of one partition in, findings out.

This one looks for holes. Offsets of a log without transactions and compaction are dense. An offset
that appears nowhere in the history, between two that do, is therefore a record that no client sent
or read.

To add a checker to every verdict, call it in ``checkers/kernels/key.py`` and add its anomaly to the
table in ``checkers/anomalies/``, which says what it means and when it is legal.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from checkers import history_file, table_builder
from checkers.kernels.found import Found
from checkers.kernels.log import Log
from model import history
from model.op import Op


def holes(log: Log) -> list[Found]:
    """Return the gaps between known offsets of a log; ``offset`` is where a gap begins."""
    known = log.known.offsets  # ascending, each once
    ends = np.flatnonzero(np.diff(known) > 1)
    return [
        Found(
            anomaly="hole",
            key=log.key,
            offset=int(known[end]) + 1,
            why=f"no process acknowledged or read offsets {known[end] + 1} to {known[end + 1] - 1}",
        )
        for end in ends.tolist()
    ]


def event(index: int, kind: Any, f: str, value: Any) -> Op:
    """Return an event of process 1; there is one event per millisecond."""
    return Op(index=index, time_ns=index * 10**6, process=1, type=kind, f=f, value=value)


EVENTS = [
    event(0, "invoke", "send", [["send", "x-0", 10], ["send", "x-0", 11]]),
    event(1, "ok", "send", [["send", "x-0", [0, 10]], ["send", "x-0", [1, 11]]]),
    event(2, "invoke", "send", [["send", "x-0", 12]]),
    event(3, "ok", "send", [["send", "x-0", [5, 12]]]),
]

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "history.jsonl"
    history.write(path, EVENTS)
    for log in table_builder.of_history(history_file.read(path, lambda done: None)).logs():
        for found in holes(log):
            print(f"{found.anomaly} in {found.key} at offset {found.offset}: {found.why}")
