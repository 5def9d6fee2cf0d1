"""Turns micro-operations of consumer groups into :class:`~checkers.kernels.steps.Steps`.

A client library joins groups, fetches and loses partitions on its own, between and during
operations, and the next poll reports it. So what a poll reports may have happened at any time since
the poll before it began, and a commit that another operation made in between may belong to either
side of it. What one poll reports is in order: a commit of a member's rebalance listener comes
before the loss of the partitions that it committed for.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from checkers import group_answers, micro_ops
from checkers.group_answers import Answers
from checkers.kernels.rows import I8, I64, INFO, OK, UNKNOWN, Bools
from checkers.kernels.steps import (
    ANY,
    ASSIGNED,
    COMMIT,
    FETCH,
    FOREVER,
    LOST,
    NO_METADATA,
    REVOKED,
    START,
    Group,
    Steps,
)

_KINDS = {
    micro_ops.COMMIT: COMMIT,
    micro_ops.COMMIT_PLAINLY: COMMIT,
    micro_ops.COMMITTED: FETCH,
    "assigned": ASSIGNED,
    "revoked": REVOKED,
    "lost": LOST,
}
OF_GROUPS = tuple(_KINDS)
"""The micro-operations of groups, which concern all partitions and all members of a group."""
KINDS = (*_KINDS, micro_ops.WATERMARK, micro_ops.DELETE_RECORDS)
"""The micro-operations that this module turns into rows."""


class Ops(NamedTuple):
    """Operations of clients, in the order of their last events."""

    op: I64
    invoked: I64
    process: I64
    outcome: I8
    txn: Bools
    polls: Bools
    """Whether it asks for records, or its last event reports what was polled."""
    reports_polls: Bools
    """Whether its last event reports what was polled."""
    start_ns: I64
    end_ns: I64
    frozen_ns: I64
    """For how long its process was frozen before it did anything."""


EARLY_NS = 50_000_000
"""How much shorter than requested a sleep may be, with a margin."""


class MicroOps(NamedTuple):
    """The micro-operations of ``KINDS``, in the order of ``operation`` and program order."""

    kind: Sequence[str]
    group: I64
    generation: I64
    operation: I64
    """Its index in :class:`Ops`."""
    is_asked: Bools
    """Whether only the invocation holds it: the completion does not repeat it."""
    place: I64
    """For each of its records: the index of the record's micro-operation."""
    key: I64
    offset: I64
    value: I64
    elsewhere: I8
    """``NAMES`` if it names partitions that this part of a history does not have, or else 0. In a
    whole history there are none."""


NAMES = 1


class SetupEvent(NamedTuple):
    """A ``subscribe``, ``init`` or ``leave`` of a process."""

    operation: int
    what: Sequence[Any]
    """The micro-operation."""


class _UnreportedCommit(NamedTuple):
    """A commit of an unknown offset that may have happened, though no completion reports it."""

    operation: int
    group: int
    key: int


@dataclass
class _Member:
    """A process, while its events are followed."""

    owned: dict[int, int] = field(default_factory=dict)
    """The group of each partition that it owns."""
    committed: list[int] = field(default_factory=list)
    """What its rebalance listener committed before it joined again."""
    generation: int = UNKNOWN
    """The generation of its last assignment."""


def steps(
    ops: Ops, micro: MicroOps, setup: Sequence[SetupEvent], groups: Sequence[str], proven: I64
) -> tuple[Steps, I64, tuple[Group, ...]]:
    """Return the rows, the partition of each, and the groups.

    ``proven`` are the operations of which a record was read.
    """
    all_groups = tuple(_groups(ops, micro, setup, groups))
    found, key, operation, place = _rows(ops, micro, setup, proven)
    given, rows = group_answers.of(found, key, place, _automatic(all_groups))
    for column, numbers in group_answers.knowledge(given)._asdict().items():
        getattr(found, column)[rows] = numbers
    is_answer = np.isin(found.kind, (FETCH, *range(START, START + len(micro_ops.WATERMARKS))))
    keep = np.flatnonzero((ops.outcome[operation] == OK) | ~is_answer)
    keep = keep[np.argsort(operation[keep], kind="stable")]
    return found.where(keep), key[keep], all_groups


def answers(
    ops: Ops, micro: MicroOps, setup: Sequence[SetupEvent], groups: Sequence[str]
) -> Answers:
    """Return the answers of coordinators. Their groups are indices into ``groups``."""
    all_groups = tuple(_groups(ops, micro, setup, groups))
    found, key, _, place = _rows(ops, micro, setup, np.zeros(0, dtype=np.int64))
    return group_answers.of(found, key, place, _automatic(all_groups))[0]


