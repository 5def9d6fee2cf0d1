"""Each anomaly of registers, the analyzers of version orders, and an oracle."""

import random
from typing import Any

import pytest

from checkers.isolation import Options, judge
from model.op import Op
from tests.checkers.isolation.histories import history, one_by_one
from tests.checkers.isolation.test_list_append_oracle import orders, times


@pytest.mark.parametrize(
    ("lines", "anomalies"),
    [
        (["1 fail x:1", "2 x=1"], ["G1a"]),
        (["1 info x:1", "2 x=1"], []),
        (["1 x:1 x:2", "2 x=1"], ["G1b"]),
        (["1 x:1 x:2", "2 x=2"], []),
        (["1 x:1 x=1 x:2"], []),
        (["1 x:1 x=2", "2 x:2"], ["internal"]),
        (["1 x= x=1", "2 x:1"], ["internal"]),
        (["1 x=1 x=1", "2 x:1"], []),
        (["1 x=1 x:2", "2 x=1 x:3", "3 x:1"], ["lost-update"]),
        (["1 x=1 x:2", "2 x=2 x:3", "3 x:1"], []),
        (["1 x= x:2", "2 x= x:3"], ["G2-item", "lost-update"]),
        (["1 x:1 y=1", "2 y:1 x=1"], ["G1c"]),
        (["1 x=1 y=", "2 x:1 y:1"], ["G-single-item"]),
        (["1 x=7"], []),
    ],
)
def test_anomalies(lines: list[str], anomalies: list[str]) -> None:
    """Single transactions and pairs of them show what is wrong, with near misses."""
    found = judge(history(*lines, registers=True), "rw-register", Options(("serializable",)))
    assert sorted({*found.anomaly_types} - {"empty-transaction-graph"}) == anomalies


def test_garbage_on_request() -> None:
    """A value that no transaction wrote is reported if it is asked for."""
    events = history("1 x=7", "2 x=", registers=True)
    found = judge(events, "rw-register", Options((), ("garbage-read",)))
    assert (found.valid, found.counts) == (False, {"garbage-read": 1})


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["1 x:1", "2 x:1"], "several transactions write 1 to x"),
        (["1 fail x:1", "2 x:1"], "several transactions write 1 to x"),
        (["1 x+1"], "event 0 has the unexpected micro-operation ['append', 'x', 1]"),
    ],
)
def test_what_is_not_understood(lines: list[str], why: str) -> None:
    """A value with two writers shows nothing about either of them."""
    found = judge(history(*lines, registers=True), "rw-register")
    assert (found.valid, found.unknown_because) == ("unknown", (why,))


@pytest.mark.parametrize(
    ("options", "lines", "anomalies"),
    [
        # A process sees the versions of a key in order.
        ("sequential_keys", ["1 x:1", "1 x:2", "2 x=2", "2 x=1"], ["cyclic-versions"]),
        ("sequential_keys", ["1 x:1", "1 x:2", "2 x=1", "2 x=2"], []),
        ("sequential_keys", ["1 x:1", "1 y:1", "2 x:2 y:2", "2 x=1 y=2"], []),
        # A failed or unknown transaction in between does not matter.
        (
            "sequential_keys",
            ["1 x:1", "1 fail x:3", "1 x:2", "2 x=2", "2 x=1"],
            ["cyclic-versions"],
        ),
        # So does every key in time.
        ("linearizable_keys", ["1 x:1", "2 x:2", "3 x=1"], ["cyclic-versions"]),
        ("linearizable_keys", ["1 x:1", "2 x:2", "3 x=2"], []),
        (
            "linearizable_keys",
            ["1 x:1 y:1", "2 x:2", "3 x=2 y="],
            ["G-single-item", "cyclic-versions"],
        ),
        # A transaction writes the version after the one that it read.
        ("wfr_keys", ["1 x:1", "2 x=1 x:2 y:1", "3 x=1 y=1"], ["G-single-item"]),
        ("wfr_keys", ["1 x:1", "2 x=1 x:2 y:1", "3 x=2 y=1"], []),
        ("wfr_keys", ["1 x=2 x:1", "2 x=1 x:2"], ["G1c", "cyclic-versions"]),
        ("wfr_keys", ["1 x=1 x:1"], ["future-read"]),
    ],
)
def test_analyzers(options: str, lines: list[str], anomalies: list[str]) -> None:
    """Each assumption about keys orders their versions, or is contradicted by them."""
    given: dict[str, Any] = {options: True}
    found = judge(
        one_by_one(*lines, registers=True), "rw-register", Options(("serializable",), **given)
    )
    assert sorted({*found.anomaly_types} - {"empty-transaction-graph"}) == anomalies


