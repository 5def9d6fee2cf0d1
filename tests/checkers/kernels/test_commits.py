import dataclasses
import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.kernels.commits import kernel
from checkers.kernels.faults import FaultInterval
from checkers.kernels.found import Found
from checkers.kernels.log import Log
from model.op import Op

SECOND = 1_000_000_000


def told(found: list[Found]) -> list[str]:
    return [f"{f.anomaly} {f.variant} {f.offset} {f.ops}".replace("  ", " ") for f in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("f:x", []),
        ("k:x@5 f:x@5", []),
        ("k:x@5 k:x@9 f:x@9", []),
        ("k:x@5 k:x@3 f:x@3", []),  # a client may commit a lower offset
        ("f:x k:x@5", []),
        # regression
        ("k:x@5 k:x@9 f:x@5", ["commit-regression 5 (3, 1, 5)"]),
        ("k:x@9 k:x@5 f:x@9", ["commit-regression 9 (3, 1, 5)"]),
        ("k:x@5 k:x@9 f:x@5 f:x@5", ["commit-regression 5 (3, 1, 5)"]),  # one lost commit
        ("k:x@5 k:x@9 f:x@5 f:x@9", ["commit-regression 5 (3, 1, 5)"]),
        ("k:x@5 k:x@9 k:x@5 f:x@5", []),
        # lost
        ("k:x@5 f:x", ["lost-commit 5 (1, 3)"]),
        ("k:x@5 k:x@9 f:x f:x@5", ["lost-commit 9 (3, 5)", "commit-regression 5 (3, 1, 7)"]),
        (">k1:x@5 f:x <k1:x@5", []),
        (">f:x k1:x@5 <f:x", []),
        ("k:y@5 f:x", []),
        # overlapping commits may take effect in any order
        ("k1:x@5 >k2:x@9 f:x@5 f:x@9 f:x@5 <k2:x@9 f:x@9", []),
        ("k1:x@5 >k2:x@9 <k2:x@9 f:x@5", ["commit-regression 5 (3, 1, 5)"]),
        (">k1:x@5 >k2:x@9 <k1:x@5 <k2:x@9 f:x@5 f:x@9", []),
        (">k1:x@5 k2:x@9 <k1:x@5 f:x@5", []),
        (">k1:x@5 k2:x@9 <k1:x@5 k2:x@12 f:x@5", ["commit-regression 5 (5, 3, 7)"]),
        ("k1:x@5 >f:x k2:x@9 <f:x@5", []),
        ("k1:x@5 >f:x k2:x@9 <f:x@9", []),
        # failed, and in doubt
        ("k:x@5 k!:x@9 f:x@5", []),
        ("k:x@5 k!:x@9 f:x@9", ["commit-ahead nobody 9 (1, 3, 5)"]),
        ("k:x@5 k2?:x@9 f:x@5", []),
        ("k:x@5 k1?:x@9 f:x@9", []),
        ("k:x@5 k1?:x@9 k:x@12 f:x@9", []),  # it may take effect late
        ("k:x@5 k1?:x@9 f:x@9 f:x@5", ["commit-regression 5 (3, 1, 7)"]),  # it has taken effect
        ("k:x@5 k1?:x@9 k2?:x@9 f:x@9 f:x@5", []),  # one of them has, and the other may later
        ("k:x@5 k1?:x@5 k:x@9 f:x@5", []),
        # deleted offsets
        ("k:x@5 k:x f:x", []),
        ("k:x@5 k:x f:x@5", ["commit-regression 5 (3, 1, 5)"]),
        ("k:x@5 k:x k:x@9 f:x", ["lost-commit 9 (5, 7)"]),
        ("k:x@5 k2?:x f:x", []),
        ("f:x k1?:x k:x@5 f:x@5 f:x", []),
        ("k:x@5 k!:x f:x", ["lost-commit 5 (1, 5)"]),
        # an offset that was never committed
        ("f:x@3", ["commit-ahead nobody 3 (1,)"]),
        ("k:x@5 f:x@3", ["commit-regression nobody 3 (1, 3)"]),
        ("k:x@5 f:x@7", ["commit-ahead nobody 7 (1, 3)"]),
        ("f:x@5 k:x@5", ["commit-ahead nobody 5 (1,)"]),
        # with metadata
        ("k:x@5%7 k:x@9 f:x@9", []),
        ("k:x@5%7 f:x@5%7", []),
        ("k:x@5%7 f:x@5%8 f:x@5", ["commit-mismatch 5 (1, 3)"]),  # of one offset
        ("k:x@5%7 f:x@5", ["commit-mismatch 5 (1, 3)"]),
        ("k:x@5 f:x@5%7", ["commit-mismatch 5 (1, 3)"]),
        ("k:x@5%7 f:x", ["lost-commit 5 (1, 3)"]),
        ("k:x@5%7 k:x@5%8 f:x@5%8", []),
        ("k1:x@5%7 >k2:x@5%8 f:x@5%7 f:x@5%8 <k2:x@5%8", []),
        ("k1:x@5%7 k2?:x@5%8 f:x@5%8", []),
        ("k1:x@5%7 k2!:x@5%8 f:x@5%8", ["commit-mismatch 5 (1, 5)"]),
        ("k:x@5%7 k:y@5%8 f:x@5%8", ["commit-mismatch 5 (1, 5)"]),
        ("f:x@3%7", ["commit-ahead nobody 3 (1,)"]),
        ("k:x@5%7 k:x@9%8 f:x@5%8", ["commit-regression 5 (3, 1, 5)", "commit-mismatch 5 (1, 5)"]),
        # other partitions of one commit
        ("k:x@5,y@7 k:y@8 f:x@5,y@8", []),
        # a client that commits automatically: only that something was committed is known
        ("m1:x#auto k:x@5 k:x@9 f:x@5 f:x@7", []),
        ("m1:x#auto k:x@5 f:x", ["lost-commit 5 (3, 5)"]),
        ("m1:x#auto k:x@5%7 f:x@5", []),
        ("m1:x#auto f:x@5 f:x", ["lost-commit None (3, 5)"]),
        ("m1:x#auto f:x f:x@5 f:x@3", []),
        ("m1:x#auto >f2:x f:x@5 <f2:x", []),
        ("m1:x#auto f:x@5 k:x f:x", []),
        ("m1:x#auto f:x@5 k!:x f:x", ["lost-commit None (3, 7)"]),
    ],
)
def test_fetches(histories: Any, text: str, found: list[str]) -> None:
    """A fetch finds what the last commit wrote, whichever that may be."""
    assert told(kernel(histories.log(text))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("i1:t@1.0 t1:|!x@5 f:x", []),  # the group's coordinator learns of the end later
        ("i1:t@1.0 t1:|!x@5 f:x@5", []),
        ("i1:t@1.0 t1:|!x@5 t1:|!x@9 f:x@9 f:x@5", []),
        ("t1:|!x@5 t1:|!y@9 f:x", []),  # it may have several producers
        ("i1:t@1.0 t1:|!x@5 t1:|!y@9 f:x", ["lost-commit 5 (3, 7)"]),
        ("i1:t@1.0 t1:|!x@5 t1!:|!y@9 f:x", []),
        ("i1:t@1.0 t1:|!x@5 t1:|!x@9 f:x", ["lost-commit 5 (3, 7)"]),
        ("i1:t@1.0 t1:|!x@5 i2:t@1.1 f:x", ["lost-commit 5 (3, 7)"]),
        ("i1:t@1.0 t1:|!x@5 t1!:|!x@9 f:x@9", ["commit-ahead nobody 9 (5, 7)"]),
        ("i1:t@1.0 t1:|!x@5 t1?:|!x@9 f:x@9", []),
        ("i1:t@1.0 t1:|!x@5 t1?:|!x@9 i2:t@1.1 t2:|!x@12 t2:|!x@15 f:x@9", ["-"]),
        ("i1:t@1.0 t1:|!x@5 t1?:|!x@9 t2:|!x@12 t2:|!x@15 f:x@9", []),
        # a plain commit in the middle of a transaction
        ("i1:t@1.0 t1:|!x@5|!!x@6 f:x@6", []),
        ("i1:t@1.0 t1:|!x@5|!!x@6 f:x@5", ["commit-regression 5 (3, 5)"]),
        ("i1:t@1.0 k:x@4 t1:|!x@5|!!x@6 f:x@4", ["commit-regression 4 (5, 3, 7)"]),
        ("i1:t@1.0 t1:|!x@5,y@5|!!y@6 f:x f:x@5", []),
        ("i1:t@1.0 t1:|!x@5,y@5|!!y@6 f:x@5 f:x", ["lost-commit 5 (3, 7)"]),  # a fetch has found it
        ("i1:t@1.0 >t1:|!x@5|!!x@6 f:x@6 f:x@5 f:x <t1:|!x@5|!!x@6", []),
        ("i1:t@1.0 t1?:|!x@5|!!x@6 f:x@6 f:x@5", []),
        ("i1:t@1.0 t1!:|!x@5|!!x@6 f:x@6", ["commit-ahead nobody 6 (3, 5)"]),
        ("i1:t@1.0 t1:|!x@5|!!x@6 k:x f:x@5 f:x", []),  # now the commit may take effect
        ("i1:t@1.0 t1:|!x@5|!!x@6 t1:|!x@7 f:x@6 f:x@7", []),
    ],
)
def test_commits_of_transactions(histories: Any, text: str, found: list[str]) -> None:
    """Commits of a transaction take effect after its end is acknowledged, and before that of the
    next."""
    results = told(kernel(histories.log(text)))
    assert results == found or (found == ["-"] and results)