def _automatic(groups: Sequence[Group]) -> list[int]:
    return [code for code, group in enumerate(groups) if group.commits_alone]


def _rows(
    ops: Ops, micro: MicroOps, setup: Sequence[SetupEvent], proven: I64
) -> tuple[Steps, I64, I64, I64]:
    """Return the rows of all outcomes, and the partition, the operation, and the place of the
    micro-operation of each."""
    after, unreported = _followed(ops, micro, setup)
    count, extra = len(micro.place), len(unreported)
    code = np.array([_KINDS.get(kind, START) for kind in micro.kind], dtype=np.int64)[micro.place]
    code[code == START] += micro.value[code == START]
    of_unreported = np.array(unreported, dtype=np.int64).reshape(extra, 3)

    def column(reported: I64, else_: int | I64) -> I64:
        return np.concatenate((reported, np.broadcast_to(else_, extra))).astype(np.int64)

    kind = column(code, COMMIT)
    operation = column(micro.operation[micro.place], of_unreported[:, 0])
    is_reported = np.arange(count + extra) < count
    is_plain = np.array([kind == micro_ops.COMMIT_PLAINLY for kind in micro.kind], dtype=np.bool_)
    commits, txn = (
        kind == COMMIT,
        ops.txn[operation] & (column(is_plain[micro.place].astype(np.int64), 0) == 0),
    )
    listens = commits & ops.polls[operation] & ~ops.txn[operation] & is_reported
    doubtful = column(micro.is_asked[micro.place].astype(np.int64), 1) > 0
    outcome = ops.outcome[operation]
    outcome = np.where(listens & (outcome != INFO), OK, outcome)
    outcome = np.where(commits & doubtful & (~is_reported | (outcome == OK)), INFO, outcome)
    since = _reported_before(ops)[operation]
    until = np.where(outcome == INFO, FOREVER, ops.op[operation])
    until[commits & txn] = _ended(ops, setup, committing(ops, micro))[operation[commits & txn]]
    overwritten = _overwritten(micro, is_plain, ops.outcome)
    until[:count][overwritten] = ops.invoked[operation[:count][overwritten]] - 1
    until[kind == ASSIGNED] = _ends_badly(ops)[operation[kind == ASSIGNED]]
    generation = column(micro.generation[micro.place], UNKNOWN)
    found = Steps(
        kind=kind.astype(np.int8),
        group=column(micro.group[micro.place], of_unreported[:, 1]),
        generation=np.where(np.isin(kind, (ASSIGNED, REVOKED, LOST)), generation, UNKNOWN),
        offset=column(np.maximum(micro.offset, UNKNOWN), ANY),
        metadata=np.where(
            np.isin(kind, (COMMIT, FETCH)),
            column(micro.value, NO_METADATA),
            NO_METADATA,
        ),
        op=ops.op[operation],
        invoked=np.where((listens | ~is_reported) & ~txn, since, _begun(ops)[operation]),
        since=since,
        until=until,
        after=column(after[micro.place], UNKNOWN),
        process=ops.process[operation],
        outcome=outcome.astype(np.int8),
        txn=txn,
        proven=(outcome == INFO) & np.isin(ops.op[operation], proven),
        start_ns=ops.start_ns[operation],
        end_ns=ops.end_ns[operation],
        knows=np.full(count + extra, UNKNOWN),
        knew=np.full(count + extra, UNKNOWN),
        knew_ns=np.full(count + extra, UNKNOWN),
    )
    key = column(micro.key, of_unreported[:, 2])
    return found, key, operation, column(_places(micro)[micro.place], UNKNOWN)


def _places(micro: MicroOps) -> I64:
    """Return the place of each micro-operation among those of groups in its operation."""
    of_groups = np.array([kind in _KINDS for kind in micro.kind], dtype=np.int64)
    before = np.cumsum(of_groups) - of_groups
    found: I64 = before - before[np.searchsorted(micro.operation, micro.operation)]
    return found


def _overwritten(micro: MicroOps, is_plain: Bools, outcome: I8) -> Bools:
    """Return which records of transactional commits never take effect. Each waits for the end of
    the transaction, and meanwhile the same operation has committed another offset plainly."""
    found = np.zeros(len(micro.place), dtype=np.bool_)
    operation, group = micro.operation[micro.place], micro.group[micro.place]
    plain = is_plain[micro.place] & (outcome[operation] == OK)
    later: set[tuple[int, int, int]] = set()
    for row in reversed(np.flatnonzero(np.isin(operation, operation[plain])).tolist()):
        what = int(operation[row]), int(group[row]), int(micro.key[row])
        if plain[row]:
            later.add(what)
        else:
            found[row] = what in later
    return found


