import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.kernels import isolation
from model.op import Op
from tests.checkers.transactional import Transactional


def told(histories: Any, text: str | list[Op]) -> list[str]:
    found = isolation.kernel(histories.tables(text))
    return [f"{f.anomaly} {f.key}={f.value} {f.ops}" for f in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # the transaction reads b, which was sent after its own a was read
        (">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1:+x=a@0|y=b@0", ["dirty-read x=1 (5, 2, 4)"]),
        # b may have been sent before a was read
        (">t1:+x=a@0|y=b@0 >s:y=b@0 p:x=a@0 <s:y=b@0 <t1:+x=a@0|y=b@0", []),
        # its second record is behind b in the log
        (
            ">t1:+x=a@0,+y=c@1 p:x=a@0 s:y=b@0 <t1:+x=a@0,+y=c@1 p:y=b@0,y=c@1",
            ["dirty-read x=1 (5, 2, 4)"],
        ),
        (">t1:+x=a@0,+y=c@0 p:x=a@0 s:y=b@1 <t1:+x=a@0,+y=c@0 p:y=c@0,y=b@1", []),
        # the records were not read: an acknowledgement alone is no place
        (">t1:+x=a@0,+y=c@1 p:x=a@0 s:y=b@0 <t1:+x=a@0,+y=c@1", []),
        # by any reader, and whatever is known of its end
        (">t1:+x=a@0|y=b@0 p!:x=a@0 s:y=b@0 <t1?:+x=a@0|y=b@0", ["dirty-read x=1 (5, 2, 4)"]),
        (">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1!:+x=a@0|y=b@0", []),  # that is G1a
        # it waited, and the poll was over before that can have ended
        (">t1:+x=a@0|.2500 p:x=a@0 <t1:+x=a@0|.2500", ["dirty-read x=1 (3, 2)"]),
        (">t1:+x=a@0|.2000 p:x=a@0 <t1:+x=a@0|.2000", []),
        # a plain send is readable at once
        (">s1:x=a@0 p:x=a@0 s:y=b@0 <s1:x=a@0 p:y=b@0", []),
    ],
)
def test_dirty_reads(histories: Any, text: str, found: list[str]) -> None:
    """What was read of a transaction that does something later was not committed yet."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (">t1:+x=a@0|.2500 w:x@0/1/1 <t1:+x=a@0|.2500", ["lso-ahead x=1 (2, 3)"]),
        # its offset is known by a read alone
        (">t1:+x=a|.2500 w:x@0/1/1 <t1:+x=a|.2500 p:x=a@0", ["lso-ahead x=1 (2, 3)"]),
        (">t1:+x=a|.2500 w:x@0/1/1 <t1:+x=a|.2500 p:x=a@1", []),
        (">t1:+x=a|.2500 w:x@0/1/1 <t1:+x=a|.2500", []),
        (">t1:+x=a@0|.2500 w:x@0/1/0 <t1:+x=a@0|.2500", []),
        (">t1:+x=a@1|.2500 w:x@0/2/1 <t1:+x=a@1|.2500", []),
        (">t1:+x=a@0|.2500 w:y@0/1/1 <t1:+x=a@0|.2500", []),
        (">t1:+x=a@0|.2000 w:x@0/1/1 <t1:+x=a@0|.2000", []),  # it may have been committed by then
        (">t1:+x=a@0|.2500 >w:x@0/1/1 <t1:+x=a@0|.2500 <w:x@0/1/1", []),
        (">t1:+x=a@0|y=b@0 w:x@0/1/1 s:y=b@0 <t1:+x=a@0|y=b@0", ["lso-ahead x=1 (2, 5)"]),
        # a transaction that waits for too long is aborted meanwhile
        (">t1:+x=a@0|.2500 w:x@0/1/1 <t1!:+x=a@0|.2500", []),
        (">t1:+x=a@0|.2500 w:x@0/1/1 <t1?:+x=a@0|.2500", []),
        # one finding for each transaction
        (
            ">t1:+x=a@0,+x=b@1|.3500 w:x@0/1/1 w:x@0/2/2 <t1:+x=a@0,+x=b@1|.3500",
            ["lso-ahead x=1 (2, 5)"],
        ),
    ],
)
def test_stable_offsets_ahead(histories: Any, text: str, found: list[str]) -> None:
    """The last stable offset is never above a record of an open transaction."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("i1:t@7.0 i2:t@7.1 t1:+x=a@0", ["zombie-write x=1 (3, 5)"]),
        ("i1:t@7.0 i2:u@8.0 t1:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t1!:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t2:+x=a@0", []),
        ("i1:t@7.0 t1:+x=a@0 i2:t@7.1", []),
        ("i1:t@7.0 i2?:t@7.1 t1:+x=a@0", []),  # the takeover may have failed
        # the later takeover counts
        ("i2:t@7.0 i1:t@7.1 t1:+x=a@0", []),
        (">i1:t@7.0 >i2:t@7.1 <i1:t@7.0 <i2:t@7.1 t1:+x=a@0", []),  # which was later is unknown
        # in doubt, until its record is read
        ("i1:t@7.0 i2:t@7.1 t1?:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t1?:+x=a@0 p:x=a@0", ["zombie-write x=1 (3, 5)"]),
        # it began before, and was still open
        (
            "i1:t@7.0 >t1:+x=a@1 i2:t@7.1 s:x=b@0 <t1:+x=a@1 p:x=b@0,x=a@1",
            ["zombie-write x=1 (4, 7)"],
        ),
        ("i1:t@7.0 >t1:+x=a@0 i2:t@7.1 s:x=b@1 <t1:+x=a@0 p:x=a@0,x=b@1", []),
        (
            "i1:t@7.0 >t1:+x=a@0|y=b@0 i2:t@7.1 s:y=b@0 <t1:+x=a@0|y=b@0",
            ["zombie-write x=1 (4, 7)"],
        ),
        # it polled that after it was fenced, but its record was there before, committed or not
        (
            "i1:t@7.0 >t1:+x=a@0|y=b@0 i2:t@7.1 s:y=b@0 <t1?:+x=a@0|y=b@0 p:x=a@0",
            [],
        ),
        # by its delay
        ("i1:t@7.0 >t1:+x=a@0|.2500 i2:t@7.1 <t1:+x=a@0|.2500", ["zombie-write x=1 (4, 5)"]),
        ("i1:t@7.0 >t1:+x=a@0|.2000 i2:t@7.1 <t1:+x=a@0|.2000", []),
        # in doubt: what it sent after its delay was sent too late, what it sent before was not
        (
            "i1:t@7.0 >t1:.2500|+x=a@0 i2:t@7.1 <t1?:.2500|+x=a@0 p:x=a@0",
            ["zombie-write x=1 (4, 5)"],
        ),
        ("i1:t@7.0 >t1:+x=a@0|.2500 i2:t@7.1 <t1?:+x=a@0|.2500 p:x=a@0", []),
        # it took over its id again
        ("i1:t@7.0 i2:t@7.1 i1:t@7.2 t1:+x=a@0", []),
    ],
)
def test_zombie_writes(histories: Any, text: str, found: list[str]) -> None:
    """A fenced process cannot commit."""
    assert told(histories, text) == found


