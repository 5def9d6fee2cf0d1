import random
from ast import literal_eval
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.kernels import cycles
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.history import History
from model.op import Op


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # each transaction read a record of the other
        (">t0:+x=a@0|y=b@0 t1:+y=b@0|x=a@0 <t0:+x=a@0|y=b@0", ["wr-cycle (2, 3)"]),
        ("t0:+x=a@0 t1:+y=b@0|x=a@0", []),
        ("t0:+x=a@0|x=a@0", []),  # a precommitted read
        # their records interleave
        ("t0:+x=a@0,+y=b@1 t1:+x=c@1,+y=d@0", ["G0 (3, 1)"]),
        ("t0:+x=a@0,+x=c@2 t1:+x=b@1", ["G0 (3, 1)"]),
        ("t0:+x=a@0,+y=b@0 t1:+x=c@1,+y=d@1", []),
        # one read a record of the other, and its own is before the other's elsewhere
        ("t0:+x=a@0,+y=c@2 t1:+y=b@1|x=a@0", ["G1c (1, 3)"]),
        ("t0:+x=a@0,+y=c@1 t1:+y=b@2|x=a@0", []),
        # a failed transaction is in no cycle, and one in doubt only if it is proven
        ("t0:+x=a@0|y=b@0 t1!:+y=b@0|x=a@0", []),
        ("t0?:+x=a@0,+y=b@1 t1:+x=c@1,+y=d@0", []),
        ("t0?:+x=a@0,+y=b@1 t1:+x=c@1,+y=d@0 p:x=a@0", ["G0 (3, 1)"]),
        ("t0?:+x=a,+y=b@1 t1:+x=c@1,+y=d@0 p:x=a@0", ["G0 (3, 1)"]),  # a read shows its place
        # plain operations are no transactions
        ("s:x=a@0,y=b@1 s1:x=c@1,y=d@0", []),
        # through a third transaction
        ("t0:+x=a@0|z=c@0 t1:+y=b@0|x=a@0 t2:+z=c@0|y=b@0", ["wr-cycle (1, 3, 5)"]),
        # a cycle of reads, and one with a write
        (
            "t0:+x=a@0,+z=c@1|y=b@0 t1:+y=b@0|x=a@0 t2:+z=d@0|x=a@0",
            ["wr-cycle (3, 1)", "G1c (1, 5)"],
        ),
    ],
)
def test_cycles(histories: Any, text: str, found: list[str]) -> None:
    """A cycle is named by the kinds of its edges."""
    told = cycles.kernel(histories.tables(text))
    assert sorted(map(spoken, told)) == sorted(turned(f) for f in found)


def spoken(found: Any) -> str:
    return turned(f"{found.anomaly} {found.ops}")


def turned(text: str) -> str:
    """A cycle's text, rotated to begin with its smallest step."""
    name, _, rest = text.partition(" ")
    ops = literal_eval(rest)
    at = ops.index(min(ops))
    return f"{name} {ops[at:] + ops[:at]}"


def test_a_circle_argues(histories: Any) -> None:
    """A finding describes a step for each edge of its cycle."""
    (found,) = cycles.kernel(histories.tables("t0:+x=a@0,+y=c@2 t1:+y=b@1|x=a@0"))
    assert found.key is None
    assert found.why == (
        "transaction 3 read value 1 of x from 1; value 3 of transaction 1 follows value 2 of 3 in"
        " y: these dependencies form a cycle"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # a cycle of two, and a third transaction with an edge to it
        (
            "t0:+x=a@0|y=b@0|z=c@0 t1:+y=b@0|x=a@0 t2:+z=c@0|y=b@0",
            ["wr-cycle 1"],
        ),
        ("t0:+x=a@0|y=b@0 t1:+y=b@0|x=a@0 t2:+x=c@1|y=d@1 t3:+y=d@1|x=c@1", ["wr-cycle 0"] * 2),
        # legal cycles are one finding for each kind
        ("t0:+x=a@0,+x=c@2 t1:+x=b@1 t2:+y=a@0,+y=c@2 t3:+y=b@1", ["G0 1"]),
    ],
)
def test_how_many(histories: Any, text: str, found: list[str]) -> None:
    """A cycle of reads is one finding for its component, a legal cycle one for all of its kind."""
    told = cycles.kernel(histories.tables(text))
    assert [f"{f.anomaly} {f.folded}" for f in told] == found


