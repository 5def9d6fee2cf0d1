"""Generated histories are valid, planted ones show their anomalies alone, in both formats."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.spark import generate, histories
from bench.spark.histories import Spec
from checkers import history_file
from checkers.verdict import Verdict
from harness.app import check

OPERATIONS = 10_000
KINDS = sorted(histories.PLANTED)


def judged(spec: Spec, folder: Path) -> Verdict:
    path = folder / "history.parquet"
    generate.write(spec, path)
    return check.judge(path, inline=True)


def read(path: Path) -> pa.Table:
    return history_file.read(path, lambda done: None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape",
    [
        Spec("", OPERATIONS),
        Spec("", OPERATIONS, hot=0.9),
        Spec("", OPERATIONS, partitions=64, seed=3),
        Spec("", 150, partitions=8),
    ],
    ids=["even", "hot", "wide", "tiny"],
)
def test_a_history_is_valid(kind: str, shape: Spec, tmp_path: Path) -> None:
    """It has the number of operations that was asked for, and all partitions are read."""
    verdict = judged(replace(shape, kind=kind), tmp_path)
    assert verdict.valid is True
    assert verdict.evidence["ops"] == shape.operations
    assert verdict.evidence["keys_caught_up"] == shape.partitions


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hot", [0.0, 0.9])
def test_planted_anomalies_are_found(kind: str, hot: float, tmp_path: Path) -> None:
    """The verdict names each planted anomaly as often as it is planted, and no other."""
    verdict = judged(Spec(kind, OPERATIONS, hot=hot, planted=True), tmp_path)
    assert verdict.valid is False
    assert verdict.anomalies == histories.PLANTED[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_both_formats_hold_the_same_history(kind: str, tmp_path: Path) -> None:
    """What is read does not depend on the format; a Parquet file has a row group per block."""
    spec = Spec(kind, OPERATIONS, planted=True)
    for name in ("history.jsonl", "history.parquet"):
        generate.write(spec, tmp_path / name)
    lines, rows = (read(tmp_path / name) for name in ("history.jsonl", "history.parquet"))
    assert lines.to_pylist() == rows.to_pylist()
    assert pq.read_metadata(tmp_path / "history.parquet").num_row_groups == 3


def test_blocks_continue_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets, values and the index go on where the previous block ended."""
    monkeypatch.setattr(histories, "CYCLES_OF_BLOCK", 100)
    spec = Spec("transactions", OPERATIONS, planted=True)
    verdict = judged(spec, tmp_path)
    assert verdict.anomalies == histories.PLANTED["transactions"]
    index = read(tmp_path / "history.parquet")["index"]
    assert pc.all(pc.equal(index, pa.array(range(2 * OPERATIONS)))).as_py()


def test_one_partition_is_hot(tmp_path: Path) -> None:
    """The share of a hot partition is that of the operations; without it partitions are even."""
    shares = []
    for hot in (0.0, 0.9):
        generate.write(Spec("idempotent", OPERATIONS, hot=hot), tmp_path / "history.parquet")
        micro_ops = read(tmp_path / "history.parquet")["value"].combine_chunks().flatten()
        sent = micro_ops.field("key").filter(pc.equal(micro_ops.field("op"), "send"))
        shares.append(pc.mean(pc.equal(sent, "orders-0")).as_py())
    assert shares[0] < 0.05
    assert 0.85 < shares[1] < 0.95


def test_too_few_operations_are_refused() -> None:
    """A history must have a cycle for each planted anomaly."""
    with pytest.raises(ValueError, match="100 operations are too few"):
        next(histories.blocks(Spec("transactions", 100, planted=True)))
