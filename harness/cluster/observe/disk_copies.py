"""Copies of simulated disks: what a program would find after a kill, and after a loss of power.

A kill loses nothing that was written. A loss of power takes all bytes and names that were not
synced; a truncation or removal that was not synced counts as done, although a disk may undo it. The
copies are made without an event, and what is loaded from them is not logged.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto

from broker_impl.log.memory_disk import MemoryDisk
from harness.simulation.disk_inode import Inode
from harness.simulation.disk_names import Directory, Node


class Loss(Enum):
    """What the copied program loses."""

    KILL = auto()
    POWER = auto()


def copied(
    directory: Directory, loss: Loss, wanted: Callable[[str], bool] = lambda name: True
) -> MemoryDisk:
    """Copy a directory, with everything in those of its files and directories that are wanted."""
    disk = MemoryDisk()
    for path, node in _walk(directory, loss, "", wanted):
        if isinstance(node, Directory):
            disk.make_dir(path)
        else:
            disk.write(path, _content(node, loss))
    return disk


@contextmanager
def silence() -> Iterator[None]:
    """Log nothing meanwhile."""
    former = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(former)


def _walk(
    directory: Directory, loss: Loss, prefix: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Node]]:
    """Yield everything in a directory, each directory before its content."""
    for name, node in _names(directory, loss).items():
        if wanted(name):
            yield prefix + name, node
            if isinstance(node, Directory):
                yield from _walk(node, loss, f"{prefix}{name}/", lambda name: True)


def _names(directory: Directory, loss: Loss) -> Mapping[str, Node]:
    return directory.names if loss is Loss.KILL else directory.durable


def _content(file: Inode, loss: Loss) -> bytes:
    return bytes(file.data) if loss is Loss.KILL else file.durable
