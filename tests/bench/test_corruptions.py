"""A random correct history has no anomaly, and a corrupted one has one."""

import random
from pathlib import Path

import pytest

from bench import broker_model, corruptions
from bench.corruptions.work import Work
from checkers.verdict import Valid
from harness.app import check
from model import history
from model.op import Op


def judged(ops: list[Op], folder: Path) -> Valid:
    path = folder / "history.jsonl"
    history.write(path, ops)
    return check.judge(path, inline=True).valid


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_a_correct_history_is_valid(tmp_path: Path, first: int) -> None:
    """Correct histories are valid, with interleaved transactions, operations in doubt, gaps,
    deletions and readers that begin again."""
    for seed in range(first, first + 20):
        made = broker_model.history(random.Random(seed))
        assert judged(made.events, tmp_path) is True, f"seed {seed}"


@pytest.mark.parametrize("kind", corruptions.CORRUPTIONS, ids=lambda kind: kind.__name__)
def test_each_corruption_is_found(tmp_path: Path, kind: corruptions.Corruption) -> None:
    """Each kind of corruption is found in three histories that have a place for it."""
    found = 0
    for seed in range(300):
        rng = random.Random(seed)
        work = Work(broker_model.history(rng), rng)
        if kind(work):
            assert judged(work.ops, tmp_path) is False, f"seed {seed}"
            found += 1
            if found == 3:
                return
    raise AssertionError("no history has a place for it")


def test_a_seed_makes_the_same_history_again() -> None:
    """A seed makes the same history again, so that a miss can be examined."""
    once, again = (
        corruptions.corrupt(broker_model.history(random.Random(7)), random.Random(8), 3)
        for _ in range(2)
    )
    assert once == again
    assert len(once[1]) == 3