def test_a_commit_in_doubt_ends_with_its_generation(histories: Any) -> None:
    """A commit in doubt is settled by the next acknowledged one of another member.

    The coordinator rejects it once another member was assigned the partition. But its record may be
    in the log, although its coordinator did not wait for it: the next coordinator reads it, up to
    the next commit that is acknowledged.
    """
    before = "m1:x m2:x p1:^x@0#1| k1:x@5 k1?:x@9 "
    given = before + "p2: p2:^x@5#2| "
    assert kernel(histories.log(before + "k2:x@7 f:x@9")) == []
    assert kernel(histories.log(given + "f:x@5 k2?:x@7 f:x@9")) == []
    for text in ("f:x@5 f:x@9 f:x@5", "f:x@5 f:x@9 k2:x@7 f:x@9", "f:x@5 k2:x@7 f:x@9"):
        (found,) = kernel(histories.log(given + text))
        assert (found.anomaly, found.offset) == ("commit-regression", int(text[-1]))


@pytest.mark.parametrize(
    ("poll", "fetch", "found"),
    [
        ("p1:!x-0@1|-x-0#1|", "f2:x-0", ["lost-commit 1 (5, 7)"]),
        ("p1:!x-0@1|-x-0#1|", "f2:x-0@1", []),
        ("p1?:!x-0@1|-x-0#1|", "f2:x-0", []),
        ("p1?:!x-0@1|-x-0#1|", "f2:x-0@1", []),
    ],
)
def test_a_listener_commits_in_doubt_as_its_poll_ends(
    histories: Any, poll: str, fetch: str, found: list[str]
) -> None:
    """A commit that a listener reports in a poll that ended in doubt may never have happened."""
    text = f"m1:x#listener p1:^x-0@0#1| {poll} {fetch}"
    assert told(kernel(histories.log(text, "x-0"))) == found


