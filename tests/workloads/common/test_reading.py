"""Partitions are read during a run, and to their ends after it."""

import itertools

import msgspec
import pytest

from model.op import Op
from tests.workloads.conftest import PLAN, simulate, yes
from workloads.idempotent import WORKLOAD


def test_a_process_after_doubt_begins_anew() -> None:
    """A reader that replaces a retired one assigns before it polls."""
    count = itertools.count()

    def answer(op: Op) -> Op:
        if op.f in ("poll", "send") and next(count) % 20 == 0:
            return msgspec.structs.replace(op, type="info")
        return yes(op)

    first: dict[int, str] = {}
    for op in simulate(WORKLOAD.main(PLAN), answer):
        if op.type == "invoke":
            first.setdefault(op.process, op.f)
    readers = [p for p in first if p % 5 >= 3]
    assert len(readers) > 10
    assert {first[p] for p in readers} == {"assign"}


def test_final_reads_end_when_all_keys_are_caught_up() -> None:
    """Final readers assign all partitions, poll, and check whether they have caught up.

    They check after a poll without records, and end with the last partition.
    """
    left = {"a-0": 3, "a-1": 1, "b-0": 2}
    batches = iter(range(4))

    def answer(op: Op) -> Op:
        if op.f == "poll" and next(batches, None) is not None:
            return msgspec.structs.replace(op, type="ok", value=[["poll", {"a-0": [[0, 0]]}]])
        if op.f == "catch-up":
            key = op.value[0][1]
            left[key] -= 1
            return msgspec.structs.replace(op, type="ok" if left[key] <= 0 else "fail")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, tuple(left), 60.0), answer)
    assert {op.process for op in history} == {3, 4}
    for process in (3, 4):
        asked = [op for op in history if op.process == process and op.type == "invoke"]
        assert [op.f for op in asked[:2]] == ["assign", "poll"]
        for before, op in itertools.pairwise(asked):
            if op.f == "catch-up":
                assert before.f in ("poll", "catch-up")
    caught_up = {op.value[0][1] for op in history if op.f == "catch-up" and op.type == "ok"}
    assert caught_up == set(left)
    assert history[-1].time_ns < 1e9


def test_final_reads_end_with_their_time() -> None:
    """Readers that never catch up read until the time is over."""

    def answer(op: Op) -> Op:
        return msgspec.structs.replace(op, type="fail") if op.f == "catch-up" else yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("a-0",), 2.0), answer)
    assert history[-1].time_ns == pytest.approx(2e9, abs=2e7)


def test_final_reads_survive_a_reader_that_dies() -> None:
    """A final reader that replaces a dead one assigns first, so that everything is read."""
    polls = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "poll" and next(polls) < 3:
            return msgspec.structs.replace(op, type="info")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("a-0", "a-1"), 60.0), answer)
    first: dict[int, str] = {}
    for op in history:
        first.setdefault(op.process, op.f)
    assert len(first) > 2
    assert set(first.values()) == {"assign"}
    assert {op.value[0][1] for op in history if op.f == "catch-up"} == {"a-0", "a-1"}


def test_nothing_written_nothing_to_read() -> None:
    """A run without a single write has no final reads."""
    assert simulate(WORKLOAD.final(PLAN, (), 60.0)) == []