def test_they_argue(histories: Any) -> None:
    """A finding names processes, values and times."""
    text = ">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1:+x=a@0|y=b@0"
    (found,) = isolation.kernel(histories.tables(text))
    assert found.why == (
        "process 9 read value 1 at 2.000 s, while the transaction of process 1 that had sent it was"
        " still open: process 0 began only at 3.000 s to send a value that the transaction had read"
    )
    text = ">t1:+x=a@0|.2500 p:x=a@0 <t1:+x=a@0|.2500"
    (found,) = isolation.kernel(histories.tables(text))
    assert found.why.endswith("that had sent it was still open: its client waited for longer")
    (found,) = isolation.kernel(histories.tables("i1:t@7.0 i2:t@7.1 t1:+x=a@0"))
    assert found.why == (
        "process 2 had taken over the transactional id t from process 1 at 3.000 s, yet value 1 of"
        " process 1 was acknowledged, in a transaction that began after that"
    )


def dirty_by_definition(events: list[Op]) -> set[int]:
    """The transactions that were read too early, record by record, by the definition."""
    begun: dict[int, int] = {}
    done: list[tuple[int, Op]] = []
    for op in events:
        if op.type == "invoke":
            begun[op.process] = op.index
        else:
            done.append((begun[op.process], op))
    sent = {
        (m[1], m[2][1] if isinstance(m[2], list) else m[2]): (invoked, op)
        for invoked, op in done
        for m in op.value
        if m[0] == "send"
    }
    read = [
        (key, offset, value, op)
        for _, op in done
        for m in op.value
        if m[0] == "poll"
        for key, records in m[1].items()
        for offset, value in records
    ]
    until: dict[int, int] = {}
    for key, offset, value, reader in read:
        invoked, writer = sent[key, value]
        until[reader.index] = max(until.get(reader.index, -1), invoked)
        for other, lower, before, _ in read:
            if other == key and lower <= offset:
                behind = sent[key, before][0]
                until[writer.index] = max(until.get(writer.index, -1), behind)
    reads = [(reader, sent[key, value][1]) for key, _, value, reader in read]
    waits = [(r, w) for r, w in reads if r is not w and r.f == w.f == "txn"]
    earlier: dict[int, int] = {}
    while earlier != until:  # it waits for all that the writers waited for
        earlier = dict(until)
        for reader, writer in waits:
            if earlier.get(writer.index, -1) < reader.index:
                later = max(until.get(reader.index, -1), earlier.get(writer.index, -1))
                until[reader.index] = later
    return {
        writer.index
        for key, _, value, reader in read
        for writer in [sent[key, value][1]]
        if writer.f == "txn"
        and writer.type != "fail"
        and reader is not writer
        and reader.index < until[writer.index]
    }


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_dirty_reads_by_definition(histories: Any, seed: int, steps: int) -> None:
    """The kernel finds the dirty reads of the definition, in histories without isolation."""
    events = Transactional(random.Random(seed), isolated=False).history(steps)
    found = isolation.kernel(histories.tables(events))
    assert {f.ops[0] for f in found} == dirty_by_definition(events)


