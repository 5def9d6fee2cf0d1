"""Histories are judged twice: each as its run ends, and all in one Spark job."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.verdict import Verdict
from harness.app.check import examine
from harness.app.search import batch_check
from model import history
from model.op import Op
from model.plan import Plan


def _history(*read: int) -> list[Op]:
    """Make a history of records acknowledged at offsets 0 and 1 and a poll of these values."""
    sent = [["send", "t-0", [0, 1]], ["send", "t-0", [1, 2]]]
    asked = [["send", "t-0", 1], ["send", "t-0", 2]]
    polled = [["poll", {"t-0": [[value - 1, value] for value in read]}]]
    rows = [
        (0, "invoke", "send", asked),
        (0, "ok", "send", sent),
        (1, "invoke", "assign", ["t-0"]),
        (1, "ok", "assign", ["t-0"]),
        (1, "invoke", "poll", [["poll"]]),
        (1, "ok", "poll", polled),
    ]
    return [
        Op(index=index, time_ns=index, process=process, type=kind, f=f, value=value)  # type: ignore[arg-type]
        for index, (process, kind, f, value) in enumerate(rows)
    ]


def _aside(place: Path, name: str, ops: list[Op]) -> Path:
    """Make the folder that a search keeps for the second judgement of a run with this history."""
    folder = place / f"run of {name}"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(Plan()))
    (folder / "invariants.jsonl").write_text('{"type":"watched","snapshots":1,"until_ns":9}\n')
    history.write(folder / "history.jsonl", ops)
    examine(folder, inline=True)
    batch_check.put_aside(folder, place / name)
    return place / name


@pytest.mark.prove
@pytest.mark.spark
def test_judgements_agree_or_are_told(spark: Any, tmp_path: Path) -> None:
    """Folders whose judgements agree are removed; others are kept and reported.

    Judgements may differ in the verdict or in the findings.
    """
    folders = [
        _aside(tmp_path, "good", _history(1, 2)),
        _aside(tmp_path, "lossy", _history(2)),
        _aside(tmp_path, "other-verdict", _history(1, 2)),
        _aside(tmp_path, "other-findings", _history(2)),
    ]
    lossy = msgspec.json.decode((folders[1] / "verdict.json").read_bytes(), type=Verdict)
    assert lossy.anomalies == {"lost-write": 1}
    (folders[2] / "verdict.json").write_bytes((folders[1] / "verdict.json").read_bytes())
    good = tmp_path / "run of good" / "findings.parquet"
    (folders[3] / "findings.parquet").write_bytes(good.read_bytes())
    told = batch_check.judge(folders, spark)
    assert told.histories == 4
    assert told.differ == tuple(map(str, folders[2:]))
    assert [folder.exists() for folder in folders] == [False, False, True, True]


def test_of_nothing_there_is_nothing_to_judge() -> None:
    """Without histories no Spark session is started."""
    assert batch_check.judge([]) == batch_check.BatchResult(histories=0, seconds=0.0, differ=())
