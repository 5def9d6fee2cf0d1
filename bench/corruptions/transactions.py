"""Corruptions of transactions: torn, or read while they are open or aborted."""

from typing import Any

from bench.broker_model import Write
from bench.corruptions.work import Work


def tear(work: Work) -> bool:
    """One record of a committed transaction is never delivered, while another is."""
    by_txn: dict[int, list[Write]] = {}
    for write in work.committed("ok", "info"):
        if write.txn:
            by_txn.setdefault(write.invoked, []).append(write)
    writes = work.pick([writes for writes in by_txn.values() if len(writes) > 1])
    if writes is None:
        return False
    work.remove(work.rng.choice(writes).value)
    return True


def read_aborted(work: Work) -> bool:
    """The record of an aborted transaction is read at its place in the log."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.outcome == "fail" and w.offset is not None and w.aborted
        ]
    )
    if write is None:
        return False
    work.place_finally(write.key, write.offset, write.value)
    return True


def read_own(work: Work) -> bool:
    """A transaction reads a record that it has sent itself."""
    found = [
        (op, micro_op, write)
        for op in work.ops
        if op.f == "txn" and op.type != "invoke"
        for micro_op in op.value
        if micro_op[0] == "poll" and len(micro_op) > 1
        for write in work.model.writes.values()
        if write.completed == op.index and write.offset is not None
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    _, micro_op, write = choice
    micro_op[1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def stable_above_open(work: Work) -> bool:
    """A last stable offset is above the record of an open transaction."""
    found = [
        (probe.value[0][2], write.offset)
        for write, until in work.open_after()
        for probe in work.probes()
        if probe.value[0][1] == write.key and write.invoked < probe.index < until
    ]
    found = [(ends, offset) for ends, offset in found if ends["high"] > offset]
    choice = work.pick(found)
    if choice is None:
        return False
    ends, offset = choice
    ends["stable"] = work.rng.randint(offset + 1, ends["high"])
    return True


def read_open(work: Work) -> bool:
    """A record of a transaction is read while the transaction is open."""
    found = [
        (op, write)
        for write, until in work.open_after()
        for op in work.ops
        if op.f == "poll" and op.type == "ok" and write.invoked < op.index < until
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    op, write = choice
    op.value[0][1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def read_in_a_circle(work: Work) -> bool:
    """Two transactions read each other's records."""
    txns: dict[int, tuple[list[Any], Write]] = {}
    for write in work.committed("ok"):
        op = work.ops[write.completed or 0]
        polls = [m for m in op.value if m[0] == "poll" and len(m) > 1]
        if op.f == "txn" and polls:
            txns[op.index] = polls[0], write
    if len(txns) < 2:
        return False
    (poll, write), (other_poll, other) = work.rng.sample(list(txns.values()), 2)
    poll[1].setdefault(other.key, []).append([other.offset, other.value])
    other_poll[1].setdefault(write.key, []).append([write.offset, write.value])
    return True
