"""What aiokafka has compiled may run in a simulation, but for what builds records.

aiokafka decides once, for all of its compiled parts together (``AIOKAFKA_NO_EXTENSIONS``). Its
builder asks the C library for the time, so a simulation takes the part that is written in Python.
Checksums and the reading of records ask nobody: they are taken from the compiled part again, and do
the same ten times as fast.
"""

from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record import default_records, memory_records


def use_for_reading() -> None:
    """Compiled, where this installation of aiokafka has it; the second time, do nothing."""
    try:
        from aiokafka.record import _crecords
    except ImportError:
        return
    checksums: Any = default_records
    readers: tuple[Any, ...] = (fetcher, memory_records)
    checksums.calc_crc32c = _crecords.crc32c_cython
    for module in readers:
        module.MemoryRecords = _crecords.MemoryRecords
