"""Large histories are judged as small ones are, whatever the sizes of buckets and blocks."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from bench.oracles.transactions import LIST, draw
from checkers.isolation import (
    Options,
    Result,
    columnar,
    judge,
    large,
    list_append,
    reading,
    regions,
)
from checkers.isolation.transactions import Transactions
from checkers.kernels.rows import INFO, OK
from tests.checkers.isolation.histories import history

CONSISTENCY = (
    "strict-serializable",
    "serializable",
    "snapshot-isolation",
    "read-committed",
    "strong-session-serializable",
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small histories have several buckets, blocks and row groups."""
    monkeypatch.setattr(large, "ROWS", 3)
    monkeypatch.setattr(regions, "BLOCK", 2)
    monkeypatch.setattr(columnar, "ROWS", 4)


def drawn(number: int) -> tuple[list[Any], Options]:
    """Return the events of a random history, and options."""
    rng = Random(f"large/{number}")
    events = draw(LIST, rng, final=rng.random() < 0.3).events
    also = rng.choice(((), ("garbage-read",), ("dirty-update", "duplicate-elements")))
    return events, Options((rng.choice(CONSISTENCY),), also)


def comparable(result: Result) -> Result:
    """Return a result without what may differ: which of several witnesses of a cycle is shown, and
    the order of findings about the same transactions."""
    shown = {
        name: sorted(
            repr((len(each.steps), [step.kind for step in each.steps]) if each.steps else each)
            for each in some
        )
        for name, some in result.anomalies.items()
    }
    return replace(result, anomalies=shown)  # type: ignore[arg-type]


def test_random_histories(tmp_path: Path) -> None:
    """A file is judged as its events are."""
    path = tmp_path / "history.parquet"
    seen = set()
    for number in range(120):
        events, options = drawn(number)
        columnar.save(path, reading.lists(events))
        whole = judge(events, "list-append", options)
        seen.add(whole.valid)
        parts = large.judge(*columnar.read(path), options)
        assert comparable(parts) == comparable(whole), f"history {number}"
    assert seen == {True, False, "unknown"}


def test_an_element_that_is_appended_twice(tmp_path: Path) -> None:
    """The history is not understood."""
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(history("x+1", "y+1", "x+1")))
    found = large.judge(*columnar.read(path), Options())
    assert (found.valid, found.unknown_because) == (
        "unknown",
        ("1 is appended to x more than once",),
    )


@pytest.mark.parametrize("proof", ["", "y=2"])
def test_too_many_dependencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proof: str) -> None:
    """Appends in doubt that no read shows are compared with all readers only if there are few; if
    there are many, one that happened makes the result unknown."""
    lines = ["x+1", *(["x=1"] * 4), "info x+2 y+2", "info x+3", *([proof] if proof else [])]
    path = tmp_path / "history.parquet"
    columnar.save(path, reading.lists(history(*lines)))
    monkeypatch.setattr(list_append, "PRODUCT_MAX", 3)
    monkeypatch.setattr(large, "ROWS", 1)
    found = large.judge(*columnar.read(path), Options(("serializable",)))
    assert found.valid == ("unknown" if proof else True)


def _txns(places: list[tuple[int, int, int]]) -> Transactions:
    """Return transactions by outcome, invocation and completion."""
    outcome, invoked, completed = (np.array(column) for column in zip(*places, strict=True))
    count = np.arange(len(places))
    return Transactions(count, count, outcome.astype(np.int8), invoked, completed)


def test_regions_end_where_nothing_leads_back() -> None:
    """A region is between two places that no dependency leads back over."""
    ends = [(np.array([0, 2, 3], np.int32), np.array([1, 1, 4], np.int32))]
    assert regions.begins(ends, 6).tolist() == [0, 1, 1, 3, 4, 5]


def test_transactions_in_doubt_have_the_place_of_their_invocation() -> None:
    """They may take effect before others that complete earlier."""
    txns = _txns([(OK, 1, 4), (OK, 2, 6), (INFO, 3, 9)])
    assert regions.positions(txns).tolist() == [4, 6, 3]
    assert regions.places(txns).order.tolist() == [2, 0, 1]
