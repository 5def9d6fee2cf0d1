"""Runs all checkers of ZooKeeper on a history, and puts their findings into a verdict's form."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain

from checkers import overview
from checkers.kernels import history_kernels
from checkers.kernels.checker_runs import CheckerRunner
from checkers.kernels.found import Found
from checkers.kernels.key import Report
from checkers.overview import Whole
from checkers.tables import Tables
from checkers.zookeeper import (
    barriers,
    calls,
    children,
    counters,
    ephemerals,
    expiries,
    holders,
    intruders,
    linear,
    multis,
    persistent_watches,
    queues,
    sessions,
    watches,
    znodes,
)
from checkers.zookeeper.calls import History
from model.op import ZNODE_READS, Op

Kernel = Callable[[History], Iterable[Found]]
Count = Callable[[History], int]

NEITHER = frozenset(("close", "abandon", "intrude", "watch", "unwatch"))
"""Operations that neither read nor write a znode."""


def _calls(*names: str) -> Count:
    """Return what counts the calls of these operations that succeeded."""
    return lambda history: sum(call.ok for call in history.of(*names))


KERNELS: Mapping[str, tuple[Kernel, Count]] = {
    "zk-updates": (znodes.updates, znodes.count),
    "zk-real-time": (znodes.real_time, _calls(*znodes.WRITES, *znodes.FENCED, "multi")),
    "zk-origins": (znodes.origins, _calls("get")),
    "zk-linearizable": (linear.linearizable, linear.count),
    "zk-session-order": (sessions.zxids, lambda history: len(history.calls)),
    "zk-session-reads": (sessions.reads, _calls(*znodes.READS)),
    "zk-sync": (
        sessions.synced,
        lambda history: sum(bool(c.ok and c.value.get("sync")) for c in history.of(*znodes.READS)),
    ),
    "zk-lost-ephemerals": (ephemerals.lost, ephemerals.count),
    "zk-ended-sessions": (ephemerals.outlived, ephemerals.count),
    "zk-intruders": (intruders.stolen, _calls("intrude")),
    "zk-sequences": (children.sequences, children.count),
    "zk-lists": (children.lists, _calls("children")),
    "zk-list-versions": (children.versions, _calls("children")),
    "zk-torn-multis": (multis.torn, _calls("multi")),
    "zk-multi-conditions": (multis.conditions, _calls("multi")),
    "zk-exclusion": (holders.exclusion, holders.count),
    "zk-fences": (holders.fencing, _calls(*holders.WRITES)),
    "zk-elements": (queues.taken, _calls("dequeue")),
    "zk-queue-losses": (queues.lost, queues.count),
    "zk-barriers": (barriers.early, barriers.count),
    "zk-watches": (
        lambda history: chain(
            watches.notifications(history), persistent_watches.notifications(history)
        ),
        lambda history: watches.count(history) + persistent_watches.count(history),
    ),
    "zk-expiries": (expiries.early, expiries.count),
    "zk-counter-bounds": (counters.bounds, _calls("add", "read")),
}
"""Every checker, and how much it has to judge in a history."""


def whole(tables: Tables, events: Iterable[Op]) -> Whole:
    """Judge a history. ``tables`` are those of the same history, which have its faults.

    Raises :class:`~model.history.BadHistory` for an event that no client of ZooKeeper records.
    """
    history = calls.of_events(events, tables.faults, tables.recovered)
    runner = CheckerRunner()
    found: list[Found] = []
    judged = dict.fromkeys(KERNELS, 0)
    for name in KERNELS:
        found += runner.run(name, partial(_counted, history, judged, name)) or ()
    places = reports(history)
    seen = dataclasses.replace(
        overview.of(tables),
        record_keys=frozenset(places),
        caught_up=frozenset(final_places(history)),
        tried=frozenset(places),
        ignored={},
        judged=judged,
    )
    return Whole(
        reports=places,
        found=history_kernels.Report(found, runner.checker_runs),
        overview=seen,
        subscribes=False,
    )


def _counted(history: History, judged: dict[str, int], name: str) -> Iterable[Found]:
    """Run a checker, and note how much it has to judge."""
    kernel, count = KERNELS[name]
    judged[name] = count(history)
    return kernel(history)


def reports(history: History) -> dict[str, Report]:
    """Return how many writes and reads succeeded at each place."""
    found: dict[str, Report] = {}
    for call in history.calls:
        if call.f in NEITHER or not call.place:
            continue
        report = found.setdefault(call.place, Report(found=[], checker_runs=[]))
        is_read = call.f in ZNODE_READS
        found[call.place] = report._replace(
            acked=report.acked + (call.ok and not is_read), read=report.read + (call.ok and is_read)
        )
    return found


def final_places(history: History) -> set[str]:
    """Return the places that were read to their end after the recovery."""
    return {call.place for call in history.calls if history.is_final(call)}
