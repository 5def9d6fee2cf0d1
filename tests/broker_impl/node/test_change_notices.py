"""Several notifications may arrive by one event."""

import pytest

from broker_impl.node.change_notices import unread


@pytest.mark.parametrize(
    ("names", "known", "found"),
    [
        (["n1", "n2", "n3"], ["n1"], ["n2", "n3"]),
        (["n2"], ["n1", "n2"], []),
        (["n2", "n3"], ["n1"], ["n2", "n3"]),
    ],
)
def test_each_notification_is_read_once(
    names: list[str], known: list[str], found: list[str]
) -> None:
    """Old ones may have been deleted meanwhile."""
    assert unread(names, known) == found
