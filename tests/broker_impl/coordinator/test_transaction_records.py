"""The records of __transaction_state, in the layout of Kafka's schemas."""

import pytest

from broker_impl.coordinator import transaction_records
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import WireError
from broker_impl.wire.types import TopicPartition


def test_a_key_is_a_version_and_the_id() -> None:
    data = transaction_records.encode_key("tx")
    assert data == b"\x00\x00\x00\x02tx"
    assert transaction_records.decode_key(data) == "tx"
    assert transaction_records.decode_key(b"\x00\x01\x02tx") is None


def test_a_value_is_laid_out_as_kafka_does() -> None:
    """A value is a TransactionLogValue of version 0: partitions by topic, timestamps at the end."""
    metadata = Metadata(
        producer_id=7,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=(TopicPartition("a", 2), TopicPartition("b", 0), TopicPartition("a", 1)),
        started_ms=5,
        updated_ms=9,
    )
    data = transaction_records.encode_value(metadata)
    assert data.hex() == (
        "0000" + "0000000000000007" + "0003" + "0000ea60" + "01"
        "00000002" + "000161" + "00000002" + "00000001" + "00000002"
        "000162" + "00000001" + "00000000" + "0000000000000009" + "0000000000000005"
    )
    found = transaction_records.decode_value(data)
    assert sorted(found.partitions) == sorted(metadata.partitions)
    assert found.state is TransactionState.ONGOING
    assert (found.producer_id, found.producer_epoch, found.timeout_ms) == (7, 3, 60_000)
    assert (found.started_ms, found.updated_ms) == (5, 9)


def test_an_empty_one_has_no_partitions() -> None:
    """A transaction without partitions has a null list, not an empty one."""
    metadata = Metadata(producer_id=1, producer_epoch=0, timeout_ms=1, updated_ms=2)
    data = transaction_records.encode_value(metadata)
    assert data[17:21] == b"\xff\xff\xff\xff"
    assert transaction_records.decode_value(data) == metadata


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x07" + bytes(40), bytes(12)])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        transaction_records.decode_value(data)
