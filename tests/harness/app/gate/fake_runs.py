"""Fake runs of a gate's cases, and a gate that runs them."""

import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from checkers import findings as findings_
from checkers.verdict import Verdict
from harness.app.gate import runner
from harness.app.gate.outcome import Gate
from harness.app.gate.suite import Suite, ready, suite
from harness.app.judgements import Judged
from harness.app.progress import Screen
from harness.app.run import Done, Failed, Spark
from model import history
from model.finding import Finding
from model.op import NEMESIS, RECOVER, Op
from model.plan import Plan

Outcome = Verdict | BaseException | Callable[[], None]


VALID = Verdict(valid=True, evidence={"acked": 400})


UNKNOWN = Verdict(valid="unknown", unknown_because=("nothing was acknowledged",))


LOST = Verdict(valid=False, anomalies={"lost-write": 3}, evidence={"acked": 400})


FINDING = Finding(anomaly="lost-write", key="x-0", offset=118, ops=(), why="it was acknowledged")


class FakeRun:
    """A run that ends with the given outcomes and leaves a folder as a real one does."""

    def __init__(self, *outcomes: Outcome, took_s: float = 5.0) -> None:
        self.outcomes = list(outcomes)
        self.took_s = took_s
        self.now_s = 100.0
        self.plans: list[Plan] = []
        self.inline: list[bool] = []

    def __call__(
        self, plan: Plan, results: Path, *, inline: bool, screen: Screen, spark: Spark | None
    ) -> Done:
        folder = results / f"run-{len(self.plans)}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        self.plans.append(plan)
        self.inline.append(inline)
        self.now_s += self.took_s
        ended = self.outcomes.pop(0) if self.outcomes else VALID
        if isinstance(ended, Failed):
            ended.folder = folder
        if isinstance(ended, BaseException):
            raise ended
        if not isinstance(ended, Verdict):
            ended()
            ended = VALID
        found = [FINDING] if ended.anomalies else []
        findings_.write(folder / "findings.parquet", found)
        recovered = [
            Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f=RECOVER),
            Op(index=1, time_ns=10**9, process=NEMESIS, type="info", f=RECOVER,
               value={"recovered": True}),
        ]  # fmt: skip
        history.write(folder / "history.jsonl", recovered)
        return Done(Judged(ended, found), folder)


def asked(cases: int = 3, **changes: Any) -> Suite:
    """Make a suite of cases of 4 s each, which is too short for a fault."""
    seeds = ", ".join(map(str, range(1, cases + 1)))
    text = f"name = 'quick'\ntime-limit = 4\ninline = true\n[[matrix]]\nseed = [{seeds}]\n"
    document = tomllib.loads(f"{text}nemesis = [['none']]\n")
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    return suite({**document, **changed}, Path("quick.toml"))


def carried_out(
    tmp_path: Path, run: FakeRun, wanted: Suite | None = None, **options: Any
) -> tuple[Gate, Path, str]:
    """Run a gate; return it, its folder, and what was printed."""
    stream = StringIO()
    wanted = wanted or asked()
    gate, folder = runner.run_gate(
        wanted,
        ready(wanted),
        tmp_path,
        screen=Screen(stream),
        run=run,
        clock_s=lambda: run.now_s,
        **options,
    )
    return gate, folder, stream.getvalue()


def statuses(gate: Gate) -> list[str]:
    return [case.status for case in gate.cases]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
