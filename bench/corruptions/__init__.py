"""Corrupts correct histories in ways that no broker that keeps its promises can explain.

Each corruption changes a :class:`~bench.corruptions.work.Work` (a history with everything that is
known about its origin) in one random place. It returns False if the history has no suitable place.
The corruption is decidable: the final reads are complete, and other events prove what the changed
one denies.
"""

import random
from collections.abc import Callable

from bench.broker_model import Model
from bench.corruptions import cluster, order, records, transactions
from bench.corruptions.work import Work
from model.op import Op

Corruption = Callable[[Work], bool]

CORRUPTIONS: tuple[Corruption, ...] = (
    records.lose,
    records.lose_after_read,
    records.acknowledge_nothing,
    transactions.tear,
    records.double,
    records.invent,
    records.invent_without_offset,
    records.misroute,
    records.read_failed,
    transactions.read_aborted,
    order.reorder_own,
    order.reorder_within,
    order.reorder_in_time,
    order.skip_within,
    order.skip_between,
    order.repeat_within,
    order.repeat_between,
    order.reorder_delivery,
    records.read_early,
    transactions.read_own,
    records.acknowledge_elsewhere,
    records.disagree,
    cluster.regress_high,
    cluster.regress_stable,
    cluster.regress_start,
    cluster.end_below_acknowledged,
    transactions.stable_above_open,
    transactions.read_open,
    records.restore_deleted,
    transactions.read_in_a_circle,
    cluster.crash,
)


def corrupt(model: Model, rng: random.Random, count: int) -> tuple[list[Op], list[str]]:
    """Return the history with up to ``count`` corruptions, and their names in order."""
    work = Work(model, rng)
    made: list[str] = []
    for corruption in rng.sample(CORRUPTIONS, len(CORRUPTIONS)):
        if len(made) == count:
            break
        if corruption(work):
            made.append(corruption.__name__)
    return work.ops, made
