"""A session is given to no client without its password."""

import pytest

from checkers.zookeeper import intruders
from tests.checkers.zookeeper.conftest import Script, names


@pytest.mark.parametrize(
    ("kind", "granted", "expected"),
    [("ok", True, ["zk-session-stolen"]), ("ok", False, []), ("fail", True, [])],
)
def test_a_session_is_stolen(kind: str, granted: bool, expected: list[str]) -> None:
    """A server gave it away, refused, or did not answer."""
    script = Script()
    script.call(0, "intrude", {"place": "/s", "victim": 7}, {"granted": granted}, kind)
    assert names(list(intruders.stolen(script.history()))) == expected
