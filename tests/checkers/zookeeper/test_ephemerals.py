"""An ephemeral znode exists exactly as long as its session."""

import pytest

from checkers.zookeeper import ephemerals
from tests.checkers.zookeeper.conftest import Script, names, stat

E = {"path": "/e/1", "place": "/e"}
ABSENT = {"data": None, "stat": None}
PRESENT = {"data": "", "stat": stat(0, 5, czxid=5)}


def made() -> Script:
    """Process 0 has created an ephemeral znode."""
    script = Script()
    asked = {**E, "data": "", "ephemeral": True}
    script.call(0, "create", asked, {"created": "/e/1", "zxid": 5})
    return script


def works(script: Script, kind: str = "ok") -> None:
    """Process 0 writes, which shows that its session is alive."""
    asked = {"path": "/e/2", "data": "", "ephemeral": True}
    script.call(0, "create", asked, {"created": "/e/2"}, kind)


@pytest.mark.parametrize(
    ("process", "seen", "kind", "expected"),
    [
        (0, 5, "ok", ["zk-ephemeral-lost"]),
        (1, 5, "ok", ["zk-ephemeral-lost"]),
        (1, 4, "ok", []),  # the reader may be behind
        (0, 5, "info", []),  # the session may have expired
    ],
)
def test_a_znode_vanishes(process: int, seen: int, kind: str, expected: list[str]) -> None:
    """The znode is absent in a read, and its session is alive later."""
    script = made()
    script.call(process, "get", {"path": "/x"}, {**ABSENT, "zxid": seen})
    script.call(process, "get", E, {**ABSENT, "zxid": seen})
    works(script, kind)
    assert names(list(ephemerals.lost(script.history()))) == expected


def test_a_znode_that_a_client_deletes() -> None:
    """A deletion in doubt explains that the znode is absent."""
    script = made()
    script.call(1, "delete", E, kind="info", error="connection-loss")
    script.call(0, "get", E, {**ABSENT, "zxid": 6})
    works(script)
    assert list(ephemerals.lost(script.history())) == []


@pytest.mark.parametrize(
    ("seen", "kind", "expected"),
    [(9, "ok", ["zk-ephemeral-outlived"]), (8, "ok", []), (9, "info", [])],
)
def test_a_znode_outlives_its_session(seen: int, kind: str, expected: list[str]) -> None:
    """The reader has seen the zxid of the end of the session, and the znode still is there."""
    script = made()
    script.call(0, "close", {"place": "/e"}, {"zxid": 9}, kind)
    script.call(1, "get", {"path": "/x"}, {**ABSENT, "zxid": seen})
    script.call(1, "get", E, {**PRESENT, "zxid": 9})
    assert names(list(ephemerals.outlived(script.history()))) == expected


def test_an_end_without_a_transaction() -> None:
    """A reader cannot have seen an end whose zxid is not known."""
    script = made()
    script.call(0, "close", {"place": "/e"}, {"zxid": 0})
    script.call(1, "get", E, {**PRESENT, "zxid": 9})
    assert list(ephemerals.outlived(script.history())) == []


@pytest.mark.parametrize(
    ("recovered", "expected"), [(True, ["zk-ephemeral-outlived"]), (False, [])]
)
def test_a_znode_is_left_at_the_end(recovered: bool, expected: list[str]) -> None:
    """When every session must have expired, no ephemeral znode is left."""
    script = made()
    script.call(0, "abandon", {"place": "/e"}, kind="info", error="crash")
    listing = {"path": "/e", "place": "/e", "sync": True}
    shown = {"children": ["1"], "stat": stat(0, 1)}
    script.call(1, "children", listing, shown)
    history = script.history(recovered=recovered)
    assert list(ephemerals.outlived(history)) == []
    script.call(1, "children", {**listing, "final": True, "expired": True}, shown)
    history = script.history(recovered=recovered)
    assert names(list(ephemerals.outlived(history))) == expected
