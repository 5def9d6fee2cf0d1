"""Each anomaly of lists in a history of a few transactions, and a near miss of each."""

import pytest

from checkers.isolation import Options, judge
from tests.checkers.isolation.histories import history, one_by_one


@pytest.mark.parametrize(
    ("lines", "anomalies"),
    [
        # A failed append is read; one in doubt may be.
        (["1 fail x+1", "2 x=1"], ["G1a"]),
        (["1 info x+1", "2 x=1"], []),
        # A read ends between two appends of one transaction; it may end before or after both.
        (["1 x+1 x+2", "2 x=1"], ["G-single-item", "G1b"]),
        (["1 x+1 x+2", "2 x=1,2", "3 x="], []),
        (["1 x+1 x=1 x+2"], []),
        # A transaction does not see its own append.
        (["1 x+1 x="], ["internal"]),
        (["1 x=1 x=1", "2 x+1"], []),
        (["1 x=1 x+3 x=1,3", "2 x+1"], []),
        (["1 x=1 x=1,2", "2 x+1", "3 x+2"], ["G-single-item", "internal"]),
        (["1 x+2 x=1", "2 x+1"], ["internal"]),
        (["1 x+2 x+3 x=1,2,3", "2 x+1"], []),
        (["1 x+2 x+3 x=1,3,2", "2 x+1"], ["internal"]),
        # A transaction reads what it appends later.
        (["1 x=1 x+1", "2 x=1"], ["future-read"]),
        (["1 x=1,2 x+2", "2 x=1,3", "3 x+1"], ["future-read", "incompatible-order"]),
        # An ok append follows a failed one; one in doubt between them does not matter.
        (["1 fail x+1", "2 x+2", "3 info x=1,2"], ["dirty-update"]),
        (["1 fail x+1", "2 info x+3", "3 x+2", "4 info x=1,3,2"], ["dirty-update"]),
        (["1 fail x+2", "2 x+1", "3 info x=1,2"], []),
        # An element is twice in a list.
        (["1 x+1", "2 x=1,1"], ["duplicate-elements"]),
        (["1 x+1", "2 x+2", "3 x=1,2,1", "4 x=1,2"], ["duplicate-elements"]),
        # Two reads have no common order.
        (["1 x+1", "2 x+2", "3 x=1,2", "4 x=2"], ["incompatible-order"]),
        (["1 x+1", "2 x+2", "3 x=1,2", "4 x=1"], []),
        # Two transactions update one version.
        (["1 x= x+1", "2 x= x+2", "3 x=1,2"], ["G-single-item", "lost-update"]),
        (["1 x= x+1", "2 x=1 x+2", "3 x=1,2"], []),
        # An element that no transaction appended is a finding only on request.
        (["1 x=7"], []),
    ],
)
def test_anomalies_without_cycles(lines: list[str], anomalies: list[str]) -> None:
    """Single reads, transactions and keys show what is wrong with them."""
    wanted = Options(("serializable",), ("dirty-update", "duplicate-elements"))
    found = judge(history(*lines), "list-append", wanted)
    assert sorted({*found.anomaly_types} - {"empty-transaction-graph"}) == anomalies


@pytest.mark.parametrize(
    ("lines", "anomalies"),
    [
        (["x+1 y+1", "x+2 y+2", "x=1,2 y=2,1"], ["G0"]),
        (["x+1 y+1", "x+2 y+2", "x=1,2 y=1,2"], []),
        (["x+1 y=1", "x= y+1"], []),
        (["x+1 y=1", "y+1 x=1"], ["G1c"]),
        (["x=1 y=", "x+1 y+1"], ["G-single-item"]),
        (["x= y=", "x+1 y+1"], []),
        (["x+1 y=", "y+1 x="], ["G2-item"]),
        (["x+1", "y+1", "x=1 y=", "x= y=1"], ["G-nonadjacent-item"]),
        (["x+1", "y+1", "x=1 y=", "x=1 y=1"], []),
    ],
)
def test_cycles(lines: list[str], anomalies: list[str]) -> None:
    """Completions alone have no order in time: what counts is what they saw."""
    found = judge(history(*lines), options=Options(("serializable",)))
    assert [*found.anomaly_types] == anomalies
    assert found.valid is (not anomalies)


