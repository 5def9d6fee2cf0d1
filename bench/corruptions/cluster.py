"""Corruptions of the cluster itself: ends of logs that go back, and a crash."""

from bench.corruptions.work import Work
from model.op import NEMESIS, Op


def _later_probe(work: Work, end: str, before: str) -> tuple[dict[str, int], int] | None:
    """Return the ends that a probe states, and an end that an earlier probe had stated.

    The earlier probe completed before the later one was invoked.
    """
    probes = work.probes()
    found = [
        (later.value[0][2], earlier.value[0][2][before])
        for earlier in probes
        for later in probes
        if earlier.value[0][1] == later.value[0][1]
        and earlier.index < work.invoked[later.index]
        and earlier.value[0][2][before] > 0
        and later.value[0][2][end] >= earlier.value[0][2][before]
    ]
    choice: tuple[dict[str, int], int] | None = work.pick(found)
    return choice


def regress_high(work: Work) -> bool:
    """A high watermark is lower than one that was stated before."""
    choice = _later_probe(work, "high", "high")
    if choice is None:
        return False
    ends, before = choice
    ends["high"] = work.rng.randrange(before)
    return True


def regress_stable(work: Work) -> bool:
    """A last stable offset is lower than one that was stated before."""
    choice = _later_probe(work, "stable", "stable")
    if choice is None:
        return False
    ends, before = choice
    ends["stable"] = work.rng.randrange(before)
    return True


def regress_start(work: Work) -> bool:
    """A log start offset is lower than one that was stated before."""
    choice = _later_probe(work, "start", "start")
    if choice is None:
        return False
    ends, before = choice
    ends["start"] = work.rng.randrange(before)
    return True


def end_below_acknowledged(work: Work) -> bool:
    """A high watermark, requested after a record was acknowledged, is not above its offset."""
    found = [
        (probe.value[0][2], write.offset)
        for probe in work.probes()
        for write in work.committed()
        if write.key == probe.value[0][1] and int(write.completed or 0) < work.invoked[probe.index]
    ]
    choice = work.pick(found)
    if choice is None:
        return False
    ends, offset = choice
    ends["high"] = work.rng.randint(0, offset)
    return True


def crash(work: Work) -> bool:
    """A broker exits unexpectedly."""
    end = work.ops[-1]
    value = {"node": "broker-1", "serves": True, "status": 1, "last_line": "out of memory"}
    work.ops.append(
        Op(
            index=end.index + 1,
            time_ns=end.time_ns + 1,
            process=NEMESIS,
            type="info",
            f="crash",
            value=value,
        )
    )
    return True
