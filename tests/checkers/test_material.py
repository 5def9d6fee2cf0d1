"""How much each checker had to judge."""

import json
from typing import Any

import pytest

from checkers import findings, inline, material, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels, key
from checkers.verdict import Verdict, conclude
from checkers.zookeeper import judging
from model.op import Op, OpType
from model.plan import Plan


def verdict(histories: Any, text: str | list[Op], *, run: bool = False) -> Verdict:
    tables = histories.tables(text)
    reports = inline.judge(tables, lambda done: None)
    told = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    results = findings.findings(told.found, overview.of(tables), Contract())
    plan = Plan() if run else None
    return conclude(
        overview.of(tables), reports, results, run=plan, plan={}, of_history=told.checker_runs
    )


PLAIN = "s:x=a@0 s:x=b@1 p:x=a@0,x=b@1"


def idle(told: Verdict) -> set[str]:
    """Return the checkers that had nothing to judge."""
    return {name for name, result in told.checkers.items() if result.judged == 0}


def test_every_checker_says_what_it_judges() -> None:
    """Each checker that can appear in a verdict counts its material."""
    run = {
        *key.BASIC,
        *key.DERIVED,
        *key.GROUPS,
        *history_kernels.KERNELS,
        *history_kernels.REWRITES,
        *judging.KERNELS,
    }
    named = {"availability", "compacted", "crashes", "folding", "invariants"}
    assert run | named == set(material.MATERIAL)


def test_plain_records_leave_the_checkers_of_transactions_idle(histories: Any) -> None:
    """Without a transaction no checker of transactions has judged anything."""
    told = verdict(histories, PLAIN)
    assert idle(told) >= {"torn", "cycles", "transactions", "precommitted", "outputs", "producers"}
    assert told.checkers["loss"].judged == 2
    assert told.checkers["duplicates"].judged == 2
    assert told.checkers["order"].judged == 2
    assert told.checkers["offsets"].judged == 4


@pytest.mark.parametrize(
    ("text", "busy", "judged"),
    [
        ("t:+x=a@0|y=b@1 s:y=b@1 p:x=a@0", "torn", 1),
        ("t:+x=a@0|+y=b@0 t:+x=c@2 p:x=a@0", "cycles", 2),
        ("t:+x=a@0 t:+x=c@2 p:x=a@0", "transactions", 2),
        ("t:+x=a@0|y=b@1 s:y=b@1 p:x=a@0", "precommitted", 1),
        ("t3?:+x=a@0 s:x=b@1 p:x=b@1", "unproven", 1),
        ("k:x@1 f:x@1", "commits", 1),
        ("m1:x s:x=a@0 p1:^x@0#3|x=a@0", "owners", 1),
        ("m1:x s:x=a@0 p1:^x@0#3|x=a@0", "deliveries", 1),
        ("m1:x s:x=a@0 p1:^x@0#3|x=a@0", "progress", 1),
        ("s:x=a@0 s:x=b@1 p:x=b@1", "folding", 1),
    ],
)
def test_a_checker_with_material_counts_it(
    text: str, busy: str, judged: int, histories: Any
) -> None:
    """Each kind of operation is counted by the checkers that judge it."""
    assert verdict(histories, text).checkers[busy].judged == judged


def test_crashes_are_judged_where_nodes_were_watched(histories: Any) -> None:
    """A run watches its nodes; a history that another program wrote says nothing about any."""
    assert verdict(histories, PLAIN, run=True).checkers["crashes"].judged == 4
    assert verdict(histories, PLAIN).checkers["crashes"].judged == 0


def test_availability_needs_a_fault_that_was_healed(histories: Any) -> None:
    """Nothing can be stuck after the last fault where there was none."""
    assert "availability" in idle(verdict(histories, PLAIN))
    ops = histories.events(PLAIN)
    proof = {"effect": {"proved": True, "how": ""}}
    phases: list[tuple[OpType, str]] = [
        ("invoke", "apply"), ("info", "apply"), ("invoke", "heal"), ("info", "heal"),
    ]  # fmt: skip
    struck = [
        Op(index=-4 + place, time_ns=0, process=-1, type=kind, f="kill",
           value={"id": 1, "phase": phase, **(proof if kind == "info" else {})})
        for place, (kind, phase) in enumerate(phases)
    ]  # fmt: skip
    moved = [
        Op(index=op.index + 4, time_ns=op.time_ns + 10, process=op.process, type=op.type, f=op.f,
           value=op.value)
        for op in [*struck, *ops]
    ]  # fmt: skip
    assert verdict(histories, moved).checkers["availability"].judged == 2


def test_the_count_is_written_also_when_it_is_0(histories: Any) -> None:
    """The count is in ``verdict.json`` even if it is 0, unlike in verdicts of earlier versions."""
    told = json.loads(verdict(histories, PLAIN).to_json())
    assert told["checkers"]["torn"]["judged"] == 0
    assert told["checkers"]["torn"]["valid"] is True
