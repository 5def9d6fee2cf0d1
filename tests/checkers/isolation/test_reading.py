"""The columns that events become."""

import random

import numpy as np
import pytest

from checkers.isolation import judge, reading
from checkers.isolation.judging import Model
from checkers.isolation.list_append import read_list
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.transactions import NONE, UNKNOWN, Pairs
from model.op import Op
from tests.checkers.isolation.histories import history


def test_pairs_of_events() -> None:
    """Transactions are in the order of completion; those without one come last, in doubt."""
    events = history("1 invoke x+1", "2 invoke x+2", "2 x+2", "3 fail x+3", "4 invoke x+4")
    txns = reading.lists(events).txns
    assert txns.event.tolist() == [2, 3, 0, 4]
    assert txns.outcome.tolist() == [0, 1, 2, 2]
    assert txns.invoked.tolist() == [1, UNKNOWN, 0, 4]
    assert txns.completed.tolist() == [2, 3, UNKNOWN, UNKNOWN]


def test_a_process_that_invokes_twice() -> None:
    """A process that does not wait leaves its first transaction in doubt."""
    txns = reading.lists(history("1 invoke x+1", "1 invoke x+2", "1 x+2")).txns
    assert txns.event.tolist() == [2, 0]
    assert txns.outcome.tolist() == [0, 2]


def test_unknown_results() -> None:
    """A read in doubt without a result is unknown; an ok one is of the initial version."""
    ops = reading.lists(history("1 x=", "2 info x=", "3 fail x=1", "4 info x=1")).ops
    assert ops.length.tolist() == [0, UNKNOWN, UNKNOWN, 1]
    registers = reading.registers(history("1 x=", "2 info x=", registers=True)).ops
    assert registers.length.tolist() == [1, UNKNOWN]
    assert registers.element.tolist() == [NONE, NONE]


@pytest.mark.parametrize("is_text", [False, True])
def test_lists_are_kept(is_text: bool) -> None:
    """Of any mixture of reads, each one can be read again with its elements once."""
    rng = random.Random(5)
    lines, expected = [], []
    for _ in range(300):
        cut = [*range(10)][: rng.randint(0, 9)]
        if rng.random() < 0.2:
            rng.shuffle(cut)
        if cut and rng.random() < 0.1:
            cut.append(cut[0])
        shown = [f"e{n}" if is_text else n for n in cut]
        lines.append(f"1 {rng.choice('xy')}={','.join(map(str, shown))}")
        expected.append(list(dict.fromkeys(shown)))
    found = reading.lists(history(*lines))
    assert [read_list(found, row) for row in range(300)] == expected
    assert found.repeating.tolist() == [
        n for n, line in enumerate(lines) if len(line.split(",")) > max(1, len(expected[n]))
    ]


def test_only_contradicting_lists_are_kept() -> None:
    """Prefixes of the longest read are not stored."""
    found = reading.lists(history("1 x=1,2,3", "2 x=1,2", "3 x=2", "4 y=5"))
    assert found.longest.element.tolist() == [1, 2, 3, 5]
    assert found.other_rows.tolist() == [2]
    assert found.others.element.tolist() == [2]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["1 x=1,a"], "some elements are texts and others are not"),
        (["1 x=1", "1 7=1"], None),
        (["1 x:1"], "event 0 has the unexpected micro-operation"),
    ],
)
def test_refusals(lines: list[str], why: str | None) -> None:
    """A mixture of texts and numbers is refused: a converter probably changed some of them."""
    events = history(*lines)
    if why is None:
        assert reading.lists(events).names.keys == ["x", "7"]
        return
    with pytest.raises(NotUnderstood, match=why):
        reading.lists(events)


def test_a_register_is_no_list() -> None:
    """A history of registers is refused where lists are expected."""
    with pytest.raises(NotUnderstood, match="event 0 reads 1 of x, which is no list"):
        reading.lists(history("1 x=1", registers=True))


@pytest.mark.parametrize("model", ["list-append", "rw-register", "closed-predicate"])
def test_next_to_nothing(model: Model) -> None:
    """Histories without transactions, or without micro-operations, show nothing."""
    nemesis = Op(index=0, time_ns=0, process=-1, type="info", f="kill", value="n1")
    empty = Op(index=1, time_ns=1, process=0, type="ok", f="txn")
    for events in ([], [nemesis], [nemesis, empty], history("1 invoke x", "1 x=")):
        found = judge(events, model)
        assert found.valid == "unknown"
        assert found.anomaly_types == ("empty-transaction-graph",)


def test_mixed_keys() -> None:
    """Keys that are numbers and texts are refused."""
    first, second = history("1 x=1", "1 y=1")
    second.value[0][1] = 7
    with pytest.raises(NotUnderstood, match="some keys are texts and others are not"):
        reading.lists([first, second])


def test_pairs() -> None:
    """A pair is found by its key and element; the first of equal ones counts."""
    pairs = Pairs(np.array([1, 2, 1, 1]), np.array([5, 5, -7, 5]))
    rows = pairs.rows(np.array([1, 2, 2, 1, 3]), np.array([5, 5, -7, -7, 5]))
    assert rows.tolist() == [0, 1, -1, 2, -1]
    assert pairs.repeated().tolist() == [3]
