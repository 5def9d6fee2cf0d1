"""No client passes a barrier before as many have tried to enter as it needs."""

import pytest

from checkers.zookeeper import barriers
from tests.checkers.zookeeper.conftest import Script, names


@pytest.mark.parametrize(("others", "expected"), [(1, ["zk-early-barrier"]), (2, [])])
def test_a_client_passes(others: int, expected: list[str]) -> None:
    """A barrier for three clients is passed when two or three have tried to enter."""
    script = Script()
    asked = {"path": "/b/0", "place": "/b", "size": 3}
    first = script.invoke(0, "enter", **asked, member="m0")
    for process in range(1, others + 1):
        script.invoke(process, "enter", **asked, member=f"m{process}")
    script.complete(first)
    assert names(list(barriers.early(script.history()))) == expected


def test_a_client_that_gives_up_passes_nothing() -> None:
    """A client that has waited for too long leaves the barrier."""
    script = Script()
    asked = {"path": "/b/0", "place": "/b", "size": 3, "member": "m0"}
    script.call(0, "enter", asked, kind="fail", error="timeout")
    assert list(barriers.early(script.history())) == []