def test_a_commit_that_nobody_told_may_be_any(histories: Any) -> None:
    """A commit of an unknown offset explains any fetched offset while it may take effect, but no
    absence."""
    text = "i1:t@1.0 m1:x p1:^x@0#1| k2:x@5 t1?:|!? f:x@77 f:x@5%7"
    assert kernel(histories.log(text)) == []
    (lost,) = kernel(histories.log(text + " f:x"))
    assert (lost.anomaly, lost.offset, lost.variant) == ("lost-commit", 5, "")
    (found,) = kernel(histories.log(text + " i2:t@1.1 k2:x@9 f:x@77"))
    assert (found.anomaly, found.variant) == ("commit-ahead", "nobody")


@pytest.mark.parametrize(
    ("interval", "variant"),
    [
        (FaultInterval(1, 0, 2 * SECOND), "stale"),
        (FaultInterval(1, 0, None), "stale"),
        (FaultInterval(1, 0, 2 * SECOND, misleads=False), ""),
        (FaultInterval(1, 60 * SECOND, None), ""),
    ],
)
def test_an_answer_from_memory(histories: Any, interval: FaultInterval, variant: str) -> None:
    """A coordinator that was cut off may not know that it was replaced, and answers from memory."""
    log: Log = histories.log("k1:x@5 k1:x@9 f:x@5")
    (found,) = kernel(dataclasses.replace(log, faults=(interval,)))
    assert found.variant == variant
    (settled,) = kernel(
        dataclasses.replace(histories.log("k1:x@5 k1:x@9 z:60 f:x@5"), faults=(interval,))
    )
    lasts = interval.to_ns is None and interval.misleads and not interval.from_ns
    assert settled.variant == ("stale" if lasts else "")


