"""What aiokafka has compiled may run in a simulation, but for what builds records.

aiokafka decides once, for all of its compiled parts together (``AIOKAFKA_NO_EXTENSIONS``). Its
builder asks the C library for the time, so a simulation takes the part that is written in Python.
Checksums and the reading of records ask nobody: they are taken from the compiled part again, tell
the same of whole batches for less CPU, and are what aiokafka's users have.
"""

from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record import default_records, memory_records


def use_for_reading() -> None:
    """From now on, in all of this interpreter; where this aiokafka has nothing compiled, as
    before. May be called again."""
    try:
        from aiokafka.record import _crecords
    except ImportError:
        return
    checksums: Any = default_records
    readers: tuple[Any, ...] = (fetcher, memory_records)
    checksums.calc_crc32c = _crecords.crc32c_cython
    for module in readers:
        module.MemoryRecords = _crecords.MemoryRecords
