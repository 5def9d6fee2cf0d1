"""The events of a run that begin its phases, and the names of these phases."""

from typing import Any

import pytest

from harness.app.search.guided.phases import Phases, role
from model.op import NEMESIS, Op, OpType


def _op(kind: OpType, f: str, value: Any, process: int = NEMESIS, time_ns: int = 0) -> Op:
    return Op(index=0, time_ns=time_ns, process=process, type=kind, f=f, value=value)


def test_a_phase_begins_when_a_fault_is_applied_or_healed() -> None:
    """Completions, measurements, crashes and operations of clients begin none."""
    entered: list[tuple[str, float]] = []
    observe = Phases(lambda name, at_s: entered.append((name, at_s)))

    observe(_op("invoke", "kill", {"phase": "apply", "targets": "leader:a-0"}, time_ns=6 * 10**9))
    observe(_op("info", "kill", {"phase": "apply", "targets": ["broker-1"]}))
    observe(_op("invoke", "kill", {"phase": "measure", "targets": "leader:a-0"}))
    observe(_op("info", "crash", "broker-1 ended"))
    observe(_op("invoke", "send", {"phase": "apply"}, process=3))
    observe(_op("invoke", "kill", {"phase": "heal", "targets": None}, time_ns=8_500_000_000))

    assert entered == [("apply kill leader", 6.0), ("heal kill", 8.5)]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("leader:topic0-0", "leader"),
        ("broker-2", "broker"),
        ("controller", "controller"),
        (["broker-1", "broker-2"], "of 2"),
        (None, ""),
        ({"links": 1}, ""),
    ],
)
def test_targets_are_named_by_their_role(targets: Any, expected: str) -> None:
    """Runs with other topics and brokers have the same phases."""
    assert role(targets) == expected
