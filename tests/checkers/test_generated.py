"""Generated histories: correct ones give no finding, and a planted defect gives one of its kind.

Both executors find the same.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.histories import PHANTOM_FROM, World
from checkers import anomalies, findings, inline, overview
from checkers.expectations import Contract
from checkers.kernels import history_kernels
from checkers.kernels.found import Found
from checkers.tables import Tables
from model.op import MicroOp, Op

Plant = Callable[[list[Op], random.Random], list[Op] | None]
Rows = list[tuple[int, int, str, int, int]]

SEEDS = st.integers(0, 2**32)


def world(rng: random.Random) -> World:
    return World(
        rng,
        keys=rng.randint(1, 3),
        writers=rng.randint(1, 4),
        readers=rng.randint(1, 3),
        doubt=rng.choice((0.0, 0.2)),
        restarts=rng.choice((0.0, 0.1)),
    )


def standing(tables: Tables) -> list[Found]:
    """Return what the kernels find, without what every contract permits."""
    reports = inline.judge(tables, lambda done: None)
    told = history_kernels.judge(tables, [f for report in reports.values() for f in report.found])
    checker_runs = [
        *told.checker_runs,
        *(r for report in reports.values() for r in report.checker_runs),
    ]
    assert not [run for run in checker_runs if run.crash]
    return [f for f in told.found if not anomalies.of(f.anomaly).is_information]


def illegal(tables: Tables) -> dict[str, int]:
    return findings.counts(
        findings.findings(standing(tables), overview.of(tables), Contract()), legal=False
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(SEEDS, st.integers(1, 150))
def test_a_log_that_keeps_its_promises_gives_no_finding(
    histories: Any, seed: int, operations: int
) -> None:
    """A correct log gives no finding, even with late or partial writes, new readers and gaps."""
    assert standing(histories.tables(list(world(random.Random(seed)).events(operations)))) == []


@pytest.mark.slow
@settings(max_examples=25)
@given(SEEDS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_planted_records_are_counted_exactly(
    histories: Any, seed: int, lost: int, doubled: int, phantom: int
) -> None:
    """Planted lost, duplicated and phantom records are counted exactly, and what follows is
    folded."""
    made = World(
        random.Random(seed), restarts=0.05, lost=lost, doubled=doubled, phantom=phantom, span=30
    )
    planted = {"duplicate": doubled, "lost-write": lost, "phantom": phantom}
    tables = histories.tables(list(made.events(200)))
    assert illegal(tables) == {name: count for name, count in planted.items() if count}


def _records(ops: list[Op]) -> Rows:
    """Yield event, micro-operation, partition, place and offset of each record of the ok polls."""
    return [
        (at, number, key, place, record[0])
        for at, op in enumerate(ops)
        if op.f == "poll" and op.type == "ok"
        for number, micro_op in enumerate(op.value)
        for key, records in micro_op[1].items()
        for place, record in enumerate(records)
    ]


def _before_the_end(ops: list[Op]) -> Rows:
    """Return the events without those of the final reader, which decides what the log holds."""
    last = max(op.process for op in ops)
    return [row for row in _records(ops) if ops[row[0]].process != last]


def _with(op: Op, change: Callable[[list[MicroOp]], None]) -> Op:
    value = msgspec.json.decode(msgspec.json.encode(op.value))
    change(value)
    return msgspec.structs.replace(op, value=value)


def _renumbered(ops: list[Op]) -> list[Op]:
    return [msgspec.structs.replace(op, index=n) for n, op in enumerate(ops)]


def _last_poll(ops: list[Op]) -> tuple[int, str, int]:
    """Return the last poll that delivered a record, its partition, and the end of that log."""
    at, _, key, _, _ = _records(ops)[-1]
    end = max(offset for _, _, other, _, offset in _records(ops) if other == key) + 1
    return at, key, end


def _append_at_end(ops: list[Op], key: str, at: int, record: list[int]) -> list[Op]:
    changed = list(ops)
    changed[at] = _with(ops[at], lambda value: value[0][1][key].append(record))
    return changed


def plant_failed_send_read(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A send that certainly failed is read at the end of the log."""
    at, key, end = _last_poll(ops)
    failed = [
        v for op in ops if op.type == "fail" and op.f == "send" for _, k, v in op.value if k == key
    ]
    return _append_at_end(ops, key, at, [end, rng.choice(failed)]) if failed else None


