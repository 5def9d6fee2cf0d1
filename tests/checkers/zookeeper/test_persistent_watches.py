"""A persistent watch reports each change once, in order, and before its session sees it."""

from typing import Any

import pytest

from checkers.zookeeper import persistent_watches
from tests.checkers.zookeeper.conftest import Script, names, stat

P = {"path": "/p"}


class Session:
    """A session with a persistent watch on ``/p``, and what it is answered."""

    def __init__(self, *, recursive: bool = False) -> None:
        self.script = Script()
        self.connection = 1
        self.call("watch", {**P, "watch": 7, "recursive": recursive}, {"registered": 7})

    def call(
        self,
        f: str,
        asked: dict[str, Any],
        answer: dict[str, Any],
        *changes: list[Any],
        strays: list[list[Any]] | None = None,
        **more: Any,
    ) -> None:
        """Add a call; ``changes`` are the events that came before its answer."""
        value = {"connection": self.connection, **answer}
        if changes:
            value["changes"] = [[7, *change] for change in changes]
        if strays:
            value["strays"] = strays
        self.script.call(0, f, asked, value, **more)

    def read(self, version: int | None, *changes: list[Any], path: str = "/p", **more: Any) -> None:
        """A read that shows this version."""
        shown: dict[str, Any] = {"data": None, "stat": None}
        if version is not None:
            czxid, cversion = more.pop("czxid", 1), more.pop("cversion", 0)
            shown = {"data": "", "stat": stat(version, 10 + version, czxid, cversion=cversion)}
        self.call("get", {"path": path}, shown, *changes, **more)

    def wrote(self, version: int, *changes: list[Any]) -> None:
        """An own write that makes this version."""
        self.call("set", {**P, "data": ""}, {"stat": stat(version, 10 + version)}, *changes)

    def found(self) -> list[str]:
        return names(list(persistent_watches.notifications(self.script.history())))


def changed(zxid: int, path: str = "/p") -> list[Any]:
    return ["changed", path, zxid]


def test_an_event_for_each_change() -> None:
    """Two changes have two events, and the watch stays set."""
    session = Session()
    session.read(1)
    session.read(3, changed(12), changed(13))
    session.wrote(4, changed(14))
    session.read(4)
    assert session.found() == []
    assert persistent_watches.count(session.script.history()) == 1


@pytest.mark.parametrize("zxid", [13, -1])
def test_an_event_is_missing(zxid: int) -> None:
    """The reply shows two changes, and one event has come, with its transaction or without."""
    session = Session()
    session.read(1)
    session.read(3, changed(zxid))
    session.read(3)
    assert session.found() == ["zk-watch-missed"]


def test_a_watch_that_is_removed_by_its_first_event() -> None:
    """The first change is reported, no other one is."""
    session = Session()
    session.read(1)
    session.read(2, changed(12))
    session.read(3)
    assert session.found() == ["zk-watch-missed"]


def test_the_reply_to_an_own_write_comes_before_its_event() -> None:
    """The event follows the reply that shows the change; that is found once."""
    session = Session()
    session.read(1)
    session.wrote(2)
    session.read(2, changed(12))
    session.read(2)
    session.read(3)
    assert session.found() == ["zk-watch-missed", "zk-watch-missed"]


def test_changes_between_two_connections_are_not_reported() -> None:
    """The watch is set again, but has missed what happened meanwhile."""
    session = Session()
    session.read(1)
    session.connection = 2
    session.read(3)
    session.read(4, changed(14))
    assert session.found() == []
    session.read(5)
    assert session.found() == ["zk-watch-missed"]


def test_an_event_before_the_change_can_be_read() -> None:
    """The reply shows fewer changes than were reported."""
    session = Session()
    session.read(1)
    session.read(1, changed(12))
    assert session.found() == ["zk-watch-early"]


def test_an_event_comes_twice() -> None:
    """Both have the same transaction."""
    session = Session()
    session.read(1)
    session.read(2, changed(12), changed(12))
    assert session.found() == ["zk-watch-repeated"]


