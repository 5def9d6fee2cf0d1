"""Generated transactions, judged by all checkers.

Correct histories give no finding, and each planted defect gives one of its kind.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers import findings, inline, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels
from model.op import Op
from tests.checkers.transactional import Transactional

SEEDS = st.integers(0, 2**32)


def illegal(histories: Any, ops: list[Op], contract: Contract | None = None) -> dict[str, int]:
    tables = histories.tables(ops)
    reports = inline.judge(tables, lambda done: None)
    told = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    checker_runs = [
        *told.checker_runs,
        *(r for report in reports.values() for r in report.checker_runs),
    ]
    assert not [run for run in checker_runs if run.crash]
    results = findings.findings(told.found, overview.of(tables), contract or Contract())
    return findings.counts(results, legal=False)


@pytest.mark.slow
@settings(max_examples=100)
@given(SEEDS, st.integers(1, 80))
def test_isolated_transactions_give_no_finding(histories: Any, seed: int, steps: int) -> None:
    """Isolated transactions give no finding, however they interleave and whatever is in doubt."""
    assert illegal(histories, Transactional(random.Random(seed)).history(steps)) == {}


@pytest.mark.slow
@settings(max_examples=100)
@given(SEEDS, st.integers(1, 80))
def test_who_did_not_ask_for_isolation_is_not_promised_any(
    histories: Any, seed: int, steps: int
) -> None:
    """Under read_uncommitted, a history without isolation gives no finding."""
    ops = Transactional(random.Random(seed), isolated=False).history(steps)
    assert illegal(histories, ops, Contract(read_committed=False)) == {}


def test_who_asked_for_isolation_and_got_none_finds_out(histories: Any) -> None:
    """Under read_committed, a history without isolation gives findings."""
    seen: set[str] = set()
    for seed in range(20):
        seen |= set(
            illegal(histories, Transactional(random.Random(seed), isolated=False).history(80))
        )
    assert seen >= {"G1a", "precommitted-read", "dirty-read", "wr-cycle"}


@pytest.mark.slow
@settings(max_examples=100)
@given(SEEDS, st.integers(1, 3))
def test_torn_transactions_are_counted_exactly(histories: Any, seed: int, torn: int) -> None:
    """Torn transactions are counted exactly, and give no other finding."""
    world = Transactional(random.Random(seed), torn=torn)
    ops = world.history(80)
    count = torn - world.torn
    assert illegal(histories, ops) == ({"torn-transaction": count} if count else {})
