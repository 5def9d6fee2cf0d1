"""Duplicates: one value at more than one offset. To read one offset twice is not a duplicate."""

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, groups


def duplicates(log: Log) -> list[Found]:
    """Find values at two offsets or more, acknowledged or read. Jepsen's ``duplicate``.

    ``offset`` is the last of the offsets; ``also`` are all of them. The variant is ``deleted`` when
    all others may have been deleted by the time at which the last is reported: a replica that
    begins with what is left does not know the producers of deleted records. It becomes
    ``contradicted`` when another record is at one of the offsets (:mod:`checkers.kernels.folding`).
    """
    known = log.known
    begins, ends = groups(known.value[known.by_value])
    several = ends - begins > 1
    return [
        _duplicate(log, known.by_value[begin:end])
        for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True)
    ]


def _duplicate(log: Log, rows: I64) -> Found:
    """Return the finding about the offsets of these rows, which have one value."""
    known = log.known
    value = int(known.value[rows[0]])
    offsets = tuple(known.offset[rows].tolist())
    copies = ", ".join(
        f"offset {known.offset[row]} ({'read by' if known.read[row] else 'acknowledged to'}"
        f" process {known.process[row]} at {at(known.time_ns[row])})"
        for row in rows[:8]
    )
    return Found(
        anomaly="duplicate",
        key=log.key,
        offset=offsets[-1],
        value=value,
        variant="deleted" if offsets[-2] < log.deleted_below(known.op[rows[-1]]) else "",
        ops=tuple(dict.fromkeys(log.senders(value) + known.op[rows].tolist())),
        also=offsets,
        why=f"value {value} was sent once, but is in the log {len(offsets)} times: {copies}",
    )
