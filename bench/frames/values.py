"""Well-formed requests with unusual values, drawn from a seed."""

import random
import struct
import types
import typing
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from broker_impl.api.table import APIS
from broker_impl.errors import WireError
from broker_impl.wire import batch
from broker_impl.wire.messages import request_module

TOPICS = ("t", "t", "t", "u", "hidden", "nope", "", "no/such", "..", "a\x01\u2028", "x" * 300)
"""Names of topics, groups, transactional ids and users."""
NUMBERS = (0, 0, 1, 1, -1, -2, -3, 2, 3, 7, 127, -128, 32767, -32768, 2**31 - 1, -(2**31))
LARGE = (2**63 - 1, -(2**63))
SMALL_FIELDS = frozenset({"num_partitions", "replication_factor", "timeout_ms", "max_wait_ms"})
CREATE_TOPICS, DELETE_TOPICS = 19, 20
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "")
PRINCIPALS = ("User:bob", "User:bob", "bob", ":", "")
"""None of them names a user of a test, because an entry could give that user more rights."""
TOKENS = (
    b"\0alice\0guessed",
    b"\0alice\0",
    b"\0\0\0",
    b"n,,n=alice,r=nonce",
    b"n,,n=a=3Dlice,r=nonce,x=y",
    b"c=biws,r=noncenonce,p=AAAA",
    b"",
)
"""What a client that knows no password may send."""
OF_NAMES: dict[str, tuple[Any, ...]] = {
    "auth_bytes": TOKENS,
    "mechanism": (*MECHANISMS, *MECHANISMS[:3]),
    "principal": PRINCIPALS,
    "principal_filter": PRINCIPALS,
}


CLIENT_KEYS = tuple(sorted(key for key, row in APIS.items() if not row.between_brokers))
"""The APIs that clients may use."""


def records(rng: random.Random) -> bytes | None:
    """A record batch, valid or damaged, or None."""
    whole = batch.encode_batch(
        [batch.Record(b"k", rng.randbytes(rng.randrange(40)), 1) for _ in range(rng.randint(1, 4))],
        producer_id=rng.choice([-1, -1, 1, 2]),
        producer_epoch=rng.choice([0, 0, 1, 5]),
        base_sequence=rng.choice([0, 0, 1, 4]),
        compression=rng.choice([0, 0, 0, 1, 2, 3, 4]),
    )
    choice = rng.randrange(8)
    if choice == 0:
        return None
    if choice == 1:
        return whole[: rng.randrange(len(whole))]
    if choice == 2:
        at = rng.randrange(len(whole))
        return whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
    if choice == 3:
        return whole + whole
    return whole


def value(kind: Any, name: str, rng: random.Random, depth: int) -> Any:
    """A random value of the type of this field."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if name == "records":
        return records(rng)
    if name in OF_NAMES and kind is not int:
        return rng.choice(OF_NAMES[name])
    if origin in (typing.Union, types.UnionType):
        choices = [choice for choice in args if choice is not type(None)]
        is_left_out = len(choices) < len(args) and rng.random() < 0.2
        return None if is_left_out else value(choices[0], name, rng, depth)
    if origin is list:
        return [value(args[0], name, rng, depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if kind is int:
        if name in SMALL_FIELDS:
            return rng.choice([-1, 0, 1, 3])
        if "partition" in name or name == "index":
            return rng.choice([0, 0, 0, 1, 2, -1, 2**31 - 1])
        if name == "acks":
            return rng.choice([-1, -1, 0, 1, 2, -7])
        return rng.choice(NUMBERS if rng.random() < 0.9 else LARGE)
    if kind is bool:
        return rng.random() < 0.5
    if kind is str:
        return rng.choice(TOPICS)
    if kind is UUID:
        return UUID(int=rng.choice([0, 1]))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return message(kind, rng, depth + 1)
    return rng.randbytes(rng.randrange(5))


def message(kind: type[msgspec.Struct], rng: random.Random, depth: int = 0) -> msgspec.Struct:
    """A random message, or a random structure of one."""
    hints = typing.get_type_hints(kind)
    return kind(**{name: value(hint, name, rng, depth) for name, hint in hints.items()})


def request(rng: random.Random, keys: Sequence[int] = CLIENT_KEYS) -> tuple[int, int, bytes]:
    """The API key, version and body of one random request, of these APIs."""
    while True:
        row = APIS[rng.choice(keys)]
        if row.key in (CREATE_TOPICS, DELETE_TOPICS) and rng.random() < 0.8:
            continue
        version = rng.choice(row.served)
        module = request_module(row.key)
        kind = getattr(module, f"{module.NAME}Request")
        try:
            parts = module.encode(message(kind, rng), version)
        except WireError:  # this version cannot encode the value
            continue
        return row.key, version, b"".join(parts)


def frame(rng: random.Random, keys: Sequence[int] = CLIENT_KEYS, number: int = 1) -> bytes:
    """A random request as a frame, without its length; ``number``: its correlation id."""
    key, version, body = request(rng, keys)
    header = struct.pack(">hhih", key, version, number, -1)
    return header + (b"\0" if is_flexible(key, version) else b"") + body


def is_flexible(key: int, version: int) -> bool:
    """Whether this request's header has tagged fields."""
    first = request_module(key).FLEXIBLE_FROM
    return first is not None and version >= first
