"""Corruptions of the order of records: in logs, and in what readers receive."""

from collections.abc import Callable

from bench.broker_model import Write
from bench.corruptions.work import Delivery, Work


def _pairs(work: Work, fits: Callable[[Write, Write], bool]) -> list[tuple[Write, Write]]:
    writes = work.committed()
    return [(a, b) for a in writes for b in writes if a.key == b.key and fits(a, b)]


def reorder_own(work: Work) -> bool:
    """A process's later record is in the log before its earlier one."""
    pair = work.pick(_pairs(work, lambda a, b: a.process == b.process and a.invoked < b.invoked))
    if pair is None:
        return False
    work.swap(*pair)
    return True


def reorder_within(work: Work) -> bool:
    """The records of one operation are in the log in another order than it sent them."""
    pair = work.pick(_pairs(work, lambda a, b: a.invoked == b.invoked and a.value < b.value))
    if pair is None:
        return False
    work.swap(*pair)
    return True


def reorder_in_time(work: Work) -> bool:
    """A record is in the log before one that was acknowledged before the record's send began."""
    pair = work.pick(
        _pairs(
            work,
            lambda a, b: a.process != b.process and int(a.completed or 0) < b.invoked,
        )
    )
    if pair is None:
        return False
    work.swap(*pair)
    return True


def skip_within(work: Work) -> bool:
    """A poll leaves out a record between two that it delivers."""
    found = [d for d in work.deliveries() if len(d.records) > 2 and _is_kept(work, d)]
    delivery = work.pick(found)
    if delivery is None:
        return False
    del delivery.records[work.rng.randrange(1, len(delivery.records) - 1)]
    return True


def _is_kept(work: Work, delivery: Delivery) -> bool:
    """Return whether all records of the delivery are still in the log at the end."""
    return delivery.process != work.model.final and all(
        record[0] is not None and record[0] >= work.model.starts[delivery.key]
        for record in delivery.records
    )


def _consecutive(work: Work) -> list[tuple[Delivery, Delivery]]:
    """Return pairs of successive deliveries of a partition to a reader within one assignment."""
    last: dict[tuple[int, str], Delivery] = {}
    found = []
    deliveries: dict[int, list[Delivery]] = {}
    for delivery in work.of_readers():
        deliveries.setdefault(delivery.at, []).append(delivery)
    for op in work.ops:
        if op.f == "assign" and op.type == "ok":
            last = {place: d for place, d in last.items() if place[0] != op.process}
        for delivery in deliveries.get(op.index, ()):
            place = delivery.process, delivery.key
            if place in last and delivery.records and last[place].records:
                found.append((last[place], delivery))
            last[place] = delivery
    return found


def skip_between(work: Work) -> bool:
    """A reader that continues leaves out the record between two polls."""
    pairs = [(a, b) for a, b in _consecutive(work) if len(a.records) > 1 and _is_kept(work, a)]
    pair = work.pick(pairs)
    if pair is None:
        return False
    del pair[0].records[-1]
    return True


def repeat_within(work: Work) -> bool:
    """A poll delivers a record twice."""
    delivery = work.pick([d for d in work.deliveries() if d.records and d.kind == "ok"])
    if delivery is None:
        return False
    place = work.rng.randrange(len(delivery.records))
    delivery.records.insert(place, list(delivery.records[place]))
    return True


def repeat_between(work: Work) -> bool:
    """A poll begins with the last record of the poll before it."""
    pair = work.pick(_consecutive(work))
    if pair is None:
        return False
    pair[1].records.insert(0, list(pair[0].records[-1]))
    return True


def reorder_delivery(work: Work) -> bool:
    """A poll delivers two records in the wrong order."""
    delivery = work.pick([d for d in work.deliveries() if len(d.records) > 1])
    if delivery is None:
        return False
    place = work.rng.randrange(len(delivery.records) - 1)
    one, other = delivery.records[place : place + 2]
    delivery.records[place : place + 2] = [other, one]
    return True
