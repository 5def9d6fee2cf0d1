"""Bugs that are planted in simulated servers show in the histories of the workloads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_impl import mutants
from broker_impl.zookeeper import watches
from broker_impl.zookeeper.tree import Change
from broker_impl.zookeeper.watches import Kind, WatchTable
from tests.workloads.zookeeper import lab

CALM: dict[str, dict[str, Any]] = {
    "zk-watches": {"options": {"persistent_p": 0.5, "write_p": 0.4}, "time_limit_s": 15.0},
    "zk-sessions": {"options": {"end_p": 0.2}, "time_limit_s": 15.0},
}
"""Small runs without faults."""


def run(tmp_path: Path, workload: str, servers: int) -> lab.Ran:
    return lab.ran(tmp_path, workload, servers, **CALM[workload])


@pytest.fixture
def planted(request: pytest.FixtureRequest) -> Iterator[str]:
    """Plants the bug that the test names."""
    mutants.plant([request.param])
    yield request.param
    mutants.removed()


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize(
    ("planted", "workload", "anomaly"),
    [
        ("zk-reply-before-event", "zk-watches", "zk-watch-missed"),
        ("zk-watch-fires-twice", "zk-watches", "zk-watch-repeated"),
        ("zk-session-expires-early", "zk-sessions", "zk-session-expired-early"),
        ("zk-session-ends-with-connection", "zk-sessions", "zk-session-expired-early"),
    ],
    indirect=["planted"],
)
def test_a_planted_bug_is_found(
    planted: str, workload: str, anomaly: str, servers: int, tmp_path: Path
) -> None:
    """A run without any fault shows the bug."""
    found = run(tmp_path, workload, servers)
    assert anomaly in found.anomalies
    assert found.verdict.valid is False


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("workload", sorted(CALM))
def test_the_same_run_without_a_bug_is_valid(workload: str, servers: int, tmp_path: Path) -> None:
    """The near miss: the same run, and no anomaly."""
    found = run(tmp_path, workload, servers)
    assert found.anomalies == {}
    assert found.verdict.valid is True
    assert found.verdict.unknown_because == ()


def keep_on_removal(table: Any, kinds: Any, path: str, watcher: Any) -> None:
    """Acknowledge the removal of a watch, and keep it."""


def test_a_persistent_watch_that_fires_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server removes it when it fires, so that later changes are missed."""
    monkeypatch.setattr(watches, "is_one_shot", lambda kind: True)
    found = run(tmp_path, "zk-watches", 1)
    assert {"zk-watch-missed", "zk-watch-vanished"} <= found.anomalies.keys()


def test_a_persistent_watch_that_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server acknowledges the removal, and goes on to report changes."""
    monkeypatch.setattr(WatchTable, "remove", keep_on_removal)
    found = run(tmp_path, "zk-watches", 1)
    assert found.anomalies.keys() == {"zk-watch-after-removal"}


def test_events_of_a_recursive_watch_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events of znodes below are sent with the next change only."""
    held: list[Change] = []
    trigger = WatchTable.trigger

    def late(table: Any, change: Change) -> Any:
        held.append(change)
        return trigger(table, held.pop(0)) if len(held) > 1 else []

    monkeypatch.setattr(WatchTable, "trigger", late)
    found = run(tmp_path, "zk-watches", 1)
    assert {"zk-watch-missed", "zk-watch-early"} & found.anomalies.keys()
    assert watches.is_one_shot(Kind.DATA)
