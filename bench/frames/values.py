"""Well-formed requests with unusual values, drawn from a seed."""

import functools
import random
import struct
import types
import typing
from collections.abc import Mapping, Sequence
from struct import error as StructError
from typing import Any, get_origin
from uuid import UUID

import msgspec

from broker_impl.api.table import APIS
from broker_impl.errors import WireError
from broker_impl.wire import batch
from broker_impl.wire.messages import request_module

Known = Mapping[str, Sequence[Any]]
"""Values that responses had, by field."""
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


PLAUSIBLE: Mapping[str, Sequence[Any]] = {
    "current_leader_epoch": (-1, -1, 0),
    "fetch_offset": (0, 0, 1),
    "generation_id": (1, 2, -1),
    "group_instance_id": (None, None, "t"),
    "isolation_level": (0, 1),
    "iterations": (4096, 4095),
    "key_type": (0, 1),
    "log_start_offset": (-1,),
    "max_bytes": (1_000_000, 100),
    "max_wait_ms": (0, 0, 20),
    "member_id": ("", "", "x"),
    "min_bytes": (0, 1),
    "name": ("t", "t", "u", "hidden"),
    "operation": tuple(range(1, 13)),
    "partition_max_bytes": (1_000_000, 10),
    "pattern_type_filter": (1, 2, 3, 4),
    "permission_type": (1, 2, 3),
    "protocol_type": ("consumer",),
    "rebalance_timeout_ms": (500, 10_000),
    "replica_id": (-1, -1, -1, 0, -2),
    "resource_name": ("t", "hidden", "1", "kafka-cluster"),
    "resource_pattern_type": (3, 4),
    "resource_type": (2, 2, 4, 3),
    "session_epoch": (-1, 0),
    "session_id": (0,),
    "session_timeout_ms": (6000, 10_000),
    "timestamp": (-1, -2, 0),
    "topic": ("t", "t", "u", "hidden"),
    "transaction_timeout_ms": (1000, 60_000),
}
"""Values with which requests reach further than with random ones, by field."""
GROUP_FIELDS = ("group_id", "transactional_id", "key")
_OLD = "v3_and_below_"


@functools.cache
def fields(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the type of each field of a message or of a structure."""
    return typing.get_type_hints(kind)


def likely(name: str, known: Known | None) -> Sequence[Any]:
    """Return values of a field with which a request may succeed; ``known``: from responses."""
    if known is None:
        return ()
    name = name.removeprefix(_OLD)
    if name in GROUP_FIELDS:
        return ("t",)
    return (*known.get(name, ()), *known.get(name, ()), *PLAUSIBLE.get(name, ()))


def records(rng: random.Random, known: Known | None = None) -> bytes | None:
    """A record batch, valid or damaged, or None."""
    producer_ids = likely("producer_id", known)
    epochs = likely("producer_epoch", known)
    whole = batch.encode_batch(
        [batch.Record(b"k", rng.randbytes(rng.randrange(40)), 1) for _ in range(rng.randint(1, 4))],
        producer_id=rng.choice([-1, -1, *(producer_ids or (1, 2))]),
        producer_epoch=rng.choice(epochs or [0, 0, 1, 5]),
        base_sequence=rng.choice([0, 0, 1, 4]),
        transactional=known is not None and rng.random() < 0.3,
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


def value(kind: Any, name: str, rng: random.Random, depth: int, known: Known | None = None) -> Any:
    """A random value of the type of this field; with ``known``, mostly one that may succeed."""
    chosen = likely(name, known)
    if chosen and get_origin(kind) is not list and rng.random() < 0.8:
        return rng.choice(chosen)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if name == "records":
        return records(rng, known)
    if name in OF_NAMES and kind is not int:
        return rng.choice(OF_NAMES[name])
    if origin in (typing.Union, types.UnionType):
        choices = [choice for choice in args if choice is not type(None)]
        is_left_out = len(choices) < len(args) and rng.random() < 0.2
        return None if is_left_out else value(choices[0], name, rng, depth, known)
    if origin is list:
        count = rng.choice([0, 1, 1, 2, 3])
        return [value(args[0], name, rng, depth + 1, known) for _ in range(count)]
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
        return message(kind, rng, depth + 1, known)
    return rng.randbytes(rng.randrange(5))


def message(
    kind: type[msgspec.Struct], rng: random.Random, depth: int = 0, known: Known | None = None
) -> msgspec.Struct:
    """A random message, or a random structure of one."""
    return kind(
        **{name: value(hint, name, rng, depth, known) for name, hint in fields(kind).items()}
    )


def request(
    rng: random.Random, keys: Sequence[int] = CLIENT_KEYS, known: Known | None = None
) -> tuple[int, int, bytes]:
    """The API key, version and body of one random request, of these APIs."""
    while True:
        row = APIS[rng.choice(keys)]
        if row.key in (CREATE_TOPICS, DELETE_TOPICS) and rng.random() < 0.8:
            continue
        version = rng.choice(row.served)
        module = request_module(row.key)
        kind = getattr(module, f"{module.NAME}Request")
        try:
            parts = module.encode(message(kind, rng, 0, known), version)
        except (
            WireError,
            StructError,
            TypeError,
            AttributeError,
        ):  # this version cannot encode the value
            continue
        return row.key, version, b"".join(parts)


def frame(rng: random.Random, keys: Sequence[int], known: Known) -> bytes:
    """A random request as a frame, without its length.

    known: values of fields that responses had, such as ids of members.
    """
    key, version, body = request(rng, keys, known)
    header = struct.pack(">hhih", key, version, 1, -1)
    return header + (b"\0" if is_flexible(key, version) else b"") + body


def is_flexible(key: int, version: int) -> bool:
    """Whether this request's header has tagged fields."""
    first = request_module(key).FLEXIBLE_FROM
    return first is not None and version >= first