@pytest.mark.parametrize(
    ("text", "intervals", "variants"),
    [
        ("k1:x@5 k1:x@9 z:60 f:x@5", [FaultInterval(1, 60 * SECOND, None)], [""]),
        ("k1:x@5 z:60 k1:x@9 f:x@5", [FaultInterval(1, 60 * SECOND, None)], ["stale"]),
        ("k1:x@5 z:60 f:x", [FaultInterval(1, 60 * SECOND, None)], [""]),
        ("z:60 k1:x@5 f:x", [FaultInterval(1, 60 * SECOND, None)], ["stale"]),
        # one fault follows another
        (
            "k1:x@5 k1:x@9 z:60 f:x@5",
            [FaultInterval(1, 0, 50 * SECOND), FaultInterval(2, 60 * SECOND, None)],
            ["stale"],
        ),
        (
            "k1:x@5 k1:x@9 z:60 f:x@5",
            [FaultInterval(1, 0, 40 * SECOND), FaultInterval(2, 60 * SECOND, None)],
            [""],
        ),
    ],
)
def test_memory_goes_back_to_the_fault(
    histories: Any, text: str, intervals: list[FaultInterval], variants: list[str]
) -> None:
    """A former coordinator knows what was committed until about the beginning of the fault."""
    log: Log = dataclasses.replace(histories.log(text), faults=tuple(intervals))
    assert [f.variant for f in kernel(log)] == variants


STALE = FaultInterval(1, 0, None, nodes=frozenset({"a"}))
"""A fault of one broker that is never healed."""
OTHER = FaultInterval(2, 0, None, misleads=False, nodes=frozenset({"b"}))


