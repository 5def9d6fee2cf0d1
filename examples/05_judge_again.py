"""Judges a run again from its folder alone, by its own contract and by another one.

    python examples/05_judge_again.py [results/20261120T161500Z-idempotent-seed7]

Without a folder, one is written: two clients, and one acknowledged record that is lost.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from harness.app import report
from harness.app.check import describe, examine
from model import history
from model.op import Op, OpType
from model.plan import Plan


def written(folder: Path) -> Path:
    """Write the folder of a run: its history, and its plan, which says what was promised."""
    plan = Plan(producer={"acks": "all", "enable.idempotence": "true"})
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    rows: list[tuple[int, OpType, str, Any]] = [
        (1, "invoke", "send", [["send", "x-0", 1]]), (1, "ok", "send", [["send", "x-0", [0, 1]]]),
        (1, "invoke", "send", [["send", "x-0", 2]]), (1, "ok", "send", [["send", "x-0", [1, 2]]]),
        (2, "invoke", "poll", [["poll"]]), (2, "ok", "poll", [["poll", {"x-0": [[1, 2]]}]]),
        (2, "invoke", "catch-up", [["catch-up", "x-0"]]),
        (2, "ok", "catch-up", [["catch-up", "x-0", 2, 2]]),
    ]  # fmt: skip
    events = [
        Op(index=index, time_ns=index * 10**6, process=process, type=kind, f=f, value=value)
        for index, (process, kind, f, value) in enumerate(rows)
    ]
    history.write(folder / "history.jsonl", events)
    return folder


with tempfile.TemporaryDirectory() as scratch:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else written(Path(scratch))
    for settings in ({}, {"producer.acks": "1"}):
        judged = examine(folder, inline=True, settings=settings)
        print(f"had it been {settings}:" if settings else "by the plan's contract:")
        print(describe(judged.verdict, judged.findings, folder=None))
    page = report.render(folder)
    print(f"{page.name}: {page.stat().st_size:,} bytes")
