"""From micro-operations of consumer groups to rows per key (:class:`~checkers.kernels.rows.Steps`).

A rebalance is told by the operation in which the client noticed it, before what that operation did
itself. What a member did between two rebalances belongs to the generation of the first.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from checkers import parse
from checkers.kernels.rows import (
    ANY,
    ASSIGNED,
    COMMIT,
    FETCH,
    FOREVER,
    I8,
    I64,
    INFO,
    LOST,
    OK,
    REVOKED,
    START,
    UNKNOWN,
    Bools,
    Group,
    Steps,
)

_KINDS = {
    parse.COMMIT: COMMIT,
    parse.COMMITTED: FETCH,
    "assigned": ASSIGNED,
    "revoked": REVOKED,
    "lost": LOST,
}
KINDS = (*_KINDS, parse.WATERMARK)
"""The micro-operations that are looked at here."""


class Ops(NamedTuple):
    """Operations of clients, in the order of their last events."""

    op: I64
    invoked: I64
    process: I64
    outcome: I8
    txn: Bools
    polls: Bools
    """Does it tell what was polled?"""
    start_ns: I64
    end_ns: I64


class MicroOps(NamedTuple):
    """Those that are looked at, in the order of ``operation`` and program order."""

    kind: Sequence[str]
    group: I64
    generation: I64
    operation: I64
    """Its place in :class:`Ops`."""
    is_asked: Bools
    """It is known from the invocation only: the completion does not repeat it."""
    place: I64
    """Of each of its records: which micro-operation it is of."""
    key: I64
    offset: I64
    value: I64


class Once(NamedTuple):
    """What a process did once."""

    operation: int
    what: Sequence[Any]
    """The micro-operation."""


@dataclass
class _Member:
    """A process, while its steps are followed."""

    generation: int = UNKNOWN
    rebalanced: int = -1
    """The operation that told the last rebalance."""
    owned: set[int] = field(default_factory=set)
    committed: list[int] = field(default_factory=list)
    """Commits since its last rebalance."""
    gave_back: list[int] = field(default_factory=list)
    """Those before it gave back what it had, in order to join again."""


def steps(
    ops: Ops, micro: MicroOps, once: Sequence[Once], groups: Sequence[str], proven: I64
) -> tuple[Steps, I64, tuple[Group, ...]]:
    """Steps, the key of each, and the groups. ``proven``: operations of which a record was read."""
    count = len(micro.kind)
    generation = micro.generation.copy()
    after = np.full(count, UNKNOWN)
    lengths = np.bincount(micro.place, minlength=count)
    ends = np.cumsum(lengths)
    untold: list[tuple[int, int]] = []  # a commit, and a key that it may be of
    members: defaultdict[int, _Member] = defaultdict(_Member)
    for row, (kind, operation) in enumerate(zip(micro.kind, micro.operation.tolist(), strict=True)):
        member = members[int(ops.process[operation])]
        keys = micro.key[ends[row] - lengths[row] : ends[row]].tolist()
        if kind == parse.COMMIT:
            known = member.rebalanced != operation
            generation[row] = member.generation if known else UNKNOWN
            member.committed.append(row)
            if not keys and (ops.outcome[operation] == INFO or micro.is_asked[row]):
                untold += [(row, key) for key in sorted(member.owned)]
        elif kind in parse.REBALANCES:
            _follow(member, kind, int(generation[row]), operation, set(keys), micro, after)
    told = np.concatenate((micro.place, np.array([row for row, _ in untold], dtype=np.int64)))
    key = np.concatenate((micro.key, np.array([key for _, key in untold], dtype=np.int64)))
    offset = np.concatenate((np.maximum(micro.offset, UNKNOWN), np.full(len(untold), ANY)))
    value = np.concatenate((micro.value, np.zeros(len(untold), dtype=np.int64)))
    kinds = np.array([_KINDS.get(kind, START) for kind in micro.kind], dtype=np.int64)
    kinds = kinds[told] + np.where(kinds[told] == START, value, 0)
    operation = micro.operation[told]
    asked = micro.is_asked[told] & (ops.outcome[operation] == OK)
    outcome = np.where(asked, INFO, ops.outcome[operation])
    since = _begun_before(ops)
    until = np.where(
        outcome == INFO, _closed(ops, micro, once, generation)[told], ops.op[operation]
    )
    found = Steps(
        kind=kinds.astype(np.int8),
        group=micro.group[told],
        generation=generation[told],
        offset=offset,
        op=ops.op[operation],
        invoked=ops.invoked[operation],
        since=since[operation],
        until=until,
        after=after[told],
        process=ops.process[operation],
        outcome=outcome.astype(np.int8),
        txn=ops.txn[operation],
        proven=(outcome == INFO) & np.isin(ops.op[operation], proven),
        start_ns=ops.start_ns[operation],
        end_ns=ops.end_ns[operation],
    )
    is_answer = np.isin(kinds, (FETCH, *range(START, START + len(parse.WATERMARKS))))
    keep = np.flatnonzero((outcome == OK) | ~is_answer)
    keep = keep[np.argsort(told[keep], kind="stable")]
    return found.where(keep), key[keep], tuple(_groups(ops, micro, once, groups))


def _follow(
    member: _Member,
    kind: str,
    generation: int,
    operation: int,
    keys: set[int],
    micro: MicroOps,
    after: I64,
) -> None:
    """A rebalance, and what follows from it for the commits before it."""
    if kind == "assigned":
        after[member.gave_back] = generation
        member.generation = generation
        member.owned |= keys
        member.gave_back.clear()
        member.committed.clear()
    else:
        member.owned -= keys
        if kind == "revoked":
            member.gave_back += [
                row for row in member.committed if micro.operation[row] < operation
            ]
        member.committed.clear()
    member.rebalanced = operation


def _begun_before(ops: Ops) -> I64:
    """When the process of each operation began the one before; its own beginning for the first."""
    order = np.argsort(ops.process, kind="stable")
    process, invoked = ops.process[order], ops.invoked[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = process[1:] != process[:-1]
    before = np.where(first, invoked, np.concatenate((invoked[:1], invoked[:-1])))
    since = np.empty_like(invoked)
    since[order] = before
    return since


def _closed(ops: Ops, micro: MicroOps, once: Sequence[Once], generation: I64) -> I64:
    """From which event on each commit in doubt, by micro-operation, can no longer take effect: a
    later generation has begun, or its transactional id was taken over."""
    closed = np.full(len(micro.kind), FOREVER)
    ids = {int(ops.process[o.operation]): o.what[1] for o in once if o.what[0] == "init"}
    taken: defaultdict[str, list[int]] = defaultdict(list)
    for o in once:
        if o.what[0] == "init" and ops.outcome[o.operation] == OK:
            taken[o.what[1]].append(int(ops.op[o.operation]))
    begun: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, kind in enumerate(micro.kind):
        if kind == "assigned" and micro.generation[row] != UNKNOWN:
            op = int(ops.op[micro.operation[row]])
            begun[int(micro.group[row])].append((int(micro.generation[row]), op))
    for row, kind in enumerate(micro.kind):
        operation = micro.operation[row]
        doubtful = ops.outcome[operation] == INFO or micro.is_asked[row]
        if kind != parse.COMMIT or not doubtful:
            continue
        invoked = int(ops.invoked[operation])
        ends = []
        if ops.txn[operation]:
            ends = [op for op in taken[ids.get(int(ops.process[operation]), "")] if op > invoked]
        elif generation[row] != UNKNOWN:
            later = begun[int(micro.group[row])]
            ends = [op for number, op in later if number > generation[row] and op > invoked]
        closed[row] = min(ends, default=FOREVER)
    return closed


def _groups(
    ops: Ops, micro: MicroOps, once: Sequence[Once], names: Sequence[str]
) -> Iterator[Group]:
    """What is known of each group as a whole."""
    last = {int(process): row for row, process in enumerate(ops.process.tolist())}
    for code, name in enumerate(names):
        joined = [o for o in once if o.what[0] == "subscribe" and o.what[1] == name]
        instances = {int(ops.process[o.operation]): _options(o).get("instance") for o in joined}
        told = [
            operation
            for kind, group, operation in zip(
                micro.kind, micro.group.tolist(), micro.operation.tolist(), strict=True
            )
            if group == code and kind in parse.REBALANCES
        ]
        members = dict.fromkeys(ops.process[told].tolist()) | instances
        gone = [
            last[process]
            for process in members
            if ops.outcome[last[process]] == INFO or _leaves(last[process], once)
        ]
        mine = np.isin(ops.process, list(members)) & ops.polls & (ops.outcome == OK)
        changes = [*(o.operation for o in joined), *gone]
        yield Group(
            name=name,
            members=members,
            commits_alone=any(_options(o).get("commit") == "auto" for o in joined),
            topics=frozenset(topic for o in joined for topic in o.what[2]),
            changed_ns=int(ops.end_ns[changes].max(initial=0)),
            polled_ns=int(ops.end_ns[mine].max(initial=0)),
        )


def _options(subscribe: Once) -> Mapping[str, Any]:
    """What a subscription says beyond its topics."""
    options: Mapping[str, Any] = subscribe.what[3] if len(subscribe.what) > 3 else {}
    return options


def _leaves(operation: int, once: Sequence[Once]) -> bool:
    return any(o.operation == operation and o.what[0] == "leave" for o in once)
