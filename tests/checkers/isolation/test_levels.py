"""Levels between read committed and serializable, compared with their axioms and all orders."""

import random
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from checkers.isolation.levels import LEVELS, judge_level
from checkers.isolation.sessions import INITIAL, Sessions, Violation, sessions_of
from model.op import Op
from tests.checkers.isolation.histories import history

FRACTURED = ["1 x:1 y:1", "2 x:2 y:2", "3 x=1 y=2"]
LONG_FORK = ["1 x:1", "2 y:1", "3 x=1 y=", "4 x= y=1"]
WRITE_SKEW = ["1 x= y= x:1", "2 x= y= y:1"]
LOST_UPDATE = ["1 x= x:1", "2 x= x:2"]
STALE = ["1 x:1 y:1", "2 y=1 x:2 z:1", "3 z=1 x=1"]
UNREPEATABLE = ["1 x:1", "2 x:2", "3 x=1 x=2"]
CAUSAL = ["1 x:1", "2 x=1 y:1", "3 y=1 x="]


@pytest.mark.parametrize(
    ("lines", "weakest_violated"),
    [
        (FRACTURED, "read-atomic"),
        (LONG_FORK, "prefix"),
        (LOST_UPDATE, "snapshot-isolation"),
        (WRITE_SKEW, "serializable"),
        (UNREPEATABLE, "repeatable-read"),
        (STALE, "read-committed"),
        (CAUSAL, "causal"),
        (["1 x=7"], "read-committed"),
        (["1 fail x:1", "2 x=1"], "read-committed"),
        (["1 x:1 x:2", "2 x=1"], "read-committed"),
        (["1 x=1 x:1"], "read-committed"),
        (["1 x:1 x=2", "2 x:2"], "read-committed"),
        (["1 info x:1", "2 x=1", "3 x="], None),
        (["1 info x:1", "2 x="], None),
    ],
)
def test_weakest_violated_level(lines: list[str], weakest_violated: str | None) -> None:
    """A history violates a level and all stronger ones, and satisfies all weaker ones."""
    verdicts = {level: judge_level(history(*lines, registers=True), level) for level in LEVELS}
    violated = [level for level, verdict in verdicts.items() if not verdict.valid]
    expected = [] if weakest_violated is None else [*LEVELS[LEVELS.index(weakest_violated) :]]
    assert violated == expected
    assert all(verdicts[level].why for level in violated)


def test_order_of_a_session() -> None:
    """A session reads its own writes, but need not see others' writes in time."""
    own = history("1 x:1", "1 x=", registers=True)
    assert judge_level(own, "read-committed").valid is True
    assert judge_level(own, "read-atomic").valid is False
    others = history("1 x:1", "2 x=", registers=True)
    assert judge_level(others, "serializable").valid is True


def test_initial_value() -> None:
    """A value can stand for the initial state; without that, nothing wrote it."""
    events = history("1 x=0", registers=True)
    assert judge_level(events, "read-committed", initial=0).valid is True
    found = judge_level(events, "read-committed")
    assert (found.valid, found.why) == (
        False,
        "T1 = r x 0 read x as 0, which no transaction wrote.",
    )


def test_values_that_are_written_twice() -> None:
    """A read of a value that two transactions wrote does not say which of them it saw."""
    found = judge_level(history("1 x:1", "2 x:1", "3 x=1", registers=True), "serializable")
    assert (found.valid, found.why) == (
        "unknown",
        "1 is written to x by more than one transaction",
    )
    twice_in_one = history("1 x:1 x:1", "3 x=1", registers=True)
    assert judge_level(twice_in_one, "serializable").valid is True


def test_argument() -> None:
    """A violation names the transactions and gives a reason for each step."""
    found = judge_level(history(*CAUSAL, registers=True), "causal")
    assert found.events == (0,)
    assert found.why == (
        "Let T1 = the initial state and T2 = w x 1. T1 precedes T2, because the initial versions"
        " precede all transactions. T2 precedes T1, because a transaction that must know its write"
        " of x read x from the later one: a contradiction."
    )


def test_budget_and_names() -> None:
    """A search without steps is unknown; an unknown level is refused."""
    assert judge_level(history(*WRITE_SKEW, registers=True), "serializable", budget=0) == (
        judge_level(history(*WRITE_SKEW, registers=True), "snapshot-isolation", budget=0)
    )
    with pytest.raises(ValueError, match="'dirty' is not a level; the levels are read-committed"):
        judge_level([], "dirty")
    assert judge_level(history("1 x+1"), "causal").valid == "unknown"
    assert judge_level([], "serializable").valid is True


