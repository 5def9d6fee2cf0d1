"""Consumers get no fetch session where rights are checked."""

import pytest

from broker_impl.api.access import fetch_rights
from broker_impl.wire.messages.fetch_request import FetchRequest


@pytest.mark.parametrize(
    ("asked", "checked"),
    [
        ((0, 0), (0, -1)),
        ((0, -1), (0, -1)),
        ((7, 3), (7, 3)),  # there is no such session: the handler refuses it
    ],
)
def test_no_session_begins(asked: tuple[int, int], checked: tuple[int, int]) -> None:
    """A full fetch that asks for a session is served without one; others stay as they are."""
    request = FetchRequest(session_id=asked[0], session_epoch=asked[1])
    found = fetch_rights.as_checked(request)
    assert (found.session_id, found.session_epoch) == checked
