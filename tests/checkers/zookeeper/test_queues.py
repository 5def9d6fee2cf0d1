"""Elements of a queue are taken once, and none is lost."""

import pytest

from checkers.zookeeper import queues
from tests.checkers.zookeeper.conftest import Script, names, stat

Q = {"path": "/q"}


def append(script: Script, number: int, kind: str = "ok") -> None:
    created = {"created": f"/q/n-{number:010}"} if kind == "ok" else {}
    script.call(0, "enqueue", {**Q, "data": str(number), "sequential": True}, created, kind)


def take(script: Script, number: int | None, kind: str = "ok", process: int = 1) -> None:
    path = None if number is None else f"/q/n-{number:010}"
    data = None if number is None else str(number)
    script.call(process, "dequeue", Q, {"deleted": path, "data": data}, kind)


def end(script: Script, *numbers: int) -> None:
    shown = [f"n-{number:010}" for number in numbers]
    asked = {**Q, "sync": True, "final": True}
    script.call(9, "children", asked, {"children": shown, "stat": stat(0, 1)})


def test_every_element_is_taken_once() -> None:
    """Elements are taken in any order, and an empty queue gives none."""
    script = Script()
    append(script, 0)
    append(script, 1)
    take(script, 1)
    take(script, 0)
    take(script, None)
    end(script)
    history = script.history()
    assert list(queues.taken(history)) == []
    assert list(queues.lost(history)) == []


@pytest.mark.parametrize(("kind", "expected"), [("ok", ["zk-duplicate-dequeue"]), ("info", [])])
def test_an_element_is_taken_twice(kind: str, expected: list[str]) -> None:
    """Two clients were acknowledged; one in doubt may not have deleted it."""
    script = Script()
    append(script, 0)
    take(script, 0, kind)
    take(script, 0, process=2)
    assert names(list(queues.taken(script.history()))) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(None, ["zk-phantom-element"]), ("fail", ["zk-phantom-element"]), ("info", []), ("ok", [])],
)
def test_an_element_comes_from_nowhere(kind: str | None, expected: list[str]) -> None:
    """No client appended the element, or its creation was rejected."""
    script = Script()
    if kind is not None:
        append(script, 0, kind)
    take(script, 0)
    assert names(list(queues.taken(script.history()))) == expected


def test_an_element_is_lost() -> None:
    """No client took element 1, and the queue does not have it at the end."""
    script = Script()
    append(script, 0)
    append(script, 1)
    append(script, 2)
    take(script, 0)
    end(script, 2)
    (found,) = queues.lost(script.history())
    assert (found.anomaly, found.ops) == ("zk-lost-element", (3, 9))
    assert list(queues.lost(script.history(recovered=False))) == []


@pytest.mark.parametrize("is_named", [True, False])
def test_an_element_that_may_have_been_taken(is_named: bool) -> None:
    """A client in doubt may have taken it, even if it is unknown which one it wanted."""
    script = Script()
    append(script, 0)
    if is_named:
        take(script, 0, "info")
    else:
        script.invoke(1, "dequeue", **Q)
    end(script)
    assert list(queues.lost(script.history())) == []
