"""The value of a counter is between what was added and what may have been."""

import pytest

from checkers.zookeeper import counters
from tests.checkers.zookeeper.conftest import Script, names, stat

C = {"path": "/c"}


def history(total: int, *, is_final: bool) -> Script:
    """Three additions of 1, 2 and 4: acknowledged, in doubt and rejected; and then a read."""
    script = Script()
    script.call(0, "add", {**C, "delta": 1}, {"total": 1, "stat": stat(1, 5)})
    script.call(1, "add", {**C, "delta": 2}, kind="info", error="connection-loss")
    script.call(2, "add", {**C, "delta": 4}, kind="fail", error="no-node")
    asked = {**C, "sync": True, "final": is_final}
    script.call(3, "read", asked, {"data": str(total), "stat": stat(2, 6)})
    return script


@pytest.mark.parametrize(
    ("total", "is_final", "is_wrong"),
    [
        (0, False, False),  # it may be stale
        (0, True, True),
        (1, True, False),
        (3, True, False),
        (4, False, True),
    ],
)
def test_bounds(total: int, is_final: bool, is_wrong: bool) -> None:
    """Only a final read has a lower bound; every read has an upper one."""
    found = names(list(counters.bounds(history(total, is_final=is_final).history())))
    assert found == ["zk-counter-out-of-bounds"] * is_wrong


def test_an_addition_that_begins_later_is_no_reason() -> None:
    """A value is bounded by the additions that were invoked before the read ended."""
    script = history(3, is_final=False)
    assert list(counters.bounds(script.history())) == []
    early = Script()
    early.call(0, "read", C, {"data": "1", "stat": stat(1, 5)})
    early.call(0, "add", {**C, "delta": 1}, {"total": 1, "stat": stat(1, 5)})
    assert names(list(counters.bounds(early.history()))) == ["zk-counter-out-of-bounds"]
