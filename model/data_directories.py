"""The data directories of brokers: the option ``data_directories`` gives each that many."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

OPTION: Final = "data_directories"
"""The number of directories in ``log.dirs`` of each broker."""


def count(options: Mapping[str, Any]) -> int:
    """Return how many data directories a broker has."""
    return max(1, int(options.get(OPTION, 1)))


def name(number: int) -> str:
    """Return the name of a broker's data directory, if the broker has several."""
    return f"dir-{number}"


def of_broker(data: PurePath, options: Mapping[str, Any]) -> str:
    """Return the data directories of a broker as ``log.dirs``.

    data: the broker's folder, which is the only directory if there is one.
    """
    number = count(options)
    if number == 1:
        return str(data)
    return ",".join(str(data / name(each)) for each in range(1, number + 1))
