"""Random lives of a data directory lose nothing, and show a store that does."""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from bench.lives.__main__ import run
from broker_impl.zookeeper import snapshot, txn_log
from broker_impl.zookeeper.snapshot_file import SnapshotWriter
from broker_impl.zookeeper.store import FOLDER, Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.slow
def test_lives_lose_nothing() -> None:
    """Nothing acknowledged is lost, and every start succeeds or is refused for a cause."""
    counts: Counter[str] = Counter()
    assert run(range(1, 101), counts) == 0
    assert min(counts[kind] for kind in (
        "kills", "power losses", "failing syncs", "full disks", "truncations", "installations",
        "slices of snapshots", "answers from the log",
    )) > 20  # fmt: skip


def _append_without_sync(store: Any, proposals: Sequence[Proposal]) -> None:
    entries = txn_log.entries(proposals)
    if store._file is None:
        path = f"{FOLDER}/{txn_log.name(proposals[0].header.zxid)}"
        store._file = store._disk.open(path, create=True)
        entries = txn_log.HEADER + entries
    store._file.append([entries])
    store._since_snapshot += len(proposals)


def _settle_by_a_sync(store: Any, path: str, data: bytes) -> None:
    """Trust the page cache, although a sync may have failed before."""
    if data:
        file = store._disk.open(path)
        if file.size > len(data):
            file.truncate(len(data))
        file.fsync()
    else:
        store._disk.remove(path)
    store._disk.fsync_dir(FOLDER)


def _install_without_a_mark(store: Any, database: Database) -> None:
    """Keep the log, which may have transactions that the leader does not have (2832)."""
    store._end_file()
    store.stop_snapshot()
    store._disk.write(f"{FOLDER}/{snapshot.name(database.last_zxid)}", snapshot.encode(database))


def _step_without_sync(writer: Any) -> bool:
    writer._file.append([writer._encoder.slice(1000)])
    if writer._encoder.is_complete:
        writer._disk.rename(writer._path + ".partial", writer._path)
        writer._disk.fsync_dir(FOLDER)
    return bool(writer._encoder.is_complete)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "planted", "seeds"),
    [
        (Store, "append", _append_without_sync, range(1, 51)),
        (Store, "_settle", _settle_by_a_sync, range(60, 80)),
        (Store, "install", _install_without_a_mark, range(1, 51)),
        (SnapshotWriter, "step", _step_without_sync, range(1, 51)),
    ],
)
def test_a_planted_bug_is_found(
    owner: type, name: str, planted: object, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that breaks one rule of durability loses something within few lives."""
    monkeypatch.setattr(owner, name, planted)
    assert run(seeds, Counter()) > 0
