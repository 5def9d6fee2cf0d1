"""The files of a lake: additions are atomic, repeated ones change nothing, files stay few."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.app.lake import schema, store
from harness.app.lake.store import FANOUT, Lake
from harness.app.refused import Refused
from tests.harness.app.lake.made_runs import ids


def row(name: str, verdict: str | None = "valid", **more: Any) -> dict[str, Any]:
    return {"version": schema.VERSION, "id": name, "verdict": verdict, "missing": [], **more}


def files(lake: Lake) -> list[str]:
    return sorted(path.name for path in lake.folder.glob("*.parquet"))


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    """A run that is there is not added again, neither alone nor among others."""
    lake = Lake.create(tmp_path / "lake")
    assert lake.add([row("a"), row("b"), row("b")]) == 2
    before = files(lake)
    assert lake.add([row("a"), row("b")]) == 0
    assert files(lake) == before
    assert lake.add([row("b"), row("c")]) == 1
    assert ids(lake) == ["a", "b", "c"]


@pytest.mark.parametrize("early", [None, "failed"])
def test_a_verdict_replaces_none(early: str | None, tmp_path: Path) -> None:
    """A run that was judged after it was added has its verdict; its neighbours stay as they are."""
    lake = Lake.create(tmp_path / "lake")
    lake.add([row("a", "invalid", acked=5), row("b", early)])
    assert lake.add([row("b", early)]) == 0
    assert lake.add([row("b", "unknown")]) == 1
    assert lake.add([row("b", "valid"), row("a", "valid")]) == 0
    with lake.reading() as paths:
        rows = store.read(paths, ["id", "verdict", "acked"]).to_pylist()
    assert sorted((r["id"], r["verdict"], r["acked"]) for r in rows) == [
        ("a", "invalid", 5),
        ("b", "unknown", None),
    ]
    assert lake.judged() == {"a", "b"}


@pytest.mark.slow
def test_files_stay_few(tmp_path: Path) -> None:
    """However many runs are added one by one, the number of files grows with its logarithm."""
    lake = Lake.create(tmp_path / "lake")
    count = FANOUT * FANOUT + 3
    for number in range(count):
        lake.add([row(f"{number:04}")])
    assert len(ids(lake)) == count
    assert len(files(lake)) == 1 + 3


def test_a_reader_keeps_its_files(tmp_path: Path) -> None:
    """Files that a reader uses are removed by an addition after it, and never read twice."""
    lake = Lake.create(tmp_path / "lake")
    for number in range(FANOUT - 1):
        lake.add([row(str(number))])
    with lake.reading() as paths:
        lake.add([row("last")])
        assert len(store.read(paths, ["id"])) == FANOUT - 1
        assert len(files(lake)) == FANOUT + 1
        assert len(ids(lake)) == FANOUT
    lake.add([row("next")])
    assert len(files(lake)) == 2
    assert len(ids(lake)) == FANOUT + 1


KILLED = """
import os, sys
from pathlib import Path
from harness.app.lake import store
at, folder = sys.argv[1:]
before = Path.{method}
def method(self, *args, **more):
    if {where}:
        os._exit(9)
    return before(self, *args, **more)
Path.{method} = method
store.Lake.open(Path(folder)).add([{{"id": "last", "verdict": "valid"}}])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "where", "there"),
    [("replace", "True", False), ("unlink", "self.name.startswith('rows-')", True)],
    ids=["before the file has its name", "before replaced files are removed"],
)
def test_a_killed_addition(method: str, where: str, there: bool, tmp_path: Path) -> None:
    """A process that is killed while it adds leaves a lake without its rows, or with all of them.

    The next addition succeeds and completes what was left.
    """
    lake = Lake.create(tmp_path / "lake")
    for number in range(FANOUT - 1):
        lake.add([row(str(number))])
    script = KILLED.format(method=method, where=where)
    done = subprocess.run([sys.executable, "-c", script, "1", str(lake.folder)], check=False)
    assert done.returncode == 9
    assert len(ids(lake)) == FANOUT - 1 + there
    assert ("last" in ids(lake)) is there
    lake.add([row("last"), row("next")])
    assert len(ids(lake)) == FANOUT + 1 == len(set(ids(lake)))
    assert len(files(lake)) <= 2


def test_a_lake_of_version_0_is_read(tmp_path: Path) -> None:
    """Columns and fields that an earlier version lacks are null, before and after a compaction."""
    lake = Lake.create(tmp_path / "lake")
    fault = pa.struct([("fault_id", pa.int64()), ("fault", pa.string())])
    old = pa.schema(
        [("id", pa.string()), ("verdict", pa.string()), ("fault_list", pa.list_(fault))]
    )
    rows = [{"id": "old", "verdict": "valid", "fault_list": [{"fault_id": 1, "fault": "kill"}]}]
    pq.write_table(pa.Table.from_pylist(rows, schema=old), lake.folder / "rows-00000001.parquet")
    assert [file.version for file in lake.stored()] == [0]
    for number in range(FANOUT):
        lake.add([row("old"), row(str(number))])
    assert [file.version for file in lake.stored()] == [schema.VERSION] * 2
    with lake.reading() as paths:
        found = store.read(paths, ["id", "acked", "fault_list"]).to_pylist()
    (of_old,) = [each for each in found if each["id"] == "old"]
    assert of_old["acked"] is None
    assert of_old["fault_list"][0]["fault"] == "kill"
    assert of_old["fault_list"][0]["healed_s"] is None


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    """A file of a later version is not read, because its columns may mean something else."""
    lake = Lake.create(tmp_path / "lake")
    metadata = {b"faultline.lake.version": b"99"}
    table = pa.table({"id": ["x"]}).replace_schema_metadata(metadata)
    pq.write_table(table, lake.folder / "rows-00000001.parquet")
    with pytest.raises(Refused, match="version 99"):
        lake.add([row("a")])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """A file that is not Parquet is named, and nothing is added or removed."""
    lake = Lake.create(tmp_path / "lake")
    (lake.folder / "rows-00000001.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(Refused, match=r"rows-00000001\.parquet cannot be read"):
        lake.add([row("a")])
    assert files(lake) == ["rows-00000001.parquet"]


def test_only_lakes_are_opened(tmp_path: Path) -> None:
    """A folder with other files is no lake; nor is a missing one, a file, or another lake.json."""
    with pytest.raises(Refused, match="there is no lake"):
        Lake.open(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="not empty"):
        Lake.create(tmp_path)
    with pytest.raises(Refused, match="not a folder"):
        Lake.create(tmp_path / "file")
    (tmp_path / "lake.json").write_text("{")
    with pytest.raises(Refused, match="is not the file of a lake"):
        Lake.open(tmp_path)
