"""Corruptions of single records: lost, repeated, invented, or in the wrong place."""

import msgspec

from bench.corruptions.work import Work

NEVER_SENT = 10**15
"""Values from here on are never sent."""


def lose(work: Work) -> bool:
    """An acknowledged record is never delivered."""
    write = work.pick(
        [w for w in work.committed() if w.key not in work.deleted or work.ack_of(w) is not None]
    )
    if write is None:
        return False
    work.remove(write.value)
    return True


def lose_after_read(work: Work) -> bool:
    """A record that was read is missing from the final read."""
    read = {r[1] for d in work.of_readers() for r in d.records}
    write = work.pick([w for w in work.committed() if w.value in read])
    if write is None:
        return False
    work.remove(write.value, final_only=True)
    return True


def acknowledge_nothing(work: Work) -> bool:
    """A send that wrote nothing is acknowledged."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.offset is None
            and w.outcome in ("info", "fail")
            and not w.txn
            and w.key not in work.deleted
        ]
    )
    if write is None:
        return False
    work.ops[write.completed] = msgspec.structs.replace(work.ops[write.completed], type="ok")
    return True


def double(work: Work) -> bool:
    """A record is in the log twice."""
    write = work.pick(work.committed("ok", "info"))
    if write is None:
        return False
    work.insert_finally(write.key, write.value)
    return True


def invent(work: Work) -> bool:
    """A value is read that was never sent."""
    work.insert_finally(work.rng.choice(work.model.names), NEVER_SENT + work.rng.randrange(1000))
    return True


def invent_without_offset(work: Work) -> bool:
    """A value is read that was never sent, and its offset is not stated."""
    delivery = work.pick(list(work.deliveries()))
    if delivery is None:
        return False
    delivery.records.append([None, NEVER_SENT + work.rng.randrange(1000)])
    return True


def misroute(work: Work) -> bool:
    """A record is read from another partition than the one it was sent to."""
    write = work.pick(work.committed("ok", "info"))
    others = [key for key in work.model.names if write is not None and key != write.key]
    if not others:
        return False
    work.insert_finally(work.rng.choice(others), write.value)
    return True


def read_failed(work: Work) -> bool:
    """The record of a send that certainly failed is read."""
    writes = work.model.writes.values()
    write = work.pick([w for w in writes if w.outcome == "fail" and not w.txn])
    if write is None:
        return False
    work.insert_finally(write.key, write.value)
    return True


def read_early(work: Work) -> bool:
    """A record is read before its send began."""
    write = work.pick(work.committed("ok", "info"))
    polls = [op for op in work.ops if op.f == "poll" and op.type == "ok"]
    poll = work.pick([op for op in polls if write is not None and op.index < write.invoked])
    if poll is None:
        return False
    poll.value[0][1].setdefault(write.key, []).append([write.offset, write.value])
    return True


def acknowledge_elsewhere(work: Work) -> bool:
    """A record is acknowledged at the offset of another record."""
    writes = [w for w in work.committed() if work.ack_of(w) is not None]
    write = work.pick(writes)
    others = [w for w in work.committed() if write is not None and w.key == write.key]
    other = work.pick([w for w in others if w.value != write.value])
    if other is None:
        return False
    ack = work.ack_of(write)
    assert ack is not None, "only acknowledged sends were candidates"
    ack[2][0] = other.offset
    return True


def disagree(work: Work) -> bool:
    """A reader receives, in the place of a record, a value that was sent but never written."""
    never = [
        w
        for w in work.model.writes.values()
        if w.offset is None and w.outcome == "info" and not w.txn
    ]
    found = [
        (record, write)
        for delivery in work.of_readers()
        for record in delivery.records
        for write in never
        if write.key == delivery.key
        and write.invoked < delivery.at
        and record[0] is not None
        and record[0] >= work.model.starts[delivery.key]
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    record, write = choice
    record[1] = write.value
    return True


def restore_deleted(work: Work) -> bool:
    """The final reader receives a record that was deleted."""
    write = work.pick(
        [
            w
            for w in work.model.writes.values()
            if w.offset is not None
            and not w.aborted
            and w.outcome == "ok"
            and w.offset < work.model.starts[w.key]
        ]
    )
    if write is None:
        return False
    work.place_finally(write.key, write.offset, write.value)
    return True
