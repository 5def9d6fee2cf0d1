"""What one connection sends: frames, most of them mutated, before or after an authentication."""

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.frames import mutations, values
from broker_impl.api.table import APIS

OPEN, BEFORE, AFTER, BROKERS = "open", "before", "after", "brokers"
MODES: Final = (OPEN, OPEN, BEFORE, BEFORE, BEFORE, AFTER, AFTER, AFTER, BROKERS)
"""Without authentication; before one; after one, with few rights; on the brokers' listener."""
HANDSHAKE, VERSIONS, AUTHENTICATE = 17, 18, 36
UNAUTHENTICATED: Final = (HANDSHAKE, VERSIONS, AUTHENTICATE)
"""The only requests that are answered before the authentication."""
_DEEP: Final = (0, 1, 1, 8, 9, 10, 11, 11, 12, 14, 22, 24, 26)
"""The APIs with the most states behind them: records, groups and transactions."""
WEIGHED_KEYS: Final = (*values.CLIENT_KEYS, *_DEEP, *_DEEP, *_DEEP)
LARGE: Final = (60_000, 70_000, 500_000)
"""The bytes appended to a frame before the authentication: fewer, and more, than are allowed."""
_LENGTH: Final = struct.Struct(">i")
_HEAD_BYTES: Final = 8
_BEGINNINGS: Final = (
    (),
    (struct.pack(">hhih", VERSIONS, 0, 0, -1),),
    *(
        (struct.pack(">hhihh", HANDSHAKE, version, 0, -1, len(mechanism)) + mechanism,)
        for version in (0, 1)
        for mechanism in (b"PLAIN", b"SCRAM-SHA-256")
    ),
)
"""Valid frames that bring a connection into each state before its authentication."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a connection sends."""

    mode: str
    data: bytes
    piece_bytes: int
    """The most bytes that arrive at once."""


def draw(
    rng: random.Random, kept: Sequence[bytes], known: values.Known
) -> tuple[Case, list[bytes]]:
    """Draw a case; return it with its frames.

    kept: frames that reached new lines before; known: values of fields in responses.
    """
    mode = rng.choice(MODES)
    frames: list[bytes] = []
    if mode == BEFORE:
        frames += rng.choice(_BEGINNINGS)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        if kept and rng.random() < 0.4:
            frame = rng.choice(kept)
        else:
            frame = values.frame(rng, _keys(rng, mode), known)
        frames.append(_changed(rng, mode, frame, kept or [frame]))
    frames = [_numbered(frame, number) for number, frame in enumerate(frames, 1)]
    data = b"".join(mutations.prefixed(rng, frame) for frame in frames)
    return Case(mode, data, rng.choice((1 << 20, 1 << 20, 1 << 20, 100, 7))), frames


def _changed(rng: random.Random, mode: str, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Mutate a frame, or leave it valid; most mutations keep it readable, because an unreadable
    frame closes the connection, and the frames after it are not handled."""
    chance = rng.random()
    if chance < 0.35:
        return frame
    if chance < 0.7:
        return mutations.field(rng, frame, others)
    if mode == BEFORE and chance < 0.72:
        return frame + bytes(rng.choice(LARGE))
    return mutations.mutated(rng, frame, others)


def _keys(rng: random.Random, mode: str) -> Sequence[int]:
    if mode == BROKERS:
        return tuple(APIS)
    if mode == BEFORE and rng.random() < 0.7:
        return UNAUTHENTICATED
    return WEIGHED_KEYS


def _numbered(frame: bytes, number: int) -> bytes:
    """Give a frame its own correlation id, by which its response is recognized."""
    if len(frame) < _HEAD_BYTES:
        return frame
    return frame[:4] + _LENGTH.pack(number) + frame[_HEAD_BYTES:]


def split(data: bytes) -> Iterator[bytes]:
    """Yield the complete frames in some bytes, up to the first length that is not valid."""
    at = 0
    while at + _LENGTH.size <= len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if size < 0 or at + size > len(data):
            return
        yield data[at : at + size]
        at += size
