"""The option ``data_directories`` decides how many directories a broker has."""

from pathlib import PurePosixPath

import pytest

from model import data_directories


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ({}, "/data"),
        ({"data_directories": 1}, "/data"),
        ({"data_directories": 2}, "/data/dir-1,/data/dir-2"),
    ],
)
def test_of_broker(options: dict[str, int], listed: str) -> None:
    """A single directory is the broker's folder itself; several are folders in it."""
    assert data_directories.of_broker(PurePosixPath("/data"), options) == listed


def test_names_are_those_of_the_list() -> None:
    """A directory's name is the end of its path in ``log.dirs``."""
    listed = data_directories.of_broker(PurePosixPath("/data"), {"data_directories": 3})
    names = [PurePosixPath(path).name for path in listed.split(",")]
    assert names == [data_directories.name(number) for number in (1, 2, 3)]
