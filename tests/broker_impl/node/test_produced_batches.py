"""What becomes of produced batches: how they are compressed, and how invalid ones are answered."""

from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker_impl.conftest import WALL_MS
from tests.broker_impl.node.broker_calls import TP, create, leader

CODECS = {"uncompressed": batch.NONE, "gzip": batch.GZIP, "snappy": batch.SNAPPY}
CODECS |= {"lz4": batch.LZ4, "zstd": batch.ZSTD}
RECORDS = [Record(b"k", b"v" * 200, WALL_MS)] * 4


async def send(cluster: Any, sent: bytes, version: int = 9) -> Any:
    """Produce a batch to partition 0 of topic ``t``; return the partition's row of the response."""
    data = [PartitionProduceData(index=0, records=sent)]
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name="t", partition_data=data)],
    )
    answer = await cluster.ask(leader(cluster), request, version)
    return answer.responses[0].partition_responses[0]


def stored(cluster: Any) -> list[list[tuple[int, int, bool]]]:
    """For each broker: codec, base offset, and whether the CRC is right, of each batch."""
    found = []
    for running in cluster.brokers.values():
        log = running.broker._logs.logs[TP]
        data = b"".join(log.read(0, bytes_max=1 << 20, limit=log.end_offset) or [])
        found.append(
            [
                (header.compression, header.base_offset, batch.check_crc(data, at, header))
                for at, header in batch.batches(data)
            ]
        )
    return found


@pytest.mark.parametrize("codec", CODECS)
async def test_a_topic_has_its_codec(three: Any, codec: str) -> None:
    """All replicas store batches with the topic's codec; a repeated batch is recognized."""
    await create(three, config={"compression.type": codec})
    for sequence, sent_as in ((0, batch.NONE), (4, batch.GZIP), (8, CODECS[codec])):
        sent = batch.encode_batch(
            RECORDS, producer_id=7, producer_epoch=0, base_sequence=sequence, compression=sent_as
        )
        first, again = await send(three, sent), await send(three, sent)
        assert (first.error_code, first.base_offset) == (0, sequence)
        assert (again.error_code, again.base_offset) == (0, sequence)
    assert stored(three) == [[(CODECS[codec], at, True) for at in (0, 4, 8)]] * 3


async def test_the_producers_codec_is_the_default(three: Any) -> None:
    """With ``producer``, batches are stored as they were sent; settings can change at run time."""
    await create(three)
    for codec in (batch.ZSTD, batch.NONE):
        row = await send(three, batch.encode_batch(RECORDS, compression=codec))
        assert row.error_code == 0
    assert [codec for codec, _, _ in stored(three)[0]] == [batch.ZSTD, batch.NONE]


@pytest.mark.parametrize("codec", [batch.ZSTD, batch.LZ4])
@pytest.mark.parametrize("version", [6, 7])
async def test_old_clients_may_not_send_zstd(cluster: Any, version: int, codec: int) -> None:
    """KIP-110: zstd is refused below v7 of Produce, and no other codec is."""
    await cluster.add(1)
    await cluster.ready()
    await create(cluster, replicas=1)
    row = await send(cluster, batch.encode_batch(RECORDS, compression=codec), version)
    refused = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    is_refused = version == 6 and codec == batch.ZSTD
    assert (row.error_code, row.base_offset) == (refused if is_refused else (0, 0))
    short = await send(cluster, batch.encode_batch(RECORDS, compression=codec)[:30], version)
    assert short.error_code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("version", [7, 8, 9])
async def test_rejected_records_are_named(three: Any, version: int) -> None:
    """KIP-467: from v8 on, the response names the records for which a batch was rejected."""
    await create(three, config={"cleanup.policy": "compact"})
    row = await send(three, batch.encode_batch([RECORDS[0], Record(None, b"v", WALL_MS)]), version)
    assert (row.error_code, row.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    if version < 8:
        assert (row.record_errors, row.error_message) == ([], None)
    else:
        [error] = row.record_errors
        assert error.batch_index == 1
        assert "no key" in error.batch_index_error_message
        assert row.error_message == "One or more records have been rejected"


async def test_other_errors_name_no_records(three: Any) -> None:
    """As in Kafka, a batch that is rejected for its size has neither such records nor a message."""
    await create(three, config={"max.message.bytes": "100"})
    row = await send(three, batch.encode_batch(RECORDS))
    assert row.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (row.record_errors, row.error_message) == ([], None)


async def test_records_out_of_time_are_named(three: Any) -> None:
    """Records whose timestamps are too far from the broker's clock are named."""
    await create(three, config={"message.timestamp.difference.max.ms": "1000"})
    times = (WALL_MS, WALL_MS - 1001, WALL_MS + 1000, WALL_MS + 1001)
    row = await send(three, batch.encode_batch([Record(b"k", b"v", time) for time in times]))
    assert row.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in row.record_errors] == [1, 3]
