"""Aiokafka's compiled readers, tested in separate processes: it chooses its parts on import."""

import os
import subprocess
import sys

_READ = """
from aiokafka.consumer import fetcher
from aiokafka.record import default_records, memory_records
from harness.cluster.simulated import aiokafka_patch

builder = default_records.DefaultRecordBatchBuilder(
    magic=2, compression_type=0, is_transactional=0, producer_id=7, producer_epoch=1,
    base_sequence=3, batch_size=10_000,
)
for number in range(5):
    key = None if number % 2 else b"k" * number
    assert builder.append(number, 1_000 + number, key, b"v" * (100 * number), [("h", b"x")])
good = bytes(builder.build())
bad = good[:-1] + bytes([good[-1] ^ 1])
torn = good[: len(good) // 2]


def read(data):
    batches = fetcher.MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        yield batch.validate_crc()
        yield batch.producer_id, batch.base_offset, batch.next_offset
        for each in batch:
            yield each.offset, each.timestamp, each.key, each.value, tuple(each.headers)


before = [*read(good)], [*read(bad)], [*read(torn)], default_records.calc_crc32c(good)
builders = [default_records.DefaultRecordBatchBuilder]
aiokafka_patch.use_for_reading()
aiokafka_patch.use_for_reading()
after = [*read(good)], [*read(bad)], [*read(torn)], default_records.calc_crc32c(good)
builders.append(default_records.DefaultRecordBatchBuilder)
print(fetcher.MemoryRecords.__module__, builders[0] is builders[1], builders[1].__module__)
print(before == after, before[0][0], before[1][0], len(before[0]), len(before[2]))
"""


def told_by(script: str) -> list[str]:
    environment = {**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_what_is_read_by_it_is_the_same_and_the_builder_stays() -> None:
    parts, told = told_by(_READ)
    reader, same_builder, builder = parts.split()
    assert reader.startswith("aiokafka.record._crecords")
    assert same_builder == "True"
    assert builder == "aiokafka.record.default_records"
    # Both report the bad checksum, and neither returns the incomplete batch.
    assert told.split() == ["True", "True", "False", "7", "0"]


def test_an_aiokafka_without_compiled_parts_stays_as_it_is() -> None:
    lacks = "import sys; sys.modules['aiokafka.record._crecords'] = None\n"
    said = "aiokafka_patch.use_for_reading(); print(fetcher.MemoryRecords.__module__)"
    imports = "from aiokafka.consumer import fetcher\n"
    imports += "from harness.cluster.simulated import aiokafka_patch\n"
    assert told_by(lacks + imports + said) == ["aiokafka.record.memory_records"]
