"""Violations as witnesses report them."""

from harness.cluster.observe.reporter import Reporter
from model.violation import Violation


def test_a_violation_names_the_broker_and_what_it_is_about() -> None:
    """Without a reason, nothing is reported."""
    found: list[Violation] = []
    reporter = Reporter(2, lambda: 7, found.append)
    reporter.found("leaked", None, about="group g")
    reporter.found("leaked", "it happened", about="group g")
    reporter.found("leaked", "it happened", key="t-0", epochs=(3,))
    assert found == [
        Violation(
            invariant="leaked", time_ns=7, brokers=(2,), why="broker 2, group g: it happened"
        ),
        Violation(
            invariant="leaked",
            time_ns=7,
            key="t-0",
            brokers=(2,),
            epochs=(3,),
            why="broker 2: it happened",
        ),
    ]
