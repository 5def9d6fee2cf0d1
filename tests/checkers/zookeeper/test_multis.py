"""All parts of a multi are executed in one transaction, or none."""

import pytest

from checkers.zookeeper import multis
from tests.checkers.zookeeper.conftest import Script, names, stat

A, B = "/g/a", "/g/b"


def multi(script: Script, version: int, kind: str = "ok", mzxids: tuple[int, int] = (0, 0)) -> None:
    """A multi that writes both znodes."""
    zxids = [zxid or 10 + version for zxid in mzxids]
    parts = [["set", path, str(version), -1] for path in (A, B)]
    asked = {"path": "/g", "place": "/g", "parts": parts}
    results = [stat(version, zxid) for zxid in zxids]
    script.call(0, "multi", asked, {"results": results} if kind == "ok" else {}, kind)


def read(script: Script, path: str, version: int, zxid: int, process: int = 1) -> None:
    shown = {"data": str(version), "stat": stat(version, 10 + version), "zxid": zxid}
    script.call(process, "get", {"path": path, "place": "/g"}, shown)


def test_whole_multis() -> None:
    """Both znodes have each version from one transaction, and sessions see them together."""
    script = Script()
    multi(script, 1)
    multi(script, 2)
    read(script, A, 1, 11)
    read(script, B, 1, 11)
    read(script, A, 2, 12)
    read(script, B, 2, 12)
    assert list(multis.torn(script.history())) == []


def test_parts_have_different_transactions() -> None:
    """The answer shows two transactions for one multi."""
    script = Script()
    multi(script, 1, mzxids=(11, 12))
    assert names(list(multis.torn(script.history()))) == ["zk-torn-multi"]


@pytest.mark.parametrize(("process", "expected"), [(1, ["zk-torn-multi"]), (2, [])])
def test_a_part_is_seen(process: int, expected: list[str]) -> None:
    """A session reads the multi in one znode and then not in the other; another one may."""
    script = Script()
    multi(script, 1)
    multi(script, 2, "info")
    read(script, A, 2, 12)
    read(script, B, 1, 12, process)
    assert names(list(multis.torn(script.history()))) == expected


@pytest.mark.parametrize(("condition", "expected"), [(99, ["zk-unchecked-multi"]), (1, [])])
def test_a_condition_that_cannot_hold(condition: int, expected: list[str]) -> None:
    """No znode has a version above the number of writes."""
    script = Script()
    parts = [["set", A, "1", -1], ["check", B, condition]]
    asked = {"path": "/g", "place": "/g", "parts": parts}
    script.call(0, "multi", asked, {"results": [stat(1, 11), None]})
    assert names(list(multis.conditions(script.history()))) == expected


def test_a_rejected_multi() -> None:
    """The server may reject a multi with an impossible condition, and must."""
    script = Script()
    asked = {"path": "/g", "place": "/g", "parts": [["check", B, 99]]}
    script.call(0, "multi", asked, kind="fail", error="bad-version of part 0")
    assert list(multis.conditions(script.history())) == []
