"""What faultline writes belongs to its user alone, whatever the umask is.

A run's folder holds settings, keys and brokers' data. Within :func:`writing` this process and all
that it starts (nodes, Spark, a cluster's keeper) make folders of mode 0700 and files of mode 0600.
Files that the user asked for elsewhere, such as JUnit XML for another user's CI service, get the
user's own umask back (:func:`as_asked`).
"""

import contextlib
import os
from collections.abc import Iterator

UMASK = 0o077

_users: list[int] = []
"""The umasks before each block of :func:`writing` that this process is in."""


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Make new files and folders private within the block."""
    _users.append(os.umask(UMASK))
    try:
        yield
    finally:
        os.umask(_users.pop())


@contextlib.contextmanager
def as_asked() -> Iterator[None]:
    """Within :func:`writing`: make files with the umask that the user has set."""
    before = os.umask(_users[0]) if _users else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)
