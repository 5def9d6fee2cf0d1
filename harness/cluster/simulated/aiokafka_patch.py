"""Uses the compiled parts of aiokafka in a simulation, except the builder of record batches.

aiokafka enables all of its compiled parts or none (``AIOKAFKA_NO_EXTENSIONS``). Its compiled
builder calls the C library for the time, so a simulation takes the builder that is written in
Python. Checksums and the reader of records have no such dependency: they are taken from the
compiled part again, give the same results for whole batches with less CPU, and are what users of
aiokafka run.
"""

from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record import default_records, memory_records


def use_for_reading() -> None:
    """Use the compiled checksums and reader in this interpreter, if this aiokafka has them.

    May be called again.
    """
    try:
        from aiokafka.record import _crecords
    except ImportError:
        return
    checksums: Any = default_records
    readers: tuple[Any, ...] = (fetcher, memory_records)
    checksums.calc_crc32c = _crecords.crc32c_cython
    for module in readers:
        module.MemoryRecords = _crecords.MemoryRecords
