"""Judges locks and elections by the fencing tokens of their holders.

A holder may lose its lock without notice when its session expires, so that two clients may believe
to be the holder at once. That a client truly was the holder is known from a write that succeeded
only because its znode, or its epoch, still was there.
"""

from collections.abc import Iterator
from itertools import pairwise

from checkers.kernels.found import Found
from checkers.zookeeper.calls import Call, History

TOKENS = {"acquire": "token", "elect": "epoch"}
"""How a holder becomes one, and what its token is called."""
PROOFS = {"release": "acquire", "guard": "acquire", "resign": "elect", "lead": "elect"}
"""What succeeds for a holder only."""
WRITES = ("guard", "lead")


def token(call: Call) -> int:
    """Return the fencing token of a call."""
    return int(call.value["token"] if "token" in call.value else call.value["epoch"])


def exclusion(history: History) -> Iterator[Found]:
    """Find holders that became one while another one was.

    The znode of the former holder, which has the smaller token, was there before and after.
    """
    for kind in TOKENS:
        proofs = [f for f, of in PROOFS.items() if of == kind]
        last: dict[tuple[str, int], Call] = {}
        for call in history.of(*proofs):
            if call.ok:
                last[call.place, token(call)] = call
        for lock, calls in history.by_place(kind).items():
            holders = sorted((call for call in calls if call.ok), key=token)
            yield from _same_token(lock, holders)
            held: Call | None = None
            for later in holders:
                if held is not None and later.completed < held.invoked:
                    yield _excluded(lock, held, later)
                proof = last.get((lock, token(later)))
                if proof is not None and (held is None or proof.invoked > held.invoked):
                    held = proof


def _same_token(lock: str, holders: list[Call]) -> Iterator[Found]:
    for before, after in pairwise(holders):
        if token(before) == token(after):
            ops = (before.op, after.op)
            yield Found(
                anomaly="zk-mutual-exclusion",
                key=lock,
                value=token(after),
                ops=ops,
                why=f"events {ops[0]} and {ops[1]} both acquired it with token {token(after)}",
            )


def _excluded(lock: str, held: Call, later: Call) -> Found:
    return Found(
        anomaly="zk-mutual-exclusion",
        key=lock,
        value=token(later),
        ops=(later.op, held.op),
        why=f"event {later.op} acquired it with token {token(later)}, and the holder with token"
        f" {token(held)} still held it at event {held.op}, which began later",
    )


def fencing(history: History) -> Iterator[Found]:
    """Find writes of a former holder that took effect after those of a later one."""
    for resource, calls in _writes(history).items():
        latest: Call | None = None
        for call in sorted(calls, key=lambda call: int(call.value["stat"]["mzxid"])):
            if latest is not None and token(call) < token(latest):
                yield Found(
                    anomaly="zk-fencing",
                    key=resource,
                    value=token(call),
                    ops=(latest.op, call.op),
                    why=f"the write of event {call.op} with token {token(call)} took effect after"
                    f" that of event {latest.op} with token {token(latest)}",
                )
            else:
                latest = call


def _writes(history: History) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for call in history.of(*WRITES):
        if call.ok:
            found.setdefault(call.value["resource"], []).append(call)
    return found


def count(history: History) -> int:
    """Return how often a client became the holder."""
    return sum(call.ok for call in history.of(*TOKENS))
