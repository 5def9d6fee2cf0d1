"""Which logs belong to a deleted topic of the same name."""

from uuid import UUID

import pytest

from broker_impl.replica import topic_identity
from broker_impl.wire.types import NO_UUID

A, B = UUID(int=7), UUID(int=8)


@pytest.mark.parametrize(
    ("known", "ordered", "is_new", "expected"),
    [
        (A, B, True, True),
        (A, B, False, True),
        (A, A, True, False),  # the controller sent the order of a creation again
        (A, A, False, False),
        (NO_UUID, B, True, True),  # the log is older than the topic
        (NO_UUID, B, False, False),  # a log of an earlier release
        (NO_UUID, NO_UUID, True, False),  # version 4 of the request
        (A, NO_UUID, True, False),
    ],
)
def test_is_of_deleted_topic(known: UUID, ordered: UUID, is_new: bool, expected: bool) -> None:
    """Another id shows a deleted topic; without an id, only a partition that is new does."""
    assert topic_identity.is_of_deleted_topic(known, ordered, is_new) is expected
