"""The writes of a znode have an order that explains every answer, or have none."""

from typing import Any

import pytest

from checkers.zookeeper import linear
from tests.checkers.zookeeper.conftest import Script, names, stat

R = {"path": "/r"}
FINAL = {**R, "sync": True, "final": True}


def create(script: Script, kind: str = "ok", error: str | None = None) -> None:
    script.call(0, "create", {**R, "data": "0"}, {"created": "/r"}, kind, error)


def wrote(script: Script, version: int, condition: int = -1) -> None:
    asked = {**R, "data": str(version), "version": condition}
    script.call(0, "set", asked, {"stat": stat(version, version + 5)})


def rejected(script: Script, f: str, error: str, **asked: Any) -> None:
    script.call(1, f, {**R, "data": "x", **asked}, kind="fail", error=error)


def judged(script: Script) -> list[str]:
    return names(list(linear.linearizable(script.history())))


def test_writes_in_order() -> None:
    """Creation, writes, rejections, deletion and the final read fit together."""
    script = Script()
    create(script)
    wrote(script, 1)
    rejected(script, "set", "bad-version", version=0)
    rejected(script, "create", "node-exists")
    wrote(script, 2, condition=1)
    script.call(0, "get", FINAL, {"data": "2", "stat": stat(2, 7)})
    script.call(0, "delete", {**R, "version": 2})
    rejected(script, "set", "no-node", version=-1)
    script.call(0, "get", FINAL, {"data": None, "stat": None})
    assert judged(script) == []


def test_a_version_is_skipped() -> None:
    """The second write made version 3, and no other write may have made version 2."""
    script = Script()
    create(script)
    wrote(script, 1)
    wrote(script, 3)
    assert judged(script) == ["zk-nonlinearizable"]


def test_a_write_in_doubt_explains_a_version() -> None:
    """A write without an answer may have made version 2."""
    script = Script()
    create(script)
    wrote(script, 1)
    script.call(1, "set", {**R, "data": "?", "version": -1}, kind="info", error="connection-loss")
    wrote(script, 3)
    assert judged(script) == []


@pytest.mark.parametrize(
    ("f", "error", "condition"),
    [("create", "node-exists", -1), ("set", "bad-version", 1), ("delete", "no-node", -1)],
)
def test_rejections_that_no_state_explains(f: str, error: str, condition: int) -> None:
    """A rejection is an observation: the znode exists, has another version, or is absent."""
    script = Script()
    if error != "node-exists":
        create(script)
        wrote(script, 1)
    rejected(script, f, error, version=condition)
    assert judged(script) == ["zk-nonlinearizable"]


def test_the_final_read_shows_another_version() -> None:
    """After the recovery, a read after ``sync`` shows the state after all writes."""
    script = Script()
    create(script)
    wrote(script, 1)
    script.call(0, "get", FINAL, {"data": "0", "stat": stat(0, 5)})
    assert judged(script) == ["zk-nonlinearizable"]


def test_other_reads_may_be_stale() -> None:
    """A read before the recovery takes no part, and neither does one without ``sync``."""
    script = Script()
    create(script)
    wrote(script, 1)
    for sync in (True, False):
        script.call(0, "get", {**R, "sync": sync}, {"data": "0", "stat": stat(0, 5)})
    assert judged(script) == []


def test_ephemeral_znodes_take_no_part() -> None:
    """Sessions delete ephemeral znodes, which no operation records."""
    script = Script()
    for _ in range(2):
        script.call(0, "create", {**R, "data": "0", "ephemeral": True}, {"created": "/r"})
    assert linear.count(script.history()) == 0
    create(script)
    assert judged(script) == []


def test_a_znode_is_created_twice() -> None:
    """Two creations without a deletion between them."""
    script = Script()
    create(script)
    create(script)
    assert judged(script) == ["zk-nonlinearizable"]
