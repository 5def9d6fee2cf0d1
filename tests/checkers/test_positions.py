"""When readers gave up their positions: few rows, and the same answers as from all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers import positions
from checkers.kernels.rows import I64, UNKNOWN, Begins, Resets
from model.op import Op

PROCESSES, KEYS = 3, 3

Rounds = list[tuple[int, set[int]]]
Looks = list[tuple[int, int, int]]


def columns(rows: Sequence[tuple[int, ...]], count: int) -> tuple[I64, ...]:
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, count).T)


@given(
    st.lists(st.tuples(st.integers(0, PROCESSES), st.sets(st.integers(0, KEYS - 1))), max_size=20),
    st.lists(
        st.tuples(st.integers(0, KEYS - 1), st.integers(0, PROCESSES), st.integers(0, 60)),
        max_size=40,
    ),
)
def test_every_poll_finds_the_last_reset_before_it(rounds: Rounds, looks: Looks) -> None:
    """Every poll finds the last assignment of its process before it that leaves its partition out.

    Each reset is such an assignment, and there is at most one for each poll.
    """
    when = [3 * number for number in range(len(rounds))]
    assignments = columns([(process, at) for (process, _), at in zip(rounds, when, strict=True)], 2)
    assigned = columns(
        [
            (process, at, key)
            for (process, keys), at in zip(rounds, when, strict=True)
            for key in sorted(keys)
        ],
        3,
    )
    polling = positions.Polling(*columns([(k, p, 3 * op + 1) for k, p, op in looks], 3))
    resets, reset_key = positions.resets(assignments, assigned, polling)  # type: ignore[arg-type]
    assert len(resets.op) <= len(looks)
    for key, process, op in zip(*(column.tolist() for column in polling), strict=True):
        gave_up = [
            at
            for (other, keys), at in zip(rounds, when, strict=True)
            if other == process and key not in keys
        ]
        mine = resets.where(reset_key == key)
        assert set(mine.op[mine.process == process].tolist()) <= set(gave_up)
        found = mine.before(np.array([process]), np.array([op]))
        assert found.tolist() == [max((at for at in gave_up if at < op), default=UNKNOWN)]


EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=20)


@given(EVENTS, EVENTS)
def test_the_nearest_events_of_a_process(
    events: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    """Lookups find the last reset before an event, and the first begin at or after it; else
    UNKNOWN."""
    process, event = columns(events, 2)
    before = Resets(process, event).before(*columns(asked, 2))
    since = Begins(process, event).since(*columns(asked, 2))
    assert before.tolist() == [
        max((e for p, e in events if p == who and e < at), default=UNKNOWN) for who, at in asked
    ]
    assert since.tolist() == [
        min((e for p, e in events if p == who and e >= at), default=UNKNOWN) for who, at in asked
    ]


def readers(count: int, *, each: int) -> list[Op]:
    """Events in which each reader is assigned a few partitions one by one, and reads a record of
    each."""
    events: list[tuple[int, str, str, Any]] = []
    for key in range(count):
        process, name = 1 + key // each, f"t-{key}"
        events += [
            (0, "invoke", "send", [["send", name, 0]]),
            (0, "ok", "send", [["send", name, [0, 0]]]),
            (process, "invoke", "assign", [name]),
            (process, "ok", "assign", [name]),
            (process, "invoke", "poll", [["poll"]]),
            (process, "ok", "poll", [["poll", {name: [[0, 0]]}]]),
        ]
    return [
        Op(index=n, time_ns=n, process=process, type=kind, f=f, value=value)  # type: ignore[arg-type]
        for n, (process, kind, f, value) in enumerate(events)
    ]


def test_rows_grow_with_the_history_alone(histories: Any) -> None:
    """The number of resets grows with the history, and not with partitions times assignments.

    It holds if every partition has its own reader, and if one reader is assigned one partition
    after the other.
    """
    for each in (1, 100):
        logs = list(histories.tables(readers(100, each=each)).logs())
        assert len(logs) == 100
        assert sum(len(log.resets.op) + len(log.begins.process) for log in logs) <= 200
