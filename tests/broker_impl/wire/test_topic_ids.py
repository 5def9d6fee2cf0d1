"""Topic ids and their text, as Kafka writes it (KIP-516)."""

import random
from uuid import UUID

import pytest

from broker_impl.wire import topic_ids
from broker_impl.wire.types import NO_UUID


def test_the_text_is_kafkas() -> None:
    """The text is URL-safe Base64 without padding: that of Kafka's `Uuid.toString`."""
    assert topic_ids.to_text(NO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert topic_ids.to_text(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert (
        topic_ids.to_text(UUID("ffffffff-ffff-4fff-bfff-ffffffffffff")) == "________T_-__________w"
    )


def test_ids_are_read_back() -> None:
    """A drawn id is a random UUID of version 4, has 22 characters, and does not begin with `-`."""
    rng = random.Random(1)
    drawn = [topic_ids.draw(rng) for _ in range(300)]
    assert len(set(drawn)) == 300
    for each in drawn:
        text = topic_ids.to_text(each)
        assert (each.version, len(text), text[0] == "-") == (4, 22, False)
        assert topic_ids.from_text(text) == each


@pytest.mark.parametrize(
    "text",
    ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "ä" * 22, "A" * 21 + "!"],
)
def test_other_texts_are_no_ids(text: str) -> None:
    """A text of another length, or with other characters, is no id."""
    with pytest.raises(ValueError, match="is not a topic id"):
        topic_ids.from_text(text)