def test_overlapping_transactions_in_time() -> None:
    """Versions that were written at the same time have no order, and those of an earlier time
    precede both."""
    events = history(
        "1 invoke x:1",
        "1 x:1",
        "2 invoke x:2",
        "3 invoke x:3",
        "2 x:2",
        "3 x:3",
        "4 invoke x",
        "4 x=2",
        "5 invoke x",
        "5 x=1",
        registers=True,
    )
    options = Options((), ("cyclic-versions",), linearizable_keys=True)
    (found,) = judge(events, "rw-register", options).anomalies["cyclic-versions"]
    assert found.values == ((1, 2, 3), ("initial-state", "linearizable-keys"))
    assert judge(events[:-2], "rw-register", options).valid is True


def test_transaction_order() -> None:
    """A known order of commits orders versions; the order of events does not."""
    events = history("1 x= y:2", "2 x:3 y:4", registers=True)
    first, last = ({0: 1, 1: 2}, {0: 2, 1: 1})
    for order, anomalies in ((first, ()), (last, ("G-single-item",))):
        options = Options(("serializable",), transaction_order=order)
        assert judge(events, "rw-register", options).anomaly_types == anomalies


def test_initial_versions_have_few_edges() -> None:
    """With an order of versions, the reads of the initial one lead only to the first one."""
    lines = ["1 x="] * 50 + [f"2 x={n or ''} x:{n + 1}" for n in range(50)]
    found = judge(
        one_by_one(*lines, registers=True), "rw-register", Options(wfr_keys=True, budget=1000)
    )
    assert (found.valid, found.unknown_because) == (True, ())


KEYS = ("x", "y")


def serial(values: list[list[Any]], order: list[int]) -> list[list[Any]]:
    state: dict[str, int | None] = dict.fromkeys(KEYS)
    found: list[list[Any]] = [[] for _ in values]
    for txn in order:
        for name, key, value in values[txn]:
            if name == "w":
                state[key] = value
            found[txn].append([name, key, state[key]])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    ["serializable", pytest.param("strict-serializable", marks=pytest.mark.prove)],
)
def test_all_serial_orders(model: str) -> None:
    """If each transaction writes only what it read before, a history is valid exactly if a serial
    order explains it."""
    rng = random.Random(13)
    verdicts = {True: 0, False: 0}
    for _ in range(1000):
        count = rng.randint(2, 5)
        invoked: list[list[Any]] = []
        for txn in range(count):
            value: list[Any] = [["r", key, None] for key in KEYS if rng.random() < 0.7]
            value += [["w", key, txn + 1] for _, key, _ in value if rng.random() < 0.6]
            invoked.append(value)
        spans = times(rng, count)
        actual = [*range(count)]
        rng.shuffle(actual)
        values = serial(invoked, actual)
        for _ in range(rng.randint(0, 1)):
            reads = [each for value in values for each in value if each[0] == "r"]
            if reads:
                read = rng.choice(reads)
                written = [v for value in values for n, k, v in value if (n, k) == ("w", read[1])]
                read[2] = rng.choice([None, *written])
        allowed = spans if model == "strict-serializable" else [(0, 99)] * count
        expected = any(serial(values, order) == values for order in orders(allowed))
        events = [
            Op(index=at, time_ns=at, process=txn, type=kind, f="txn", value=values[txn])  # type: ignore[arg-type]
            for txn, span in enumerate(spans)
            for at, kind in zip(span, ("invoke", "ok"), strict=True)
        ]
        events.sort(key=lambda op: op.index)
        found = judge(events, "rw-register", Options((model,), wfr_keys=True))
        assert found.valid in (expected, "unknown"), (values, spans, found.anomaly_types)
        assert expected or found.valid is False
        verdicts[expected] += 1
    assert min(verdicts.values()) > 100
