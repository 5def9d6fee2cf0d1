"""Columns are judged as events are, where monitors decide and where they do not."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.objects import histories
from bench.oracles import kinds
from bench.oracles.kinds import KINDS, UNIQUE, Kind
from checkers import objects
from checkers.linearizability import (
    column_blocks,
    column_judging,
    column_monitors,
    columnar,
    explanation,
    judging,
    models,
)
from checkers.linearizability.columnar import Columns
from checkers.linearizability.judging import Judgement
from checkers.linearizability.models import Keyed, KeyValue, Model
from checkers.linearizability.operations import NEVER, Operation
from model.history import BadHistory

ALL = {**KINDS, **{f"unique {name}": kind for name, kind in UNIQUE.items()}}


def lists(value: Any) -> Any:
    """Return a value with lists for tuples, as a history of events has it."""
    return [lists(each) for each in value] if isinstance(value, list | tuple) else value


def drawn(kind: Kind, rng: Random) -> tuple[list[Operation], Model]:
    """Return the operations of some keys, or of one object without a key."""
    found = list[Operation]()
    is_store, key_scale = isinstance(kind.model, KeyValue), rng.choice([1, 1 << 40])
    if not is_store and rng.random() < 0.4:
        found = kinds.draw(kind, rng, rng.randrange(1, 8))
        return [_apart(each, row) for row, each in enumerate(found)], kind.model
    for key in range(rng.randrange(1, 5)):
        for row, each in enumerate(kinds.draw(kind, rng, rng.randrange(1, 8))):
            value = each.value[1] if is_store and isinstance(each.value, list) else each.value
            alone = _apart(each._replace(value=value), 8 * key + row)
            found.append(alone._replace(value=[key * key_scale, alone.value]))
    found.sort(key=lambda each: each.call)
    return found, kind.model if is_store else Keyed(kind.model)


def _apart(operation: Operation, number: int) -> Operation:
    """Return an operation that is not invoked at the same place as another one."""
    end = NEVER if operation.is_pending else 64 * operation.end + 63
    value = lists(operation.value)
    return operation._replace(value=value, call=64 * operation.call + number, end=end)


def reasons(judgement: Judgement) -> list[str]:
    """Return all explanations."""
    return [line for part in judgement.illegal for line in explanation.sentences(part)]


def stretched(path: Path) -> Iterator[None]:
    """Write a history again with other places, values and orders of rows that mean the same."""
    table = pq.read_table(path)
    yield
    for name in ("call", "end"):  # as if by a clock
        column = pc.multiply(table[name], 1_000_000_007)
        table = table.set_column(table.column_names.index(name), name, column)
    columnar.write_table(path, table)
    yield
    order = np.random.default_rng(len(table)).permutation(len(table))
    columnar.write_table(path, table.take(pa.array(order)))
    yield


@pytest.mark.parametrize("name", ALL)
def test_columns_are_judged_as_events_are(name: str, tmp_path: Path) -> None:
    """Verdicts and explanations are the same, with and without keys, whatever the places are."""
    kind, path, verdicts = ALL[name], tmp_path / "history.parquet", set[object]()
    for seed in range(40):
        operations, model = drawn(kind, Random(f"{name} {seed}"))
        wanted = judging.judge(operations, model)
        has_keys = isinstance(model, Keyed | KeyValue)
        columnar.write(path, operations, keyed=has_keys)
        for _ in stretched(path):
            found = column_judging.judge(Columns(path), model)
            assert found.valid is wanted.valid, (seed, operations)
            assert reasons(found) == reasons(wanted)
        verdicts.add(wanted.valid)
        if name.startswith("unique") and wanted.valid is True:
            assert found.parts == (), "no operation became an object"
    assert verdicts == {True, False}


@pytest.mark.parametrize("keys", [1, 30])
@pytest.mark.parametrize("kind", histories.KINDS)
def test_one_wrong_result_is_found(
    kind: str, keys: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large history is linearizable, and not with one wrong result, which is named. Small blocks
    and steps make no difference."""
    count = 5000 if keys > 1 else 1500  # of one object, to explain a finding takes long
    monkeypatch.setattr(column_blocks, "BLOCK_ROWS", 500)
    monkeypatch.setattr(column_blocks, "STEP", 300)
    path = tmp_path / "history.parquet"
    history = histories.generate(kind, count, keys, seed=7)
    histories.write(path, history)
    judged = objects.judged(Columns(path), kind)
    assert (judged.verdict.valid, judged.verdict.operations) == (True, count)
    assert judged.judgement is not None
    assert judged.judgement.parts == ()
    wrong, named = histories.plant(history, seed=7)
    histories.write(path, wrong)
    verdict = objects.check(Columns(path), kind)
    assert verdict.valid is False
    assert any(each in line for line in verdict.why for each in named), (named, verdict.why)


