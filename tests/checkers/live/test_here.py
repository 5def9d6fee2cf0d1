"""Batches show no anomaly in correct histories, and most of those that were planted in others."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import broker_model, corruptions
from checkers.expectations import Contract
from checkers.live.here import Here
from checkers.live.partition import FINAL
from harness.app import check
from harness.engine.tail import Tail
from model import history
from model.op import Op

LIVE = {name for name in FINAL if name != "crash"} | {"misrouted"}
"""Anomalies of records that a batch can show; a whole history names one of them better."""


def _shown(ops: Sequence[Op], path: Path, rng: random.Random) -> set[str]:
    """Return the anomalies of a history that is judged in random batches."""
    history.write(path, ops)
    tail, here, shown, at = Tail(), Here(), set[str](), 0
    for line in path.read_bytes().splitlines(keepends=True):
        tail.observe(history.decode(line), path, at, at + len(line))
        at += len(line)
        if rng.random() < 0.05:
            shown |= _judged(tail, here)
    return shown | _judged(tail, here)


def _judged(tail: Tail, here: Here) -> set[str]:
    looked = [here.judge(batch, Contract()) for batch in tail.batches()]
    assert not any(each.crashed for each in looked)
    return {seen.finding.anomaly for each in looked for seen in each.seen}


@pytest.mark.parametrize("seed", range(12))
def test_a_correct_history_shows_nothing(seed: int, tmp_path: Path) -> None:
    """Whatever is open, in doubt, aborted or deleted when a batch ends."""
    rng = random.Random(seed)
    ops, _ = corruptions.corrupt(broker_model.history(rng), rng, 0)
    assert _shown(ops, tmp_path / "history.jsonl", rng) == set()


def test_planted_anomalies_are_shown(tmp_path: Path) -> None:
    """A batch shows an anomaly only if the whole history has one; most corruptions are shown."""
    path = tmp_path / "history.jsonl"
    shown = judged = 0
    for seed in range(100, 116):
        rng = random.Random(seed)
        ops, _ = corruptions.corrupt(broker_model.history(rng), rng, 1)
        found = _shown(ops, path, rng)
        whole = check.judge(path, inline=True).anomalies
        if not whole:
            assert found == set(), f"seed {seed}"
        if LIVE & whole.keys():
            judged += 1
            shown += bool(found)
    assert judged >= 8
    assert shown >= 0.8 * judged