def _followed(
    ops: Ops, micro: MicroOps, setup: Sequence[SetupEvent]
) -> tuple[I64, Sequence[_UnreportedCommit]]:
    """Follow the members of groups through their operations.

    Returns, for each commit by a rebalance listener, the generation that its member joined then;
    and the commits that no completion reports: of a transaction in doubt, or of a listener in a
    poll that ended in doubt. A poll that ended well has reported what its listener committed.
    """
    after = np.full(len(micro.kind), UNKNOWN)
    ends = np.cumsum(np.bincount(micro.place, minlength=len(micro.kind)))
    unreported: list[_UnreportedCommit] = []
    members: defaultdict[int, _Member] = defaultdict(_Member)
    begin = 0
    for row, (kind, operation, end) in enumerate(
        zip(micro.kind, micro.operation.tolist(), ends.tolist(), strict=True)
    ):
        keys = micro.key[begin:end].tolist()
        begin = end
        member = members[int(ops.process[operation])]
        if kind == micro_ops.COMMIT:
            if ops.polls[operation] and not ops.txn[operation]:
                member.committed.append(row)
            elif is_unreported(ops, micro, row, len(keys)):
                unreported += [_UnreportedCommit(operation, *owned) for owned in _owned(member)]
        elif kind == "assigned":
            generation = int(micro.generation[row])
            if generation > member.generation:  # a static member may return into the same one
                after[member.committed] = generation
            member.generation = generation
            member.committed.clear()
            member.owned |= dict.fromkeys(keys, int(micro.group[row]))
        elif kind == "revoked" and ops.outcome[operation] == INFO:
            pass  # its listener may have committed in doubt
        elif kind in ("revoked", "lost"):
            for key in keys:
                member.owned.pop(key, None)
    last = {int(ops.process[row]): row for row in np.flatnonzero(ops.polls).tolist()}
    listening = {int(ops.process[o.operation]) for o in _subscriptions(setup) if _listens(o)}
    for process in sorted(listening & last.keys()):
        if ops.outcome[last[process]] == INFO:
            unreported += [
                _UnreportedCommit(last[process], *owned) for owned in _owned(members[process])
            ]
    return after, unreported


def is_unreported(ops: Ops, micro: MicroOps, row: int, keys: int) -> bool:
    """Return whether a commit, which names so many partitions here, may have been made of any
    offsets of all partitions that its member owns.

    That is so if it names none, and is in doubt. An operation that ended well, reported its polls,
    and reported no commit has committed nothing.
    """
    if keys or micro.elsewhere[row]:
        return False
    operation = micro.operation[row]
    if ops.outcome[operation] == INFO:
        return True
    return bool(micro.is_asked[row] and not ops.reports_polls[operation])


def _owned(member: _Member) -> list[tuple[int, int]]:
    """Return the group and the partition of each partition that a member owns."""
    return [(group, key) for key, group in sorted(member.owned.items())]


def _reported_before(ops: Ops) -> I64:
    """Return when the process of each operation began its last operation before it that reports
    rebalances, or else its first operation."""
    return ops.invoked[reporting_before(ops.process, ops.polls)]


def reporting_before(process: I64, polls: Bools) -> I64:
    """Return for each operation the last one of its process before it that ``polls``, or else the
    process's first one."""
    order = np.argsort(process, kind="stable")
    number = np.arange(len(order))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = process[order[1:]] != process[order[:-1]]
    landmark = np.maximum.accumulate(np.where(is_first | polls[order], number, 0))
    before = np.where(is_first, number, np.concatenate((landmark[:1], landmark[:-1])))
    found = np.empty_like(order)
    found[order] = order[before]
    return found


def _begun(ops: Ops) -> I64:
    """Return for each operation the event after which it acted: its invocation, or one while it was
    frozen."""
    index = np.concatenate((ops.invoked, ops.op))
    order = np.argsort(index)
    index, time_ns = index[order], np.concatenate((ops.start_ns, ops.end_ns))[order]
    begun = ops.invoked.copy()
    frozen = np.flatnonzero(ops.frozen_ns > EARLY_NS)
    until_ns = ops.start_ns[frozen] + ops.frozen_ns[frozen] - EARLY_NS
    begun[frozen] = index[np.searchsorted(time_ns, until_ns) - 1]
    return begun


def _ends_badly(ops: Ops) -> I64:
    """Return for each operation the first one of its process from there on that polled and did not
    end well. From then on, what it received and its position are not fully known."""
    bad = ops.polls & (ops.outcome != OK)
    found = np.full(len(ops.op), FOREVER)
    next_bad: dict[int, int] = {}
    for row in reversed(range(len(ops.op))):
        process = int(ops.process[row])
        if bad[row]:
            next_bad[process] = int(ops.op[row])
        found[row] = next_bad.get(process, FOREVER)
    return found