def plant_misrouted(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A record of another partition is read at the end of this one."""
    at, key, end = _last_poll(ops)
    others = [
        micro_op[2][1]
        for op in ops
        if op.type == "ok" and op.f == "send"
        for micro_op in op.value
        if micro_op[1] != key
    ]
    return _append_at_end(ops, key, at, [end, rng.choice(others)]) if others else None


def plant_inconsistent_offset(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """Two readers see different values at an offset, and no catch-up shows the end of the log."""
    changed = plant_vanished_record(ops, rng)
    return changed and [op for op in changed if op.f != "catch-up"]


def plant_vanished_record(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A reader sees a record that was sent but not written, where the final reader sees another
    one."""
    landed = {
        v
        for op in ops
        if op.f == "poll"
        for m in op.value
        if m[1:]
        for r in m[1].values()
        for _, v in r
    }
    doubtful = {
        (m[1], m[2], op.index)
        for op in ops
        if op.f == "send" and op.type == "info"
        for m in op.value
        if isinstance(m[2], int) and m[2] not in landed
    }
    rows = _records(ops)
    places = [(key, offset) for _, _, key, _, offset in rows]
    choices = [
        (row, value)
        for row in _before_the_end(ops)
        for key, value, sent in sorted(doubtful)
        if key == row[2] and places.count((key, row[4])) > 1 and sent < ops[row[0]].index
    ]
    if not choices:
        return None
    (at, number, key, place, offset), value = rng.choice(choices)
    changed = list(ops)

    def change(micro_ops: list[MicroOp]) -> None:
        micro_ops[number][1][key][place] = [offset, value]

    changed[at] = _with(ops[at], change)
    return changed


def plant_repeated_record(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A poll delivers a record twice in a row."""
    at, number, key, place, _ = rng.choice(_records(ops))
    changed = list(ops)

    def change(micro_ops: list[MicroOp]) -> None:
        records = micro_ops[number][1][key]
        records.insert(place, records[place])

    changed[at] = _with(ops[at], change)
    return changed


def plant_repeated_poll(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A reader polls again and gets the last record of a key again."""
    rows = _records(ops)
    last = [
        row
        for row, after in zip(rows, [*rows[1:], None], strict=True)
        if after is None or (after[0], after[2]) != (row[0], row[2])
    ]
    at, number, key, place, _ = rng.choice(last)
    record = ops[at].value[number][1][key][place]
    asked = msgspec.structs.replace(ops[at], type="invoke", value=[["poll"]])
    again = msgspec.structs.replace(ops[at], value=[["poll", {key: [record]}]])
    return _renumbered([*ops[: at + 1], asked, again, *ops[at + 1 :]])


def plant_swallowed_record(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """A poll leaves a record out between two that it delivers."""
    rows = _before_the_end(ops)
    inner = [
        b for a, b, c in zip(rows, rows[1:], rows[2:], strict=False) if a[:3] == b[:3] == c[:3]
    ]
    if not inner:
        return None
    at, number, key, place, _ = rng.choice(inner)
    changed = list(ops)

    def change(micro_ops: list[MicroOp]) -> None:
        del micro_ops[number][1][key][place]

    changed[at] = _with(ops[at], change)
    return changed


def plant_swap_in_operation(ops: list[Op], rng: random.Random) -> list[Op] | None:
    """Two adjacent records of one send are in the log in the wrong order."""
    choices = [
        (first, second)
        for op in ops
        if op.f == "send" and op.type == "ok"
        for first, second in zip(op.value, op.value[1:], strict=False)
        if second[2][0] == first[2][0] + 1
    ]
    if not choices:
        return None
    (_, key, (low, a)), (_, _, (high, b)) = rng.choice(choices)
    return [_swapped(op, key, {(low, a): (low, b), (high, b): (high, a)}) for op in ops]


def _swapped(op: Op, key: str, swap: dict[tuple[int, int], tuple[int, int]]) -> Op:
    """Return the event with offsets exchanged: by place in polls, by value in acknowledgements."""
    offsets = {old[1]: new[0] for new in swap.values() for old in swap if old[1] == new[1]}

    def change(micro_ops: list[MicroOp]) -> None:
        for micro_op in micro_ops:
            if micro_op[0] == "poll" and len(micro_op) > 1:
                for record in micro_op[1].get(key, ()):
                    record[:] = swap.get((record[0], record[1]), record)
            elif micro_op[0] == "send" and micro_op[1] == key and isinstance(micro_op[2], list):
                micro_op[2][0] = offsets.get(micro_op[2][1], micro_op[2][0])

    return _with(op, change) if op.f in ("poll", "send") else op


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "anomaly"),
    [
        (plant_failed_send_read, "G1a"),
        (plant_misrouted, "misrouted"),
        (plant_inconsistent_offset, "inconsistent-offsets"),
        (plant_vanished_record, "lost-write"),
        (plant_repeated_record, "int-nonmonotonic-poll"),
        (plant_repeated_poll, "nonmonotonic-poll"),
        (plant_swallowed_record, "int-poll-skip"),
        (plant_swap_in_operation, "int-nonmonotonic-send"),
    ],
)
def test_a_single_defect_is_told_once(histories: Any, plant: Plant, anomaly: str) -> None:
    """One defect in a correct history is one finding of its kind."""
    planted = 0
    for seed in range(40):
        rng = random.Random(seed)
        made = World(rng, keys=2, writers=4, readers=2, doubt=0.2, restarts=0.05)
        if (ops := plant(list(made.events(120)), rng)) is not None:
            planted += 1
            assert illegal(histories.tables(ops)) == {anomaly: 1}, f"seed {seed}"
    assert planted >= 10


@pytest.mark.spark
def test_both_executors_find_the_same(histories: Any, spark: Any, tmp_path: Path) -> None:
    """Both executors find the same in generated histories: findings, evidence and availability."""
    from checkers import spark as spark_

    for seed in range(3):
        made = World(
            random.Random(seed),
            keys=5,
            restarts=0.05,
            lost=seed,
            doubled=seed,
            phantom=seed,
            span=90,
        )
        tables = histories.tables(list(made.events(400)))
        one, other = (
            {key: report._replace(checker_runs=[]) for key, report in reports.items()}
            for reports in (
                inline.judge(tables, lambda done: None),
                spark_.judge(tables, spark, tmp_path, lambda done: None),
            )
        )
        assert one == other
        found = [f for report in one.values() for f in report.found]
        assert len([f for f in found if not anomalies.of(f.anomaly).is_information]) == 3 * seed


@pytest.mark.spark
def test_both_executors_know_what_was_deleted(histories: Any, spark: Any, tmp_path: Path) -> None:
    """Both executors know which records were deleted, and from when on no reader may receive
    them."""
    from checkers import spark as spark_

    text = "s:x=a@0,x=b@1,x=c@2 d:x@1/1 d8?:x@2 a2:x p2:x=a@0 c2:x@3 w:x@0/3/3"
    tables = histories.tables(text)
    one = inline.judge(tables, lambda done: None)["x"]
    other = spark_.judge(tables, spark, tmp_path, lambda done: None)["x"]
    assert one.found == other.found
    assert sorted(f"{f.anomaly} {f.value}" for f in one.found) == [
        "log-start-regress 1",
        "log-start-regress None",
        "lost-write 3",
    ]


@pytest.mark.spark
def test_histories_are_judged_together_as_each_by_itself(
    histories: Any, spark: Any, tmp_path: Path
) -> None:
    """Histories that are judged in one job get the same reports as each one alone."""
    from checkers import spark as spark_

    many = [
        histories.tables(list(World(random.Random(seed), keys=seed, lost=seed).events(200)))
        if seed
        else histories.tables("a:x")
        for seed in (3, 0, 1)
    ]
    together = spark_.judge_together(many, spark, tmp_path)
    alone = [inline.judge(tables, lambda done: None) for tables in many]
    one, other = (
        [
            {key: report._replace(checker_runs=[]) for key, report in reports.items()}
            for reports in judged
        ]
        for judged in (together, alone)
    )
    assert one == other
    assert [len(reports) for reports in one] == [3, 0, 1]
    found = [[f.anomaly for report in reports.values() for f in report.found] for reports in one]
    assert found == [["lost-write"] * 3, [], ["lost-write"]]


def test_phantoms_are_beyond_all_values(histories: Any) -> None:
    """The values of the generator's phantoms are beyond those that it sends."""
    made = World(random.Random(1), phantom=1, span=5)
    tables = histories.tables(list(made.events(60)))
    (found,) = standing(tables)
    assert found.value is not None
    assert found.value >= PHANTOM_FROM > int(tables.sends.value.max())