def closed(edges: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    """Return the transitive closure."""
    found = {*edges}
    for middle in range(count):
        into = [a for a, b in found if b == middle]
        out = [b for a, b in found if a == middle]
        found |= {(a, b) for a in into for b in out}
    return found


def by_axiom(given: Sessions, level: str) -> bool:
    """Return whether a history satisfies a level, by its axiom word for word."""
    count = len(given.txns)
    so = {
        (a, b)
        for session in given.sessions
        for at, b in enumerate(session)
        for a in (INITIAL, *session[:at])
    }
    wr = {(writer, n) for n, txn in enumerate(given.txns) for _, writer in txn.reads}
    causes = {"read-atomic": so | wr, "causal": closed(so | wr, count)}
    edges = so | wr
    for number, txn in enumerate(given.txns):
        for at, (key, writer) in enumerate(txn.reads):
            must_know = {a for a, b in causes.get(level, set()) if b == number}
            if level == "read-committed":
                must_know = {other for _, other in txn.reads[:at]}
            edges |= {
                (other, writer)
                for other in must_know
                if other != writer and key in given.txns[other].writes
            }
    return all(a != b for a, b in closed(edges, count))


def drawn(rng: random.Random) -> list[Op]:
    """Draw sessions whose reads return anything that was written."""
    keys, value = "xyz"[: rng.randint(2, 3)], 0
    values: list[list[Any]] = []
    written: dict[str, list[Any]] = {key: [None] for key in keys}
    for _ in range(rng.randint(2, 6)):
        txn: list[Any] = []
        for _ in range(rng.randint(1, 4)):
            key = rng.choice(keys)
            if rng.random() < 0.5 and not any(m[:2] == ["w", key] for m in txn):
                value += 1
                written[key].append(value)
                txn.append(["w", key, value])
            else:
                txn.append(["r", key, None])
        values.append(txn)
    for txn in values:
        mine: dict[str, Any] = {}
        for each in txn:
            if each[0] == "w":
                mine[each[1]] = each[2]
            else:
                own = {v for name, key, v in txn if (name, key) == ("w", each[1])}
                free = [v for v in written[each[1]] if v not in own]
                each[2] = mine.setdefault(each[1], rng.choice(free))
    return [
        Op(index=n, time_ns=n, process=rng.randint(0, 2), type="ok", f="txn", value=value)
        for n, value in enumerate(values)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["read-committed", "read-atomic", "causal"])
def test_same_as_the_axiom(level: str) -> None:
    """The precedences that are left out change no verdict."""
    rng = random.Random(17)
    verdicts = {True: 0, False: 0}
    for _ in range(1500):
        events = drawn(rng)
        expected = by_axiom(sessions_of(events), level)
        assert judge_level(events, level).valid is expected, [op.value for op in events]
        verdicts[expected] += 1
    assert min(verdicts.values()) > 50


def serial(given: Sessions, order: Sequence[int]) -> bool:
    """Return whether an order of transactions explains what they read."""
    last: dict[Any, int] = {}
    done: set[int] = set()
    for number in order:
        txn = given.txns[number]
        session = next(s for s in given.sessions if number in s)
        if not {*session[: txn.place]} <= done:
            return False
        if any(last.get(key, INITIAL) != writer for key, writer in txn.reads):
            return False
        last.update(dict.fromkeys(txn.writes, number))
        done.add(number)
    return True


def snapshots(given: Sessions, order: Sequence[int], is_strict: bool) -> bool:
    """Return whether commits in an order, and some snapshots before them, explain a history.

    Args:
        is_strict: whether transactions that write a common key must not overlap.
    """
    place = {number: at for at, number in enumerate(order)}
    for number in order:
        txn = given.txns[number]
        session = next(s for s in given.sessions if number in s)
        first = max((place[other] + 1 for other in session[: txn.place]), default=0)
        if is_strict:
            same = [o for o in order[: place[number]] if given.txns[o].writes & txn.writes]
            first = max([first, *(place[other] + 1 for other in same)])
        if not any(
            all(_last(given, order[:at], key) == writer for key, writer in txn.reads)
            for at in range(first, place[number] + 1)
        ):
            return False
    return True


def _last(given: Sessions, order: Sequence[int], key: Any) -> int:
    return next((n for n in reversed(order) if key in given.txns[n].writes), INITIAL)


SEARCHES: dict[str, Callable[[Sessions, Sequence[int]], bool]] = {
    "prefix": lambda given, order: snapshots(given, order, False),
    "snapshot-isolation": lambda given, order: snapshots(given, order, True),
    "serializable": serial,
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [*SEARCHES])
def test_same_as_all_orders(level: str) -> None:
    """The search finds an execution exactly if some order of commits explains the history."""
    rng = random.Random(19)
    verdicts = {True: 0, False: 0}
    for _ in range(250):
        events = drawn(rng)
        try:
            given = sessions_of(events)
        except Violation:
            continue
        numbers = range(1, len(given.txns))
        expected = any(SEARCHES[level](given, order) for order in permutations(numbers))
        assert judge_level(events, level).valid is expected, [op.value for op in events]
        verdicts[expected] += 1
    assert min(verdicts.values()) > 15
