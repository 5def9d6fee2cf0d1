"""Verdicts on small random histories, compared with a search over all serial orders."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from checkers.isolation import Options, judge
from model.op import Op

KEYS = ("x", "y", "z")
CASES = 1500
"""Number of histories per test. ``agree`` takes a larger number."""


def serial(values: Sequence[list[Any]], order: Sequence[int]) -> list[list[Any]]:
    """Return what transactions read if they are executed in an order."""
    state: dict[str, list[int]] = {key: [] for key in KEYS}
    found: list[list[Any]] = [[] for _ in values]
    for txn in order:
        for name, key, element in values[txn]:
            if name == "append":
                state[key].append(element)
            result = list(state[key]) if name == "r" else element
            found[txn].append([name, key, result])
    return found


def draw(rng: random.Random) -> list[list[Any]]:
    """Draw transactions as they would be invoked; the last one reads all keys."""
    count, element = rng.randint(2, 4), 0
    found: list[list[Any]] = []
    for _ in range(count):
        txn: list[Any] = []
        for _ in range(rng.randint(1, 4)):
            key = rng.choice(KEYS[: rng.choice((2, 3))])
            if rng.random() < 0.5:
                element += 1
                txn.append(["append", key, element])
            else:
                txn.append(["r", key, None])
        found.append(txn)
    found.append([["r", key, None] for key in KEYS])
    return found


def disturbed(rng: random.Random, values: list[list[Any]]) -> list[list[Any]]:
    """Return transactions with some reads cut or prolonged to another version of their key."""
    final = {key: result for _, key, result in values[-1]}
    for _ in range(rng.randint(0, 2)):
        txn = rng.randrange(len(values) - 1)
        reads = [each for each in values[txn] if each[0] == "r"]
        if reads:
            read = rng.choice(reads)
            read[2] = final[read[1]][: rng.randint(0, len(final[read[1]]))]
    return values


def times(rng: random.Random, count: int) -> list[tuple[int, int]]:
    """Draw when each transaction is invoked and completes; the last one comes after all others."""
    points = [*range(2 * (count - 1))]
    rng.shuffle(points)
    found = [(min(pair), max(pair)) for pair in zip(points[::2], points[1::2], strict=True)]
    return [*found, (2 * count - 2, 2 * count - 1)]


def orders(spans: Sequence[tuple[int, int]], done: tuple[int, ...] = ()) -> Iterator[list[int]]:
    """Yield the serial orders that respect the time of each transaction."""
    left = [txn for txn in range(len(spans)) if txn not in done]
    if not left:
        yield [*done]
    for txn in left:
        if all(spans[other][1] > spans[txn][0] for other in left if other != txn):
            yield from orders(spans, (*done, txn))


def events_of(values: list[list[Any]], spans: Sequence[tuple[int, int]]) -> list[Op]:
    found = [
        Op(index=at, time_ns=at, process=txn, type=kind, f="txn", value=values[txn])  # type: ignore[arg-type]
        for txn, span in enumerate(spans)
        for at, kind in zip(span, ("invoke", "ok"), strict=True)
    ]
    return sorted(found, key=lambda op: op.index)


def agree(seed: int, count: int, model: str) -> dict[bool, int]:
    """Compare verdicts on random histories; return how many were valid and invalid."""
    rng = random.Random(seed)
    verdicts = {True: 0, False: 0}
    for _ in range(count):
        invoked = draw(rng)
        spans = times(rng, len(invoked))
        allowed = spans if model == "strict-serializable" else [(0, 99)] * len(spans)
        actual = [*range(len(invoked) - 1)]
        rng.shuffle(actual)
        values = disturbed(rng, serial(invoked, [*actual, len(invoked) - 1]))
        expected = any(serial(values, order) == values for order in orders(allowed))
        found = judge(events_of(values, spans), options=Options((model,)))
        assert found.valid in (expected, "unknown"), (values, spans, found.anomaly_types)
        if found.valid == "unknown":
            assert expected, (values, found.unknown_because)
        verdicts[expected] += 1
    return verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    ["serializable", pytest.param("strict-serializable", marks=pytest.mark.prove)],
)
def test_all_serial_orders(model: str) -> None:
    """A history whose versions were all read is valid exactly if a serial order explains it."""
    verdicts = agree(7, CASES, model)
    assert min(verdicts.values()) > CASES // 10


def search_snapshots(values: list[list[Any]], count: int) -> bool:
    """Return whether snapshots explain a history: each transaction reads the state after some
    commits, and no transaction that wrote one of its keys commits between its snapshot and its own
    commit."""

    def explained(order: Sequence[int], states: Sequence[dict[str, list[int]]]) -> bool:
        if len(order) == count:
            return True
        for txn in set(range(count)) - {*order}:
            written = {key for name, key, _ in values[txn] if name == "append"}
            for begin, state in enumerate(states):
                between = {
                    key
                    for other in order[begin:]
                    for name, key, _ in values[other]
                    if name == "append"
                }
                after = executed(values[txn], state)
                if after is None or written & between:
                    continue
                following = states[-1] | {key: after[key] for key in written}
                if explained([*order, txn], [*states, following]):
                    return True
        return False

    return explained([], [{key: [] for key in KEYS}])


def executed(value: list[Any], state: dict[str, list[int]]) -> dict[str, list[int]] | None:
    """Return the state after a transaction; ``None`` if it would have read other lists."""
    mine = {key: list(elements) for key, elements in state.items()}
    for name, key, result in value:
        if name == "append":
            mine[key].append(result)
        elif result != mine[key]:
            return None
    return mine


@pytest.mark.slow
def test_all_snapshots() -> None:
    """A history whose versions were all read is valid under snapshot isolation exactly if
    snapshots explain it."""
    rng = random.Random(11)
    verdicts = {True: 0, False: 0}
    for _ in range(400):
        invoked = draw(rng)
        order = [*range(len(invoked))]
        values = disturbed(rng, serial(invoked, order))
        expected = search_snapshots(values, len(values))
        spans = [(2 * n, 2 * n + 1) for n in order]
        found = judge(events_of(values, spans), options=Options(("snapshot-isolation",)))
        assert found.valid in (expected, "unknown"), (values, found.anomaly_types)
        verdicts[expected] += 1
    assert min(verdicts.values()) > 40
