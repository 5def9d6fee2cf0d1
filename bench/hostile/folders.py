"""Hostile run folders: their files differ from those that a run writes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.hostile.case import REFUSED, REFUSES, UNKNOWN, VALID, Case, both, file
from bench.hostile.histories import TEXT, WRONG, put
from model.plan import Plan

DOCUMENTS: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "text": b'"a"',
    "an object": b"{}",
    "not JSON": b"surprise",
    "torn": b'{"valid": tr',
    "deep": b"[" * 50_000,
    "not UTF-8": b"\xff\xfe",
    "NUL": b"\0" * 100,
    "escapes": b'"\x1b]0;a\x07"',
    "nan": b'{"seed": NaN}',
    "a version": b'{"version": 99}',
    "a field twice": b'{"seed": 1, "seed": 2}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"seed": 1}'.encode("utf-16"),
    "a lone surrogate": b'{"commit": "\\ud800"}',
    "a huge number": b'{"seed": 1e400}',
    "5,000 digits": b'{"seed": ' + b"7" * 5000 + b"}",
    "an unknown field": b'{"surprise": 1}',
}
FOLDER_FILES = (
    "plan.json",
    "schedule.jsonl",
    "invariants.jsonl",
    "findings.parquet",
    "verdict.json",
    "run.json",
    "history.parquet",
    "report.html",
    "judgements",
)


def _plan() -> dict[str, Any]:
    plan = msgspec.to_builtins(Plan(target="simulated", schedule=()))
    return {**plan, "schedule": [], "nemesis": [], "mutants": []}


def folders() -> Iterator[Case]:
    """Yield run folders with hostile files, which are judged and replayed."""
    check = ("check", "run", "--inline", "--results", "r")
    may = frozenset({VALID, UNKNOWN, REFUSED})
    base = both(file("run/history.jsonl", TEXT), file("run/plan.json", json.dumps(_plan())))
    for name in FOLDER_FILES:
        for what, content in DOCUMENTS.items():
            prepare = both(base, file(f"run/{name}", content))
            if (name, what) == ("plan.json", "an object"):
                continue
            yield Case(
                f"folder: {name} is {what}",
                check,
                prepare,
                REFUSES if name == "plan.json" and what != "a version" else may,
            )
        yield Case(f"folder: {name} is a folder", check, _made(base, name), may)
    for field, value in _plan().items():
        for what, wrong in WRONG.items():
            plan = json.dumps(put(_plan(), (field,), wrong))
            prepare = both(base, file("run/plan.json", plan))
            yield Case(f"folder: {field} of the plan is {what}", check, prepare, may)
            if (
                type(wrong) is not type(value)
                and what not in ("2^31", "negative")
                and field != "schedule"
            ):
                yield Case(
                    f"replay: {field} of the plan is {what}",
                    ("replay", "run", "--results", "r"),
                    prepare,
                    may,
                )
    for field, wrong in {
        "options": {"replication_factor": 10**9, "topics": "many"},
        "time_limit_s": 1e300,
        "concurrency": 1 << 62,
        "rate_hz": 1e300,
        "schedule": [{"id": 1, "at_s": 1e300, "duration_s": 1, "fault": "kill"}],
        "expect": {"broker.surprise": "1"},
        "producer": {"acks": "surprise"},
        "broker": {"min.insync.replicas": "many"},
    }.items():
        prepare = both(base, file("run/plan.json", json.dumps(_plan() | {field: wrong})))
        yield Case(f"folder: another {field} of the plan", check, prepare, may)
        if field != "expect":
            arguments = ("replay", "run", "--results", "r")
            yield Case(f"replay: another {field} of the plan", arguments, prepare)
    fault = {"id": 1, "at_s": 0.5, "duration_s": 0.1, "fault": "kill", "targets": ["broker-1"]}
    for name, value in WRONG.items():
        for field in fault:
            plan = _plan() | {"nemesis": ["kill"], "schedule": [fault | {field: value}]}
            prepare = both(base, file("run/plan.json", json.dumps(plan)))
            yield Case(f"folder: {field} of a fault is {name}", check, prepare, may)
    plan = _plan() | {"schedule": [fault | {"durations": 5}]}
    odd = both(base, file("run/plan.json", json.dumps(plan)))
    yield Case("folder: an unknown field of a fault", check, odd)
    doubled = json.dumps(_plan()).replace('{"', '{"seed": 9, "', 1)
    for verb in ("check", "replay", "shrink"):
        prepare = both(base, file("run/plan.json", doubled))
        yield Case(f"{verb}: a field of the plan twice", (verb, "run"), prepare)
    more = json.dumps(_plan() | {"surprise": 1})
    yield Case(
        "folder: an unknown field of the plan",
        check,
        both(base, file("run/plan.json", more)),
        frozenset({VALID, UNKNOWN, REFUSED}),
        "surprise",
    )
    yield Case(
        "replay: an unknown field of the plan",
        ("replay", "run", "--results", "r"),
        both(base, file("run/plan.json", more)),
        frozenset({REFUSED}),
    )
    yield Case("folder: no history", check, file("run/plan.json", json.dumps(_plan())))
    yield Case("folder: empty", check, lambda folder: (folder / "run").mkdir())
    yield Case("replay: no folder", ("replay", "run"))
    yield Case("shrink: no folder", ("shrink", "run"))
    yield Case("replay: a history", ("replay", "history.jsonl"), file("history.jsonl", TEXT))
    yield Case("shrink: no verdict", ("shrink", "run"), base)


def _made(base: Callable[[Path], None], name: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        base(folder)
        path = folder / "run" / name
        if path.exists():
            path.unlink()
        path.mkdir()
        (path / "inside").write_text("x")

    return prepare
