"""The codecs of other libraries agree with the generated ones, byte by byte and value by value."""

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import msgspec
import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from broker_impl.wire.messages import MessageModule, request_module, response_module
from broker_impl.wire.messages.apis import APIS
from broker_impl.wire.types import NO_UUID

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer
    import kafka.protocol.sasl  # noqa: F401 - these five define the classes of `ApiMessage`
    from kafka.protocol.api_message import ApiMessage

MESSAGES_EACH = 6
MODULES = {"request": request_module, "response": response_module}
CASES = [(key, kind) for key in APIS if key not in (4, 5, 6, 7) for kind in MODULES]
"""The requests and responses of all APIs but 4 to 7, which only `test_java` can compare."""


def _classes(parent: type) -> Iterator[Any]:
    child: type
    for child in parent.__subclasses__():
        yield child
        yield from _classes(child)


KAFKA_PYTHON = {(cls.API_KEY, cls.type): cls for cls in _classes(ApiMessage)}
TOKENS = range(38, 42)
"""The APIs of delegation tokens: kafka-python has none, and kio no times before 1970."""


def name_of(case: object) -> str:
    return APIS[case].stem if isinstance(case, int) else str(case)


@pytest.mark.parametrize(
    ("key", "kind"), [case for case in CASES if case[0] not in TOKENS], ids=name_of
)
def test_kafka_python_agrees(
    key: int, kind: str, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """kafka-python decodes each message to the same values, and encodes them to the same bytes."""
    module = MODULES[kind](key)
    theirs = KAFKA_PYTHON[key, kind]
    for version in module.VERSIONS:
        source = random_messages(module, version, seed := 1000 * key + version)
        for _ in range(MESSAGES_EACH):
            message, written = source.draw()
            if kind == "response" and key == API_VERSIONS and message.error_code:
                continue  # kafka-python decodes every error as a response of version 0
            decoded = theirs.decode(written, version=version)
            assert_same(decoded, message, version)
            # its decode does not set this, and the encode of DeleteTopics needs it
            decoded._header = None
            assert bytes(decoded.encode()) == written, (seed, message)
            again = module.decode(memoryview(written), version)
            assert_same(decoded, again, version)
            assert b"".join(module.encode(again, version)) == written, (seed, message)


RENAMED = {  # by Kafka 4, whose schemas kafka-python has
    "generation_id_or_member_epoch": "generation_id",
}
SPECIAL = {
    "authorized_operations",  # under several names, and as a set of flags
    "cluster_authorized_operations",
    "topic_authorized_operations",
    # the default is -1, but kafka-python returns 0 where the field is absent
    "finalized_features_epoch",
}
API_VERSIONS = 18
DESCRIBE_TRANSACTIONS = 65


def assert_same(theirs: Any, ours: Any, version: int) -> None:
    """Compare every field that this version has."""
    for field in theirs._struct._fields:
        if field.for_version_q(version) and field.name not in SPECIAL:
            value = getattr(ours, RENAMED.get(field.name, field.name))
            assert_same_value(getattr(theirs, field.name), value, version)


def assert_same_value(theirs: Any, ours: Any, version: int) -> None:
    if isinstance(ours, list):
        assert len(theirs) == len(ours)
        for their_item, our_item in zip(theirs, ours, strict=True):
            assert_same_value(their_item, our_item, version)
    elif hasattr(theirs, "_struct"):
        assert_same(theirs, ours, version)
    elif theirs is None and isinstance(ours, UUID):
        assert ours == NO_UUID  # kafka-python has no other value for it
    elif theirs is None and isinstance(ours, msgspec.Struct):
        assert ours == type(ours)()  # an absent tagged field
    else:
        assert theirs == ours, theirs


@pytest.mark.parametrize(
    ("key", "kind"),
    [case for case in CASES if case[0] not in TOKENS or case[1] == "request"],
    ids=name_of,
)
def test_kio_agrees(
    key: int, kind: str, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """kio decodes each encoded message, and encodes the result to the same bytes."""
    module = MODULES[kind](key)
    load: Callable[[int, int], Any] = (
        load_request_schema if kind == "request" else load_response_schema
    )
    known = schema_name_map[api_key_map[key]]
    for version in sorted(known.keys() & set(module.VERSIONS)):
        schema = load(key, version)
        source = random_messages(module, version, seed := 1000 * key + version)
        for _ in range(MESSAGES_EACH):
            message, written = source.draw()
            if kind == "response" and key == DESCRIBE_TRANSACTIONS and has_no_start(message):
                continue  # kio cannot represent a transaction that never began
            entity, size = entity_reader(schema)(written, 0)
            assert size == len(written)
            buffer = io.BytesIO()
            entity_writer(schema)(buffer, entity)
            assert buffer.getvalue() == written, (seed, message)


def has_no_start(message: Any) -> bool:
    return any(state.transaction_start_time_ms < 0 for state in message.transaction_states)