def test_children_of_a_recursive_watch() -> None:
    """Creation, changes and deletion of a znode below are reported, in this order."""
    session = Session(recursive=True)
    session.read(None, path="/p/c")
    created, below = ["created", "/p/c", 20], changed(21, "/p/c")
    session.read(1, created, below, path="/p/c", czxid=20)
    session.read(None, ["deleted", "/p/c", 22], path="/p/c")
    again = ["created", "/p/c", 24]
    session.read(0, ["created", "/p/c", 23], ["deleted", "/p/c", 23], again, path="/p/c", czxid=24)
    assert session.found() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], ["zk-watch-missed"]),
        ([["created", "/p/c", 21]], ["zk-watch-order"]),
        ([["deleted", "/p/c", 20], ["created", "/p/c", 21]], []),
        ([["deleted", "/p/c", 20]], ["zk-watch-missed"]),
        ([["deleted", "/p/c", 20], ["changed", "/p/c", 21]], ["zk-watch-order"]),
    ],
)
def test_another_znode_under_the_same_path(changes: list[Any], expected: list[str]) -> None:
    """The versions are equal, but the znode was deleted and created again."""
    session = Session(recursive=True)
    session.read(0, path="/p/c", czxid=10)
    session.read(0, *changes, path="/p/c", czxid=21)
    assert session.found() == expected


def test_a_deletion_is_reported_and_the_znode_is_still_there() -> None:
    """The same znode is read after the event of its deletion."""
    session = Session(recursive=True)
    session.read(0, path="/p/c", czxid=10)
    session.read(0, ["deleted", "/p/c", 20], path="/p/c", czxid=10)
    assert session.found() == ["zk-watch-early"]


def test_own_creations_and_deletions() -> None:
    """Their replies show the state, too."""
    session = Session(recursive=True)
    path = "/p/c"
    session.call("create", {"path": path, "data": ""}, {"created": path})
    session.call("delete", {"path": path}, {}, ["deleted", path, 21])
    session.call("create", {"path": path, "data": ""}, {"created": path})
    assert session.found() == ["zk-watch-missed"]


@pytest.mark.parametrize(
    ("cversion", "expected"),
    [(1, []), (2, ["zk-watch-missed"]), (0, ["zk-watch-early"])],
)
def test_changes_of_the_list_of_children(cversion: int, expected: list[str]) -> None:
    """A persistent watch reports each; ``cversion`` counts them."""
    session = Session()
    session.read(1, cversion=0)
    session.read(1, ["child", "/p", 20], cversion=cversion)
    assert session.found() == expected


def test_a_recursive_watch_does_not_report_lists_of_children() -> None:
    """It reports the children themselves."""
    session = Session(recursive=True)
    session.read(1, cversion=0)
    session.read(1, cversion=3)
    assert session.found() == []


def test_events_against_the_order_of_transactions() -> None:
    """The order holds among all znodes below the watch."""
    session = Session(recursive=True)
    session.read(1, changed(14, "/p/c"), changed(13, "/p/d"))
    assert session.found() == ["zk-watch-order"]
    unknown = Session(recursive=True)
    unknown.read(1, changed(14, "/p/c"), changed(-1, "/p/d"), changed(14, "/p/e"))
    assert unknown.found() == []


@pytest.mark.parametrize(("connection", "expected"), [(1, True), (2, False)])
def test_an_event_after_the_removal(connection: int, expected: bool) -> None:
    """The server has answered that the watch is removed, on this connection."""
    session = Session()
    session.call("unwatch", P, {"removed": 7}, changed(12))
    session.connection = connection
    session.read(3, strays=[changed(13)])
    assert session.found() == (["zk-watch-after-removal"] if expected else [])


def test_a_watch_that_is_set_again_after_its_removal() -> None:
    """Nothing is compared across the gap, and nothing counts as removed."""
    session = Session()
    session.read(1)
    session.call("unwatch", P, {"removed": 7})
    session.call("watch", {**P, "watch": 9}, {"registered": 9})
    session.read(5, strays=[changed(15)])
    assert session.found() == []


def test_a_removal_of_a_watch_that_the_server_does_not_have() -> None:
    """The server has lost it, unless it was removed before."""
    session = Session()
    session.call("unwatch", P, {}, kind="fail", error="no-watcher")
    session.call("unwatch", P, {}, kind="fail", error="no-watcher")
    assert session.found() == ["zk-watch-vanished"]


def test_a_removal_without_an_answer_leaves_the_watch() -> None:
    """The client sets it again on the next connection."""
    session = Session()
    session.call("unwatch", P, {}, kind="fail", error="connection-loss")
    session.connection = 2
    session.read(1)
    session.read(2)
    assert session.found() == ["zk-watch-missed"]


def test_other_znodes_are_not_watched() -> None:
    """A watch that is not recursive covers its own znode only."""
    session = Session()
    session.read(1, path="/p/c")
    session.read(2, path="/p/c")
    session.read(1, path="/pq")
    session.read(2, path="/pq")
    assert session.found() == []


def test_an_answer_that_is_not_the_clients() -> None:
    """An operation that was given up has neither a connection nor events."""
    session = Session()
    session.read(1)
    session.script.call(0, "get", P, {"zxid": 0}, kind="info", error="timeout")
    assert session.found() == []