@pytest.mark.parametrize(
    ("lines", "anomalies"),
    [
        (["0 x+1", "1 x+2", "2 x=2,1"], ["G0-realtime"]),
        (["0 x=1", "1 x+1"], ["G1c-realtime"]),
        (["0 x+1", "1 x=", "2 x=1"], ["G-single-item-realtime"]),
        (["0 x+1", "1 x=1", "2 x="], ["G-single-item-realtime"]),
        (["0 x+1", "1 x=1", "2 x=1"], []),
    ],
)
def test_realtime(lines: list[str], anomalies: list[str]) -> None:
    """Transactions that are executed one after another must see each other."""
    assert [*judge(one_by_one(*lines)).anomaly_types] == anomalies


@pytest.mark.parametrize(
    ("lines", "anomalies"),
    [
        (["0 x+1", "0 x+2", "1 x=2,1"], ["G0-process"]),
        (["0 x=1", "0 x+1"], ["G1c-process"]),
        (["0 x+1", "0 x=", "1 x=1"], ["G-single-item-process"]),
        (["0 x+1", "1 x=", "2 x=1"], []),
    ],
)
def test_process_order(lines: list[str], anomalies: list[str]) -> None:
    """A strong-session model needs the order of each process, but not that of time."""
    options = Options(("strong-session-serializable",))
    assert [*judge(one_by_one(*lines), options=options).anomaly_types] == anomalies


def test_overlapping_transactions_have_no_order() -> None:
    """A transaction that was invoked before another one completed may precede it."""
    events = history("1 invoke x", "2 invoke x+1", "2 x+1", "1 x=", "3 x=1")
    assert judge(events).valid is True


def test_garbage_on_request() -> None:
    """An element that no transaction appended is reported if it is asked for."""
    events = history("1 x+1", "2 x=1,7", "3 x=7")
    found = judge(events, options=Options((), ("garbage-read",)))
    assert found.valid is False
    assert found.counts == {"garbage-read": 2}
    assert [f.values for f in found.anomalies["garbage-read"]] == [(7,), (7,)]


def test_what_is_not_understood() -> None:
    """A history that cannot be judged is unknown, with the reason."""
    twice = judge(history("1 x+1", "2 x+1"))
    assert twice.valid == "unknown"
    assert twice.unknown_because == ("1 is appended to x more than once",)
    write = judge(history("1 x:1"))
    assert write.unknown_because == ("event 0 has the unexpected micro-operation ['w', 'x', 1]",)


def test_argument() -> None:
    """A cycle explains itself, and its edges are data."""
    (found,) = judge(history("x=1 y=", "x+1 y+1")).anomalies["G-single-item"]
    assert found.text() == (
        "Let T1 = r x [1], r y nil (event 0), T2 = append x 1, append y 1 (event 1). T1 precedes"
        " T2, because T1 read the initial version of y and did not see T2's append of 1 to y."
        " However, T2 precedes T1, because T1 read T2's append of 1 to x: a contradiction."
    )
    assert [(s.source, s.target, s.kind, s.key, s.value, s.next_value) for s in found.steps] == [
        (0, 1, "rw", "y", None, 1),
        (1, 0, "wr", "x", 1, None),
    ]


def test_allowed_anomalies_rule_out_models() -> None:
    """An anomaly that is not prohibited makes no history invalid, but still rules out models."""
    found = judge(history("x+1 y=", "y+1 x="), options=Options(("snapshot-isolation",)))
    assert (found.valid, found.allowed) == (True, {"G2-item": 1})
    assert found.ruled_out == ("repeatable-read",)
    assert "serializable" in found.also_ruled_out


def test_budget() -> None:
    """Without a budget for witnesses, what is certain is still reported."""
    found = judge(history("x+1 y=", "y+1 x="), options=Options(("serializable",), budget=0))
    assert found.valid is False
    assert found.anomaly_types == ("PL-2.99-cycle-exists",)
    single = judge(history("x=1 y=", "x+1 y+1"), options=Options(("consistent-view",), budget=0))
    assert single.valid == "unknown"
    assert single.unknown_because == ("the search for G-single-item ended at its budget",)


def test_the_order_of_a_process_without_invocations() -> None:
    """Strict serializability asks for the order of each process, even if no invocation is known,
    so that there is no order in realtime."""
    events = history("1 x+1", "2 x=1", "2 x=", "3 x=1")
    found = judge(events)
    assert (found.valid, found.anomaly_types) == (False, ("G-single-item-process",))
    assert judge(history("1 x+1", "2 x=1", "3 x=")).valid is True