@pytest.mark.parametrize(
    ("text", "intervals", "variant"),
    [
        ("k1:x@5 k1:x@9 f:x@5", [STALE], "stale"),
        # the same answer shows a later commit
        ("k1:x@5,y@5 k1:x@9 k1:y@6 f:x@5,y@6", [STALE], ""),
        ("k1:x@5,y@5 k1:y@6 k1:x@9 f:x@5,y@6", [STALE], "stale"),
        ("k1:x@5,y@5 k1:x@9 k1:y@6 f:x@5,y@5", [STALE], "stale"),
        ("k1:x@5,y@6 k1:x@9 k1:y@6 f:x@5,y@6", [STALE], "stale"),  # it may be the first of both
        ("k1:x@5,y@5 k1:x@9 k1?:y@6 f:x@5,y@6", [STALE], ""),
        # the successor had answered its process before
        ("k1:x@5 k1:x@9 f2:x@9 f2:x@5", [STALE], ""),
        ("k1:x@5 k1:x@9 f2:x@9 f3:x@5", [STALE], "stale"),
        ("k1:x@5 f2:x@5 k1:x@9 f2:x@5", [STALE], "stale"),
        ("k1:x@5 k2:x@9 f2:x@5", [STALE], ""),
        ("k1:x@5 k1:x@9 k1:y@6 f2:y@6 f2:x@5", [STALE], ""),
        ("k1:x@5 k1:x@9 k1:y@6 f2:y@6 f3:x@5", [STALE], "stale"),
        ("k1:x@5 k1:x@9 k2:y@6 f2:x@5", [STALE], ""),
        ("k1:x@5 k1:x@9 k2!:y@6 f2:x@5", [STALE], "stale"),
        # a fault of another broker may have moved its process away from the successor
        ("k1:x@5 k1:x@9 f2:x@9 f2:x@5", [STALE, OTHER], "stale"),
        ("k1:x@5 k1:x@9 k1:y@6 f2:y@6 f2:x@5", [STALE, OTHER], "stale"),
    ],
)
def test_a_memory_is_one_state(
    histories: Any, text: str, intervals: list[FaultInterval], variant: str
) -> None:
    """A coordinator that knows a commit knows all before it, and its clients stay with it."""
    log: Log = dataclasses.replace(histories.log(text), faults=tuple(intervals))
    assert [f.variant for f in kernel(log)] == [variant]


def test_a_commit_after_the_fault_is_not_remembered(histories: Any) -> None:
    """A former coordinator does not know a commit that came after the fault."""
    cut_off = (FaultInterval(1, 0, 1 * SECOND),)
    for text, variant in (("k1:x@5 k1:x@9 f:x@5", "stale"), ("z:4 k1:x@5 k1:x@9 f:x@5", "")):
        (found,) = kernel(dataclasses.replace(histories.log(text), faults=cut_off))
        assert found.variant == variant


@pytest.mark.parametrize(
    ("text", "from_s", "variants"),
    [
        ("k1:x@5 k2:x z:60 f3:x@5", 0, ["stale"]),
        ("k1:x@5 k2:x k3:x z:60 f3:x@5", 0, ["stale"]),
        ("k1:x@5 k2:x z:60 k3:x z:60 f3:x@5", 0, [""]),  # the second deletion is certain
        ("k1:x@5 k2:x z:60 f3:x@5", 30, [""]),  # the deletion came before the fault
        ("k1:x@5 k2:x@9 k3:x z:60 f3:x@5", 0, [""]),  # and so did another commit
        ("k1:x@5 k2:x z:60 f3:x", 0, []),
    ],
)
def test_a_former_coordinator_may_acknowledge_a_deletion(
    histories: Any, text: str, from_s: int, variants: list[str]
) -> None:
    """The successor has the offset all the same, also long after the fault."""
    interval = FaultInterval(1, from_s * SECOND, (from_s + 2) * SECOND)
    log: Log = dataclasses.replace(histories.log(text), faults=(interval,))
    assert [f.variant for f in kernel(log)] == variants


def test_how_long_it_has_not_heard_is_told(histories: Any) -> None:
    """A stale answer reports the longest time without a fault, in whole seconds."""
    log: Log = histories.log("k1:x@5 k1:x@9 f:x@5 f:x@5")
    (found,) = kernel(dataclasses.replace(log, faults=(FaultInterval(1, 0, 2 * SECOND),)))
    assert (found.also, found.folded) == ((4,), 1)


