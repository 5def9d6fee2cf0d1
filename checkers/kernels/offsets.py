"""Inconsistent offsets: two values claim one offset."""

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import groups


def inconsistent_offsets(log: Log) -> list[Found]:
    """Find offsets with two values or more. Jepsen's ``inconsistent-offsets``.

    The variant is ``read`` when two of them were read: replicas or readers disagree about the log,
    which no contract with clean elections permits. It is ``ack`` when at most one was: the others
    rest on acknowledgements alone. ``also`` are the values.
    """
    begins, ends = groups(log.known.offset)
    several = ends - begins > 1
    return [
        _conflict(log, begin, end)
        for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True)
    ]


def _conflict(log: Log, begin: int, end: int) -> Found:
    """Return the finding about the values of these rows, which have one offset."""
    known = log.known
    claims = ", ".join(
        f"{known.value[row]} ({'read by' if known.read[row] else 'acknowledged to'}"
        f" process {known.process[row]} at {at(known.time_ns[row])})"
        for row in range(begin, end)[:8]
    )
    return Found(
        anomaly="inconsistent-offsets",
        key=log.key,
        offset=int(known.offset[begin]),
        value=int(known.value[begin]),
        variant="read" if known.read[begin:end].sum() > 1 else "ack",
        ops=tuple(dict.fromkeys(sorted(known.op[begin:end].tolist()))),
        also=tuple(known.value[begin:end].tolist()),
        why=f"offset {known.offset[begin]} holds {end - begin} values: {claims}",
    )