def takeovers(rng: random.Random, steps: int) -> list[Op]:
    """Four processes take over two transactional ids and commit records, several at a time."""
    events: list[Op] = []
    pending: dict[int, tuple[str, list[Any]]] = {}
    for value in range(steps):
        process = rng.randrange(4)
        at = len(events)
        if process in pending:
            f, asked = pending.pop(process)
            done = [["send", k, [v, v]] for _, k, v in asked] if f == "txn" else asked
            kind = rng.choice(("ok", "ok", "fail"))
        else:
            f = rng.choice(("init", "txn"))
            done = asked = [["send", "x", value]] if f == "txn" else [["init", "tu"[process % 2]]]
            pending[process] = (f, asked)
            kind = "invoke"
        events.append(Op(index=at, time_ns=at, process=process, type=kind, f=f, value=done))  # type: ignore[arg-type]
    return events


def zombies_by_definition(events: list[Op]) -> set[int]:
    """Transactions that began after another process had taken over their process's id, by the
    definition."""
    begun: dict[int, int] = {}
    inits: list[tuple[int, int, int]] = []
    found = set()
    for op in events:
        if op.type == "invoke":
            begun[op.process] = op.index
        elif op.f == "init" and op.type == "ok":
            inits.append((op.process, begun[op.process], op.index))
        elif op.f == "txn" and op.type == "ok":
            own = max((o for p, _, o in inits if p == op.process), default=None)
            if own is not None and any(
                p != op.process and p % 2 == op.process % 2 and own < i and o < begun[op.process]
                for p, i, o in inits
            ):
                found.add(op.index)
    return found


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_zombies_by_definition(histories: Any, seed: int, steps: int) -> None:
    """The kernel finds the zombies of the definition, with takeovers that succeed, fail or are
    reversed."""
    events = takeovers(random.Random(seed), steps)
    found = isolation.kernel(histories.tables(events))
    assert {f.ops[1] for f in found} == zombies_by_definition(events)
