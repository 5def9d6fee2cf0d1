"""Replace segments by their compacted copy, so that a crash at any point loses nothing.

The files of a copy end in ``.cleaned`` until they are synced, and in ``.swap`` from then on. The
file of its batches is renamed last, and its name contains the end of the replaced segments, because
the copy's last batch may end before it. Once that name is durable the copy counts, whatever is left
of those segments, and the next start completes the replacement. A ``.cleaned`` file is removed.
"""

import logging
import re
from typing import Final

from broker_impl.log.disk import Disk
from broker_impl.log.segment import LOG_SUFFIX, SUFFIXES, file_name
from broker_impl.wire.types import Offset

logger = logging.getLogger(__name__)

COPY_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

_FILE: Final = re.compile(r"(\d{20})(\.[a-z]+)")
_SWAP: Final = re.compile(r"(\d{20})\.(\d{20})\.log\.swap")


def swap(disk: Disk, directory: str, base: Offset, end: Offset) -> None:
    """Replace the segments from ``base`` up to ``end`` by the synced copy at ``base``.

    Durable on return.
    """
    for suffix in reversed(SUFFIXES):
        if suffix == LOG_SUFFIX:
            disk.fsync_dir(directory)
        path = f"{directory}/{file_name(base, suffix)}"
        disk.rename(path + COPY_SUFFIX, _swapped(path, suffix, end))
    disk.fsync_dir(directory)
    _finish(disk, directory, base, end)


def discard(disk: Disk, directory: str, base: Offset) -> None:
    """Remove the ``.cleaned`` files of a copy at ``base``."""
    for suffix in SUFFIXES:
        path = f"{directory}/{file_name(base, suffix)}{COPY_SUFFIX}"
        if disk.exists(path):
            disk.remove(path)


def settle(disk: Disk, directory: str) -> None:
    """Complete the replacements that a crash interrupted, and remove other copies.

    Durable on return.
    """
    names = disk.list(directory)
    left = [name for name in names if name.endswith((COPY_SUFFIX, SWAP_SUFFIX))]
    if not left:
        return
    for found in filter(None, map(_SWAP.fullmatch, left)):
        if counts(found.string):
            base, end = int(found[1]), int(found[2])
            logger.info(
                "%s: the compacted segment from %d to %d replaces the old ones",
                directory,
                base,
                end,
            )
            _finish(disk, directory, base, end)
    for name in left:
        if disk.exists(f"{directory}/{name}"):
            disk.remove(f"{directory}/{name}")
    disk.fsync_dir(directory)


def counts(name: str) -> bool:
    """Does a copy of this name replace the segments that it was made from?

    A ``.swap`` file does, because some of those segments may be removed already.
    """
    return name.endswith(SWAP_SUFFIX)


def _finish(disk: Disk, directory: str, base: Offset, end: Offset) -> None:
    """Remove the segments after the first, then rename the copy's files over those of the first.

    The file of batches is renamed last, so that after an interruption this function runs again.
    """
    for name in disk.list(directory):
        found = _FILE.fullmatch(name)
        if found and found[2] in SUFFIXES and base < int(found[1]) < end:
            disk.remove(f"{directory}/{name}")
    disk.fsync_dir(directory)
    for suffix in reversed(SUFFIXES):
        path = f"{directory}/{file_name(base, suffix)}"
        if suffix == LOG_SUFFIX:
            disk.fsync_dir(directory)
        if disk.exists(_swapped(path, suffix, end)):
            disk.rename(_swapped(path, suffix, end), path)
    disk.fsync_dir(directory)


def _swapped(path: str, suffix: str, end: Offset) -> str:
    """The name of a copy's file while the copy replaces segments."""
    if suffix == LOG_SUFFIX:
        path = f"{path.removesuffix(LOG_SUFFIX)}.{end:020d}{LOG_SUFFIX}"
    return path + SWAP_SUFFIX