def test_above_its_budget_it_gives_up(histories: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above its budget of edges the kernel gives up, and the result is unknown."""
    monkeypatch.setattr(cycles, "EDGES_MAX", 1)
    tables = histories.tables("t0:+x=a@0,+y=b@1 t1:+x=c@1,+y=d@0")
    with pytest.raises(GaveUp, match="the history has 2 dependencies, more than 1"):
        cycles.kernel(tables)


def drawn(rng: random.Random) -> list[Op]:
    """Random transactions over two partitions: records at random places, polls of random
    records."""
    count = rng.randint(2, 7)
    logs: dict[str, list[int]] = {"x": [], "y": []}
    sent: list[list[tuple[str, int]]] = []
    for value in range(rng.randint(count, 2 * count)):
        logs[rng.choice("xy")].append(value)
    for log in logs.values():
        rng.shuffle(log)
    places = {(key, value): at for key, log in logs.items() for at, value in enumerate(log)}
    records = sorted(places)
    sent = [[] for _ in range(count)]
    for record in records:
        sent[rng.randrange(count)].append(record)
    events: list[Op] = []
    for process, mine in enumerate(sent):
        read: dict[str, list[list[int]]] = {}
        for key, value in rng.sample(records, rng.randint(0, min(3, len(records)))):
            read.setdefault(key, []).append([places[key, value], value])
        done: list[Any] = [["send", key, [places[key, v], v]] for key, v in mine]
        asked: list[Any] = [["send", key, v] for key, v in mine]
        at = 2 * process
        events.append(
            Op(
                index=at,
                time_ns=at,
                process=process,
                type="invoke",
                f="txn",
                value=[*asked, ["poll"]],
            )
        )
        events.append(
            Op(
                index=at + 1,
                time_ns=at + 1,
                process=process,
                type="ok",
                f="txn",
                value=[*done, ["poll", read]],
            )
        )
    return events


def edges_by_definition(events: list[Op]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The ``wr`` and ``ww`` edges by their definitions, pair by pair."""
    done = [op for op in events if op.type == "ok"]
    writer = {(m[1], m[2][1]): op.index for op in done for m in op.value if m[0] == "send"}
    wr = {
        (writer[key, value], op.index)
        for op in done
        for m in op.value
        if m[0] == "poll"
        for key, records in m[1].items()
        for _, value in records
    }
    places = sorted((m[1], m[2][0], op.index) for op in done for m in op.value if m[0] == "send")
    ww = {(a[2], b[2]) for a, b in pairwise(places) if a[0] == b[0]}
    return {(a, b) for a, b in wr if a != b}, {(a, b) for a, b in ww if a != b}


def reaches(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The transitive closure of some edges, computed slowly."""
    closure = set(edges)
    while more := {(a, d) for a, b in closure for c, d in closure if b == c} - closure:
        closure |= more
    return closure


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_by_definition(histories: Any, seed: int) -> None:
    """The kernel finds what the definitions say, and each witness is a cycle of such edges."""
    events = drawn(random.Random(seed))
    history: History = histories.tables(events)
    wr, ww = edges_by_definition(events)
    by_reads, by_writes, by_both = reaches(wr), reaches(ww), reaches(wr | ww)
    expected = {
        "wr-cycle": any((a, a) in by_reads for a, _ in wr),
        "G0": any((a, a) in by_writes for a, _ in ww),
        "G1c": any((b, a) in by_both and (b, a) not in by_reads for a, b in wr),
    }
    found = cycles.kernel(history)
    assert {f.anomaly for f in found} == {name for name, there in expected.items() if there}
    for f in found:
        steps = set(pairwise((*f.ops, f.ops[0])))
        allowed = {"wr-cycle": wr, "G0": ww, "G1c": wr | ww}[f.anomaly]
        assert steps <= allowed
        if f.anomaly == "G1c":
            assert steps & wr
            assert steps - wr
