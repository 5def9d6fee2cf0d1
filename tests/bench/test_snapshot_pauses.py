"""The measurement of pauses writes a whole snapshot, while a client writes."""

from pathlib import Path

import pytest

from bench import snapshot_pauses
from broker_impl.platform.os_disk import OsDisk
from broker_impl.zookeeper import snapshot_file
from broker_impl.zookeeper.store import Store


@pytest.mark.slow
async def test_writes_are_answered_while_a_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes are answered between slices, and everything is there after a restart."""
    monkeypatch.setattr(snapshot_file, "NODES_PER_SLICE", 250)
    longest, took, writes = await snapshot_pauses._measure(tmp_path, 3000, 50)
    assert writes > 10
    assert 0 <= longest < took
    [snapshot] = (tmp_path / "version-2").glob("snapshot.*")
    assert snapshot.name == f"snapshot.{3001:x}"
    names = Store(OsDisk(tmp_path)).recover().nodes["/"].children
    assert {f"late-{number}" for number in range(writes)} <= names.keys()
    assert len(names) == 3000 + writes + 1
