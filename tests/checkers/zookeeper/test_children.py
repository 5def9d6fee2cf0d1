"""Sequential names are never used twice, and lists of children show what was created."""

import pytest

from checkers.zookeeper import children
from tests.checkers.zookeeper.conftest import Script, names, stat

P = {"path": "/p/n-", "place": "/p", "data": "", "sequential": True}


def path(number: int) -> str:
    return f"/p/n-{number:010}"


def create(script: Script, number: int, kind: str = "ok", process: int = 0) -> None:
    """A creation with the zxid 10 + number."""
    answer = {"created": path(number), "zxid": 10 + number} if kind == "ok" else {}
    script.call(process, "create", P, answer, kind)


def listed(script: Script, numbers: list[int], seen: int, *, is_final: bool = False) -> list[str]:
    """What is found about a list by a session that has seen a zxid."""
    script.call(9, "get", {"path": "/x"}, {"data": None, "stat": None, "zxid": seen})
    asked = {"path": "/p", "place": "/p", "sync": True, "final": is_final}
    shown = [path(number).rpartition("/")[2] for number in numbers]
    script.call(9, "children", asked, {"children": shown, "stat": stat(0, 1), "zxid": seen})
    return names(list(children.lists(script.history())))


def test_a_number_is_used_twice() -> None:
    """Two creations return one name."""
    script = Script()
    create(script, 0)
    create(script, 0)
    assert "zk-sequence-reused" in names(list(children.sequences(script.history())))


def test_numbers_in_order() -> None:
    """Numbers may be left out, and concurrent creations may get theirs in any order."""
    script = Script()
    create(script, 0)
    first, second = script.invoke(0, "create", **P), script.invoke(1, "create", **P)
    script.complete(first, created=path(5))
    script.complete(second, created=path(2))
    assert list(children.sequences(script.history())) == []


def test_a_number_is_smaller_than_an_earlier_one() -> None:
    """The second creation began after the first one was acknowledged with a larger number."""
    script = Script()
    create(script, 5)
    create(script, 2)
    assert names(list(children.sequences(script.history()))) == ["zk-sequence-order"]


@pytest.mark.parametrize(
    ("seen", "is_final", "expected"),
    [(11, True, ["zk-lost-node"]), (11, False, ["zk-stale-list"]), (10, False, [])],
)
def test_a_list_lacks_a_znode(seen: int, is_final: bool, expected: list[str]) -> None:
    """The znode 1 was acknowledged, and the list shows 0 only."""
    script = Script()
    create(script, 0)
    create(script, 1)
    assert listed(script, [0], seen, is_final=is_final) == expected


@pytest.mark.parametrize("kind", ["ok", "info"])
def test_a_list_lacks_a_znode_that_may_be_deleted(kind: str) -> None:
    """A deletion, even in doubt, explains that the znode is not in the list."""
    script = Script()
    create(script, 0)
    script.call(1, "delete", {"path": path(0), "place": "/p"}, {"zxid": 12}, kind)
    assert listed(script, [], 12, is_final=True) == []


@pytest.mark.parametrize(
    ("kind", "expected"), [("ok", ["zk-resurrected-node"]), ("info", []), ("fail", [])]
)
def test_a_list_shows_a_deleted_znode(kind: str, expected: list[str]) -> None:
    """Only an acknowledged deletion must have happened."""
    script = Script()
    create(script, 0)
    script.call(1, "delete", {"path": path(0), "place": "/p"}, {"zxid": 12}, kind)
    assert listed(script, [0], 12) == expected


@pytest.mark.parametrize(("doubts", "expected"), [(0, ["zk-phantom-node"]), (1, [])])
def test_a_list_shows_an_unknown_znode(doubts: int, expected: list[str]) -> None:
    """A creation in doubt explains one name that no answer has."""
    script = Script()
    create(script, 0)
    for _ in range(doubts):
        create(script, 1, "info")
    assert listed(script, [0, 1], 10) == expected


def test_ephemeral_znodes_take_no_part() -> None:
    """Ephemeral znodes are deleted by the ends of their sessions."""
    script = Script()
    asked = {**P, "ephemeral": True}
    script.call(0, "create", asked, {"created": path(0)})
    assert listed(script, [], 20, is_final=True) == []


@pytest.mark.parametrize(
    ("cversions", "czxids", "expected"),
    [((3, 3), (1, 1), ["zk-list-divergence"]), ((3, 4), (1, 1), []), ((3, 3), (1, 9), [])],
)
def test_lists_of_one_version(
    cversions: tuple[int, int], czxids: tuple[int, int], expected: list[str]
) -> None:
    """Two lists differ: of one version of a parent, of two versions, or of two parents."""
    script = Script()
    for number, (cversion, czxid) in enumerate(zip(cversions, czxids, strict=True)):
        shown = [f"n-{number:010}"]
        seen = {"children": shown, "stat": stat(0, 1, czxid, cversion=cversion)}
        for _ in range(2):
            script.call(0, "children", P, seen)
    found = names(list(children.versions(script.history())))
    assert found == [each for each in expected for _ in range(2)], "for each later list"
