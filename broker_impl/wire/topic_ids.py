"""Topic ids (KIP-516): how they are drawn, and the text by which Kafka writes them in ZooKeeper."""

import binascii
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from uuid import UUID

from broker_impl.wire.types import NO_UUID

_RESERVED: Final = frozenset({NO_UUID, UUID(int=1)})
"""Ids that mean "none" and "the topic of the metadata" (Kafka's `Uuid.RESERVED`)."""
_CHARS: Final = 22
"""The length of an id's text: 16 bytes in Base64, without padding."""


def draw(rng: random.Random) -> UUID:
    """Return a new id: a random UUID of version 4 whose text does not begin with a dash.

    A dash would look like an option on a command line, as in later versions of Kafka.
    """
    while True:
        drawn = UUID(int=rng.getrandbits(128), version=4)
        if drawn not in _RESERVED and not to_text(drawn).startswith("-"):
            return drawn


def to_text(topic_id: UUID) -> str:
    """Return the id as Kafka writes it: URL-safe Base64 without padding."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def from_text(text: str) -> UUID:
    """Parse the text of an id; ValueError if it is not one."""
    try:
        raw = urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        raw = b""
    if len(text) != _CHARS or len(raw) != 16:
        raise ValueError(f"{text!r} is not a topic id")
    return UUID(bytes=raw)
