"""Version 2 of the transaction protocol: its requests, and who has it."""

from io import BytesIO
from types import SimpleNamespace

import pytest
from aiokafka.protocol.types import CompactArray, CompactString, Int16, TaggedFields

from workloads.client import txn_version

FEATURES = CompactArray(
    ("name", CompactString("utf-8")), ("max", Int16), ("min", Int16), ("tags", TaggedFields)
)
VERSIONS = {0: (0, 12), 18: (0, 4), 26: (0, 5)}


@pytest.mark.parametrize(
    ("features", "second"),
    [
        ([("metadata.version", 25, 1, {}), ("transaction.version", 2, 0, {})], True),
        ([("transaction.version", 1, 0, {})], False),
        ([("metadata.version", 25, 1, {})], False),
        ([], False),
    ],
)
def test_the_finalized_version_decides(
    features: list[tuple[str, int, int, dict[int, bytes]]], second: bool
) -> None:
    """A broker that implements version 2 may serve a cluster that has not finalized it."""
    answer = SimpleNamespace(tags={2: FEATURES.encode(features)})
    assert txn_version.has_second(answer) is second
    assert not txn_version.has_second(SimpleNamespace(tags={}))


def test_a_broker_without_it_is_not_asked() -> None:
    """Nothing is sent to a broker whose EndTxn has no version 5."""
    request = txn_version.FeaturesRequest()
    for versions in ({18: (0, 4), 26: (0, 4)}, {18: (0, 3)}):
        with pytest.raises(NotImplementedError, match="EndTxn"):
            request.prepare(versions)
    assert request.prepare(VERSIONS).API_VERSION == 3


def test_an_end_names_its_epoch_and_gets_the_next_one() -> None:
    """The request is that of KIP-890: compact strings, and tags at the end."""
    request = txn_version.EndTxnRequest("id", 7, 3, True).prepare(VERSIONS)
    assert request.encode() == b"\x03id" + bytes(7) + b"\x07" + b"\0\x03" + b"\x01" + b"\0"
    assert request.FLEXIBLE_VERSION
    data = bytes(4) + bytes(2) + bytes(7) + b"\x07" + b"\0\x04" + b"\0"
    answer = request.RESPONSE_TYPE.decode(BytesIO(data))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 7, 4)


def test_a_batch_is_sent_and_its_offset_is_received() -> None:
    """The leader gets the transactional id with the batch, and answers with error and offset."""
    request = txn_version.ProduceRequest("id", 500, "t", 1, b"batch").prepare(VERSIONS)
    one = (1).to_bytes(4, "big")
    begin = b"\x03id" + b"\xff\xff" + (500).to_bytes(4, "big")
    batch = b"\x02" + one + b"\x06batch" + b"\0"
    assert request.encode() == begin + b"\x02" + b"\x02t" + batch + b"\0" + b"\0"
    partition = one + b"\0\0" + (42).to_bytes(8, "big") + b"\xff" * 8
    partition += bytes(8) + b"\x01" + b"\0" + b"\0"
    data = b"\x02" + b"\x02t" + b"\x02" + partition + b"\0" + bytes(4) + b"\0"
    answer = request.RESPONSE_TYPE.decode(BytesIO(data))
    ((topic, ((number, code, offset, *_),), *_),) = answer.topics
    assert (topic, number, code, offset) == ("t", 1, 0, 42)