def committing(ops: Ops, micro: MicroOps) -> I64:
    """Return the transactions that name offsets which they commit, and so send requests to their
    coordinator. One that does not report what it committed may have committed nothing."""
    names = np.bincount(micro.place, minlength=len(micro.kind)) > 0
    names |= micro.elsewhere > 0
    is_commit = np.array([kind == micro_ops.COMMIT for kind in micro.kind], dtype=np.bool_)
    found: I64 = np.unique(micro.operation[names & is_commit])
    return found[ops.txn[found]]


def _ended(ops: Ops, setup: Sequence[SetupEvent], committing: I64) -> I64:
    """Return for each transaction the event from which on it has ended everywhere.

    By then an ``init`` has taken over its transactional id, or its process, which has no other id,
    has committed the next transaction. ``committing`` are transactions that certainly commit
    offsets.
    """
    ids = {int(ops.process[o.operation]): str(o.what[1]) for o in setup if o.what[0] == "init"}
    found = np.full(len(ops.op), FOREVER)
    inits = {o.operation for o in setup if o.what[0] == "init" and ops.outcome[o.operation] == OK}
    asks = set(committing.tolist())
    taken: dict[str, int] = {}
    next_: dict[int, int] = {}
    for row in reversed(range(len(ops.op))):
        process = int(ops.process[row])
        name = ids.get(process, "")
        if row in inits:
            taken[name] = int(ops.op[row])
        elif ops.txn[row]:
            found[row] = min(taken.get(name, FOREVER), next_.get(process, FOREVER))
            if name and row in asks and ops.outcome[row] == OK:
                next_[process] = int(ops.op[row])
    return found


def _groups(
    ops: Ops, micro: MicroOps, setup: Sequence[SetupEvent], names: Sequence[str]
) -> Iterator[Group]:
    """Yield what is known of each group as a whole."""
    last = {process: row for row, process in enumerate(ops.process.tolist())}
    leaves = {o.operation for o in setup if o.what[0] == "leave"}
    for code, name in enumerate(names):
        joined = [o for o in _subscriptions(setup) if o.what[1] == name]
        members = _members(ops, micro, code, joined)
        ends = [last[process] for process in members]
        changes = [row for row in ends if ops.outcome[row] == INFO or row in leaves]
        changes += [o.operation for o in joined]
        mine = np.isin(ops.process, list(members)) & ops.polls & (ops.outcome == OK)
        yield Group(
            name=name,
            members=members,
            commits_alone=any(_how(o) == "auto" for o in joined),
            topics=frozenset(topic for o in joined for topic in o.what[2]),
            changed_ns=int(ops.end_ns[changes].max(initial=0)),
            polled_ns=int(ops.end_ns[mine].max(initial=0)),
            begins_at_start=bool(joined) and all(_begins_at_start(o) for o in joined),
        )


def _members(
    ops: Ops, micro: MicroOps, group: int, joined: Sequence[SetupEvent]
) -> dict[int, str | None]:
    """Return the processes that joined a group or reported a rebalance of it, with the instance id
    of each."""
    rows = zip(micro.kind, micro.group.tolist(), micro.operation.tolist(), strict=True)
    rebalances = [
        operation for kind, of, operation in rows if of == group and kind in micro_ops.REBALANCES
    ]
    members: dict[int, str | None] = dict.fromkeys(ops.process[rebalances].tolist())
    return members | {int(ops.process[o.operation]): _options(o).get("instance") for o in joined}


def _subscriptions(setup: Sequence[SetupEvent]) -> list[SetupEvent]:
    return [o for o in setup if o.what[0] == "subscribe"]


def _options(subscribe: SetupEvent) -> Mapping[str, Any]:
    """Return the options of a subscription."""
    options: Mapping[str, Any] | None = subscribe.what[3] if len(subscribe.what) > 3 else None
    return options or {}


def _listens(subscribe: SetupEvent) -> bool:
    """Return whether the member commits in its rebalance listener when partitions are revoked."""
    return bool(_how(subscribe) == "listener")


def _begins_at_start(subscribe: SetupEvent) -> bool:
    """Return whether the member commits by recorded operations alone, and begins at the start of a
    log without a committed offset."""
    is_reported = _how(subscribe) in ("sync", "async", "listener")
    return is_reported and _options(subscribe).get("auto.offset.reset") != "latest"


def _how(subscribe: SetupEvent) -> Any:
    """Return how the member commits."""
    return _options(subscribe).get("commit")
