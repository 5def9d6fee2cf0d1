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


@pytest.mark.parametrize(("events", "expected"), [([[7, "changed"]], []), (None, ["missed"])])
def test_the_reply_to_an_own_write_shows_the_change(
    events: list[list[Any]] | None, expected: list[str]
) -> None:
    """The event comes before that reply, or only after it."""
    script = Script()
    read(script, 1, registered=7)
    shown: dict[str, Any] = {"stat": stat(2, 12), "connection": 1}
    script.call(0, "set", {**W, "data": "2"}, {**shown, **({"events": events} if events else {})})
    read(script, 2, events=None if events else [[7, "changed"]])
    assert found(script) == [f"zk-watch-{each}" for each in expected]


@pytest.mark.parametrize(
    ("connection", "registered", "expected"),
    [(1, None, ["zk-watch-repeated"]), (2, None, []), (1, 8, [])],
)
def test_an_event_for_which_no_watch_is_set(
    connection: int, registered: int | None, expected: list[str]
) -> None:
    """The client has no watch on the znode any more, unless it has set another one."""
    script = Script()
    read(script, 1, registered=7)
    read(script, 2, registered=registered, events=[[7, "changed"]])
    shown = {"data": "", "stat": stat(0, 9), "connection": connection}
    script.call(0, "get", {"path": "/x"}, {**shown, "strays": [["changed", "/w", 13]]})
    assert found(script) == expected


def test_persistent_watches_are_judged_elsewhere() -> None:
    """Their registration sets no one-shot watch."""
    script = Script()
    script.call(0, "watch", {**W, "watch": 7}, {"registered": 7, "connection": 1})
    read(script, 2)
    assert found(script) == []