@pytest.mark.parametrize("name", UNIQUE)
def test_values_and_keys_of_any_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are too many numbers for a table, values are sorted, with the same verdicts."""
    monkeypatch.setattr(column_monitors, "_SPARSE", -(1 << 20))
    path = tmp_path / "history.parquet"
    for seed in range(40):
        operations, model = drawn(UNIQUE[name], Random(f"{name} {seed}"))
        columnar.write(path, operations, keyed=isinstance(model, Keyed | KeyValue))
        found = column_judging.judge(Columns(path), model)
        assert found.valid is judging.judge(operations, model).valid, seed


def test_values_far_apart(tmp_path: Path) -> None:
    """Values of 64 bits of many keys are not confused."""
    path, far = tmp_path / "history.parquet", (1 << 63) - 1
    values = [-far, far, -1, 1 << 62]
    operations = [
        Operation(f, [key, value], at, at + 1)
        for key in range(3)
        for number, value in enumerate(values)
        for at in (100 * key + 4 * number,)
        for f, at in (("write", at), ("read", at + 2))
    ]
    columnar.write(path, operations, keyed=True)
    model = Keyed(models.Register(0))
    assert column_judging.judge(Columns(path), model) == Judgement(True, ())
    operations[-1] = operations[-1]._replace(value=[2, -1])
    columnar.write(path, operations, keyed=True)
    assert column_judging.judge(Columns(path), model).valid is False


@pytest.mark.parametrize("initial", [None, 0, 3, "3", 3.0, True])
def test_initial_values(initial: Any, tmp_path: Path) -> None:
    """A read of the initial value is legal, of whatever type it is."""
    path = tmp_path / "history.parquet"
    for value in (3, 1, "3"):
        operations = [Operation("read", value, 0, 1), Operation("write", value, 4, 5)]
        columnar.write(path, operations[:1])
        wanted = judging.judge(operations[:1], models.Register(initial)).valid
        assert objects.check(Columns(path), "register", initial=initial).valid is wanted


def test_operations_that_a_model_does_not_have(tmp_path: Path) -> None:
    """The first operation that does not fit is named, as for events."""
    path = tmp_path / "history.parquet"
    operations = [Operation("write", 1, 0, 1), Operation("push", 2, 2, 3, 0, 2, 3)]
    columnar.write(path, operations)
    with pytest.raises(BadHistory, match="event 3: push is not an operation of this model"):
        objects.check(Columns(path), "register")
    columnar.write(path, [Operation("read", 1, 0, NEVER), Operation("read", 1, 2, 3)])
    with pytest.raises(BadHistory, match="does not fit the model"):
        objects.check(Columns(path), "log")


def test_other_consistencies_and_models(tmp_path: Path) -> None:
    """Sessions are judged from the same files; transactions and counts need events."""
    path = tmp_path / "history.parquet"
    operations = [
        Operation("write", 1, 0, 1),
        Operation("write", 2, 2, 3),
        Operation("read", 1, 4, 5, 1),
    ]
    columnar.write(path, operations)
    assert objects.check(Columns(path), "register").valid is False
    assert objects.check(Columns(path), "register", consistency="sequential").valid is True
    for name in ("list-append", "set-full"):
        with pytest.raises(BadHistory, match="needs events, not operations"):
            objects.check(Columns(path), name)


@pytest.mark.parametrize(
    ("column", "cells", "why"),
    [
        ("end", [1, 1], "ends before its call"),
        ("call", [0, None], "call is null"),
        ("key", [1, None], "key is null"),
    ],
)
def test_columns_that_are_wrong(column: str, cells: list[Any], why: str, tmp_path: Path) -> None:
    """A column with impossible cells is named."""
    path = tmp_path / "history.parquet"
    table = {"f": ["write", "read"], "call": [0, 2], "end": [1, 3], "value": [1, 1]}
    pq.write_table(pa.table({**table, column: cells}), path)
    with pytest.raises(BadHistory, match=why):
        objects.check(Columns(path), "register")


@pytest.mark.parametrize(
    ("elements", "doubts", "valid"), [(2, 0, False), (2, 1, False), (2, 2, True), (1, 1, True)]
)
@pytest.mark.parametrize("keyed", [False, True])
def test_a_dequeue_in_doubt_takes_one_element(
    elements: int, doubts: int, valid: bool, keyed: bool, tmp_path: Path
) -> None:
    """Where a dequeue found nothing, each element before it needs a dequeue of its own."""
    operations = [Operation("enqueue", each, 2 * each, 2 * each + 1) for each in range(elements)]
    operations += [Operation("dequeue", None, 10 + each, NEVER) for each in range(doubts)]
    operations += [Operation("dequeue", models.EMPTY, 20, 21), Operation("enqueue", 9, 22, 23)]
    if keyed:
        operations = [each._replace(value=[1, each.value]) for each in operations]
    path = tmp_path / "history.parquet"
    columnar.write(path, operations, keyed=keyed)
    model = Keyed(models.FifoQueue()) if keyed else models.FifoQueue()
    assert judging.judge(operations, model).valid is valid
    assert column_judging.judge(Columns(path), model).valid is valid
