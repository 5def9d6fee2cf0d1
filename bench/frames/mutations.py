"""Mutations of frames: by field, by number, by length, by truncation, and by parts of others."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bench.frames import values
from broker_impl.api.table import APIS
from broker_impl.errors import BrokerError
from broker_impl.wire.framing import decode_request_header
from broker_impl.wire.messages import request_module

NUMBERS: Final = tuple(
    struct.pack(form, number)
    for form, bits in ((">b", 8), (">h", 16), (">i", 32), (">q", 64))
    for number in (0, 1, -1, -2, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
)
"""Numbers at the ends of their ranges, in every size."""
VARINTS: Final = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x00",
    b"\x80\x00",
    b"\x00",
)
"""The largest varint, ones that are too large or too long, and zero in two forms."""
HEADER_BYTES: Final = 10
LONG: Final = 300
"""The items of a list that a mutation makes long."""
PARTS_MAX_BYTES: Final = 20_000

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
"""Makes a frame of a frame; the last argument has frames from which parts may be taken."""


def bit(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Change one bit."""
    at = rng.randrange(len(frame))
    return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]


def number(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Overwrite bytes with a number at the end of its range: a value, a count or a length."""
    new = rng.choice(NUMBERS if rng.random() < 0.8 else VARINTS)
    at = rng.randrange(len(frame))
    return frame[:at] + new + frame[at + len(new) :]


def length(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Change a byte that is probably part of a length by a little, up or down."""
    small = [at for at in range(len(frame)) if 0 < frame[at] < 40] or [0]
    at = rng.choice(small)
    changed = (frame[at] + rng.choice((-2, -1, 1, 2, 64, 127))) % 256
    return frame[:at] + bytes([changed]) + frame[at + 1 :]


def truncated(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Cut the end off."""
    return frame[: rng.randrange(len(frame))]


def removed(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Remove some bytes in the middle."""
    at = rng.randrange(len(frame))
    return frame[:at] + frame[at + rng.randint(1, 8) :]


def doubled(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Repeat a part, once or many times."""
    start = rng.randrange(len(frame))
    part = frame[start : start + rng.randint(1, 40)]
    return frame[:start] + part * rng.choice((2, 2, 3, 100)) + frame[start + len(part) :]


def spliced(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Continue with the rest of another frame."""
    other = rng.choice(others)
    return frame[: rng.randrange(len(frame))] + other[rng.randrange(len(other)) :]


def header(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Change the API key or the version."""
    if rng.random() < 0.5:
        return struct.pack(">h", rng.choice((*APIS, *APIS, -1, 99, 32767))) + frame[2:]
    version = rng.choice((0, 1, 2, 3, 4, 5, 8, 12, -1, 99, 32767))
    return frame[:2] + struct.pack(">h", version) + frame[4:]


def field(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Change one field of the message, if the frame has a message; the rest stays valid."""
    try:
        head, body = decode_request_header(memoryview(frame))
        module = request_module(head.api_key)
        message = module.decode(body, head.api_version)
        _change_field(rng, message)
        changed = b"".join(module.encode(message, head.api_version))
    except (BrokerError, KeyError, ImportError, struct.error, IndexError):
        return bit(rng, frame, others)
    changed = frame[: len(frame) - len(body)] + changed
    return changed if len(changed) <= PARTS_MAX_BYTES else bit(rng, frame, others)


def _change_field(rng: random.Random, message: msgspec.Struct) -> None:
    """Give a random field of the message, or of a structure inside of it, another value."""
    hints = values.fields(type(message))
    name = rng.choice(sorted(hints))
    current = getattr(message, name)
    inside = [each for each in _items(current) if isinstance(each, msgspec.Struct)]
    if inside and rng.random() < 0.7:
        _change_field(rng, rng.choice(inside))
    elif isinstance(current, list) and current and rng.random() < 0.4:
        setattr(message, name, current * rng.choice((2, LONG)))
    else:
        setattr(message, name, values.value(hints[name], name, rng, 0))


def _items(current: Any) -> Sequence[Any]:
    return current if isinstance(current, list) else [current]


MUTATIONS: Final[Sequence[Mutation]] = (
    bit,
    number,
    length,
    truncated,
    removed,
    doubled,
    spliced,
    header,
    field,
)


def mutated(rng: random.Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    """Apply one mutation, or a few; the frame keeps a moderate size."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if frame:
            frame = rng.choice(MUTATIONS)(rng, frame, others)[:PARTS_MAX_BYTES]
    return frame


def prefixed(rng: random.Random, frame: bytes) -> bytes:
    """Return the frame with its length, which is seldom a wrong one."""
    announced = len(frame)
    if rng.random() < 0.04:
        announced += rng.choice((-1, 1, 4, 1000, 10**6, 10**8, -(10**9)))
    return struct.pack(">i", max(announced, -(2**31))) + frame
