"""Folders of runs that were written by hand and judged."""

from pathlib import Path
from typing import Any

import msgspec

from harness.app.check import examine
from harness.app.lake.store import Lake
from harness.engine.recorder import FaultRow, encode_row
from model import history
from model.op import NEMESIS, RECOVER, Op
from model.plan import Plan, ScheduledFault

MS = 1_000_000
COMMIT = "0123456789" * 4
NAME = "20261120T161500Z-idempotent-seed7"


def events() -> list[Op]:
    """Return a history: two records are acknowledged, one before and one after a kill, and read.

    The partition ``x-0`` acknowledges nothing from 0.1 s to 2.5 s; the kill is healed at 2 s.
    """
    kill = {"id": 1, "targets": ["broker-1"], "options": {}}
    proved = {"proved": True, "how": "it is gone"}
    poll = [["poll", {"x-0": [[0, 1], [1, 2]]}]]
    rows: list[tuple[int, int, str, str, Any]] = [
        (0, 1, "invoke", "send", [["send", "x-0", 1]]),
        (10, 1, "ok", "send", [["send", "x-0", [0, 1]]]),
        (100, 1, "invoke", "send", [["send", "x-0", 2]]),
        (500, NEMESIS, "invoke", "kill", {**kill, "phase": "apply"}),
        (600, NEMESIS, "info", "kill", {**kill, "phase": "apply", "effect": proved}),
        (1900, NEMESIS, "invoke", "kill", {**kill, "phase": "heal"}),
        (2000, NEMESIS, "info", "kill", {**kill, "phase": "heal", "effect": proved}),
        (2500, 1, "ok", "send", [["send", "x-0", [1, 2]]]),
        (3000, NEMESIS, "invoke", RECOVER, None),
        (3100, NEMESIS, "info", RECOVER, {"recovered": True}),
        (3200, 9, "invoke", "poll", [["poll"]]),
        (3300, 9, "ok", "poll", poll),
        (3400, 9, "invoke", "catch-up", [["catch-up", "x-0"]]),
        (3500, 9, "ok", "catch-up", [["catch-up", "x-0", 2, 2]]),
    ]
    return [
        Op(index=at, time_ns=ms * MS, process=process, type=kind, f=f, value=value)  # type: ignore[arg-type]
        for at, (ms, process, kind, f, value) in enumerate(rows)
    ]


def make(folder: Path, *, judged: bool = True, **fields: Any) -> Path:
    """Write the folder of a run; ``fields`` are those of its plan."""
    folder.mkdir(parents=True)
    chosen: dict[str, Any] = {"commit": COMMIT, "seed": 7, "time_limit_s": 4.0}
    chosen |= {"nemesis": ("kill",), **fields}
    scheduled = ScheduledFault(id=1, at_s=0.5, duration_s=1.4, fault="kill", targets=["broker-1"])
    chosen.setdefault("schedule", (scheduled,))
    plan = Plan(broker={"min.insync.replicas": "2"}, options={"topics": 1}, **chosen)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    history.write(folder / "history.jsonl", events())
    row = FaultRow(id=1, fault="kill", targets=["broker-1"], asked_ns=500 * MS, applied_ns=600 * MS,
                   healed_ns=2000 * MS, effect={"proved": True, "how": "it is gone"})  # fmt: skip
    (folder / "schedule.jsonl").write_bytes(encode_row(row))
    if judged:
        examine(folder, inline=True)
    return folder


def ids(lake: Lake) -> list[str]:
    """Return the ids of all rows in a lake, sorted."""
    from harness.app.lake import store

    with lake.reading() as paths:
        return sorted(store.read(paths, ["id"])["id"].to_pylist())