def test_groups_have_registers_of_their_own(histories: Any) -> None:
    """Each group has registers of its own."""
    ops = histories.events("k:x@5 k1:x@9 f:x@9")
    other = [["commit", "other", {"x": 9}, "sync"]]
    changed = [
        Op(**{f: getattr(op, f) for f in op.__struct_fields__} | {"value": other})
        if op.process == 1
        else op
        for op in ops
    ]
    (found,) = kernel(histories.log(changed))
    assert (found.anomaly, found.group, found.offset) == ("commit-ahead", "g", 9)
    assert found.why == (
        "process 9 committed offset 5 for group g at 1.000 s; process 9 fetched the committed"
        " offset until 5.000 s, and received offset 9, which no client had committed"
    )


class Access(NamedTuple):
    """A commit of an offset, or (``None``) a fetch, between two events."""

    process: int
    kind: str
    offset: int | None
    begin: int
    end: int


def accesses(rng: random.Random, count: int) -> tuple[list[Op], list[Access]]:
    """Random commits and fetches of one register by three processes; the answers are often
    wrong."""
    ops: list[Op] = []
    found: list[Access] = []
    under_way: dict[int, tuple[str, int | None, int]] = {}
    living = [1, 2, 3]

    def note(process: int, kind: Any, f: str, offset: int | None) -> int:
        micro_op = [f, "g", {"x": offset}] + (["sync"] if f == "commit" else [])
        ops.append(
            Op(index=len(ops), time_ns=len(ops), process=process, type=kind, f=f, value=[micro_op])
        )
        return len(ops) - 1

    for _ in range(count):
        place = rng.randrange(len(living))
        process = living[place]
        if process not in under_way:
            f = rng.choice(("commit", "committed"))
            offset = rng.randrange(4) if f == "commit" else None
            under_way[process] = (f, offset, note(process, "invoke", f, offset))
            continue
        f, offset, begin = under_way.pop(process)
        if f == "committed":
            offset = rng.choice((None, 0, 1, 2, 3))
            end = note(process, "ok", f, offset)
            found.append(Access(process, f, offset, begin, end))
            continue
        kind = rng.choice(("ok", "ok", "ok", "fail", "info"))
        end = note(process, kind, f, offset)
        if kind != "fail":
            found.append(Access(process, f, offset, begin, end if kind == "ok" else 10**9))
        if kind == "info":
            living[place] = max(living) + 1
    for f, offset, begin in under_way.values():
        if f == "commit":
            found.append(Access(0, f, offset, begin, 10**9))
    return ops, found


def explained(fetch: Access, commits: list[Access], *, certain: set[Access]) -> bool:
    """Whether a fetch is explained, by the definition: some commit wrote this offset, or there is
    none, and no other commit is certainly between it and the fetch."""
    before = [c for c in commits if c in certain and c.end < fetch.begin]
    if fetch.offset is None:
        return not before
    return any(
        c.offset == fetch.offset
        and c.begin < fetch.end
        and not any(c.end < later.begin for later in before)
        for c in commits
    )


@settings(max_examples=120)
@given(st.integers(0, 2**32), st.integers(2, 40))
def test_as_the_definition_has_it(histories: Any, seed: int, count: int) -> None:
    """The kernel contradicts the same commits by the same fetches as the slow definition."""
    ops, found = accesses(random.Random(seed), count)
    commits = [a for a in found if a.kind == "commit"]
    fetches = [a for a in found if a.kind == "committed"]
    offsets = [c.offset for c in commits]
    certain: set[Access] = set()
    for n, c in enumerate(commits):  # a commit that was found happened, if it is the only one
        if c.end == 10**9 and offsets.count(c.offset) == 1:
            seen = [f.end for f in fetches if f.offset == c.offset and f.end > c.begin]
            commits[n] = c = c._replace(end=min([*seen, c.end]))
        if c.end < 10**9:
            certain.add(c)
    wrong = sum(not explained(f, commits, certain=certain) for f in fetches)
    logs = [log for log in histories.tables(ops).logs() if log.key == "x"]
    assert sum(1 + f.folded for log in logs for f in kernel(log)) == wrong
