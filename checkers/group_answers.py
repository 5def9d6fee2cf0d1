"""What coordinators of groups knew when they answered, as their answers show.

A coordinator that answers a fetch of offsets with a committed one knows that commit, and one that
accepts a commit knows this one. The answers are those of all partitions, so where the partitions of
a history are judged apart, theirs are put together (:func:`joined`) before this is followed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Bools, Rows
from checkers.kernels.steps import ANY, COMMIT, FETCH, FOREVER, Steps


class _Answers(NamedTuple):
    op: I64
    place: I64
    """The place of its micro-operation among those of groups in the operation."""
    process: I64
    group: I64
    is_fetch: Bools
    """Whether it answers a fetch; otherwise it accepts a commit."""
    begun: I64
    """The latest event since which the commit began that it shows; UNKNOWN if it shows none."""
    start_ns: I64


class Answers(Rows, _Answers):
    """Answers of coordinators, in the order of ``op`` and ``place``: a row for each partition."""

    __slots__ = ()


class Knowledge(NamedTuple):
    """What is known about the coordinators that gave some answers, as in
    :class:`~checkers.kernels.steps.Steps`."""

    knows: I64
    knew: I64
    knew_ns: I64


def of(steps: Steps, key: I64, place: I64, automatic: Sequence[int]) -> tuple[Answers, I64]:
    """Return the answers in these rows, and the row of each.

    ``place`` is the place of each row's micro-operation. Fetches of groups of clients that commit
    automatically (``automatic``) show nothing, because such a client may have committed any offset
    at any time.
    """
    took = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    begun = np.where(took, steps.invoked, _shown(steps, key, automatic))
    rows = np.flatnonzero(took | (steps.kind == FETCH))
    rows = rows[np.argsort(steps.op[rows], kind="stable")]
    mine = steps.where(rows)
    return Answers(
        mine.op, place[rows], mine.process, mine.group, mine.kind == FETCH, begun[rows],
        mine.start_ns,
    ), rows  # fmt: skip


def _shown(steps: Steps, key: I64, automatic: Sequence[int]) -> I64:
    """Return for each fetch since when the commit began at the latest that its offset shows."""
    shown = np.full(len(steps.op), UNKNOWN)
    places = (steps.group.tolist(), key.tolist(), steps.offset.tolist())
    commits = (steps.kind == COMMIT) & (steps.outcome != FAIL)
    first: dict[tuple[int, int, int], int] = {}
    for row in np.flatnonzero(commits).tolist():
        place = tuple(column[row] for column in places)
        first[place] = min(int(steps.invoked[row]), first.get(place, FOREVER))
    fetches = (steps.kind == FETCH) & ~np.isin(steps.group, automatic)
    for row in np.flatnonzero(fetches & (steps.offset != UNKNOWN)).tolist():
        group, of, offset = (column[row] for column in places)
        begun = min(first.get((group, of, each), FOREVER) for each in (offset, ANY))
        shown[row] = UNKNOWN if begun == FOREVER else begun
    return shown


def joined(parts: Iterable[Answers]) -> Answers:
    """Return the answers of several groups of partitions together."""
    columns: Any = zip(*parts, strict=True)
    every = Answers(*map(np.concatenate, columns))
    return every.where(np.lexsort((every.place, every.op)))


def knowledge(answers: Answers) -> Knowledge:
    """Return for each answer what its coordinator knew, and what the one before it knew.

    One coordinator gives an answer, from one state, so what the offset of one partition shows holds
    for all partitions of the answer. The coordinator before it is the last one that answered the
    same process in an earlier operation; the time is that of its request.
    """
    knows = answers.begun.copy()
    several: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    ops, groups = answers.op.tolist(), answers.group.tolist()
    for row in np.flatnonzero(answers.is_fetch).tolist():
        several[ops[row], groups[row]].append(row)
    for rows in several.values():
        knows[rows] = knows[rows].max()
    knew, knew_ns = np.full(len(knows), UNKNOWN), np.full(len(knows), UNKNOWN)
    last: dict[tuple[int, int], tuple[int, int, int]] = {}  # operation, what it knew, when
    before: dict[tuple[int, int], tuple[int, int, int]] = {}
    nothing = (-1, UNKNOWN, UNKNOWN)
    for row, op in enumerate(ops):
        member = int(answers.process[row]), groups[row]
        if last.get(member, nothing)[0] != op:
            before[member] = last.get(member, nothing)
        knew[row], knew_ns[row] = before[member][1:]
        if knows[row] != UNKNOWN:
            last[member] = op, int(knows[row]), int(answers.start_ns[row])
    return Knowledge(knows, knew, knew_ns)
