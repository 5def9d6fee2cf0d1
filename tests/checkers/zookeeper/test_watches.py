"""A watch is notified once, and before its session sees the change."""

from typing import Any

import pytest

from checkers.zookeeper import watches
from tests.checkers.zookeeper.conftest import Script, names, stat

W = {"path": "/w"}


def read(
    script: Script,
    version: int | None,
    *,
    registered: int | None = None,
    events: list[list[Any]] | None = None,
    connection: int = 1,
) -> None:
    """A read, with the watch that it sets and the events that came with its answer."""
    shown: dict[str, Any] = {"data": None, "stat": None, "connection": connection}
    if version is not None:
        shown |= {"data": str(version), "stat": stat(version, 10 + version)}
    if registered is not None:
        shown["registered"] = registered
    if events:
        shown["events"] = events
    script.call(0, "get", W, shown)


def found(script: Script) -> list[str]:
    return names(list(watches.notifications(script.history())))


def test_an_event_before_the_change() -> None:
    """The event came before the read that shows the change, and the next watch waits."""
    script = Script()
    read(script, 1, registered=7)
    read(script, 1)
    read(script, 2, registered=8, events=[[7, "changed"]])
    read(script, 2)
    assert found(script) == []


@pytest.mark.parametrize("version", [2, None])
def test_no_event_before_the_change(version: int | None) -> None:
    """The read shows another state, and no event has arrived, even if it does later."""
    script = Script()
    read(script, 1, registered=7)
    read(script, version)
    read(script, version, events=[[7, "changed"]])
    assert found(script) == ["zk-watch-missed"]


def test_a_watch_that_is_lost_with_its_connection() -> None:
    """The library has reported that the watch is gone."""
    script = Script()
    read(script, 1, registered=7)
    read(script, 2, events=[[7, "none"]])
    assert found(script) == []


def test_an_event_comes_twice() -> None:
    """A one-shot watch fires once."""
    script = Script()
    read(script, 1, registered=7)
    read(script, 2, events=[[7, "changed"]])
    read(script, 3, events=[[7, "changed"]])
    assert found(script) == ["zk-watch-repeated"]


@pytest.mark.parametrize(("connection", "expected"), [(1, ["zk-watch-early"]), (2, [])])
def test_an_event_before_the_change_can_be_read(connection: int, expected: list[str]) -> None:
    """After the event, the same server shows the old state; another server may."""
    script = Script()
    read(script, 1, registered=7)
    script.call(0, "set", {"path": "/x", "data": "1"}, {
        "stat": stat(1, 30), "events": [[7, "changed"]], "connection": 1,
    })  # fmt: skip
    read(script, 1, connection=connection)
    assert found(script) == expected


def test_other_sessions_have_other_watches() -> None:
    """A change is missed only by the session that set the watch."""
    script = Script()
    read(script, 1, registered=7)
    script.call(1, "get", W, {"data": "2", "stat": stat(2, 12), "connection": 1})
    assert found(script) == []


@pytest.mark.parametrize(("path", "expected"), [("/w", ["zk-watch-missed"]), ("/x", [])])
@pytest.mark.parametrize("is_notified", [False, True])
def test_a_session_writes_what_it_watches(
    path: str, expected: list[str], is_notified: bool
) -> None:
    """The event comes before the answer to the session's own write."""
    script = Script()
    read(script, 1, registered=7)
    answer: dict[str, Any] = {"stat": stat(2, 12), "connection": 1}
    if is_notified:
        answer["events"] = [[7, "changed"]]
    script.call(0, "set", {"path": path, "data": "2"}, answer)
    assert found(script) == ([] if is_notified else expected)


def test_an_event_without_a_watch() -> None:
    """The library has received an event, and the session had no watch any more."""
    script = Script()
    script.call(0, "set", {"path": "/x", "data": "1"}, {
        "stat": stat(1, 30), "unasked": [["changed", "/w"]], "connection": 1,
    })  # fmt: skip
    assert found(script) == ["zk-watch-repeated"]
