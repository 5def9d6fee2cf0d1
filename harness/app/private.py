"""Makes everything that faultline writes private to its user, whatever the umask is.

A run's folder contains settings, keys and brokers' data. Within :func:`writing` this process and
its children (nodes, Spark, a cluster's keeper) create folders with mode 0700 and files with mode
0600. Files that the user requests elsewhere, such as JUnit XML for another user's CI service, are
created with the user's own umask (:func:`as_asked`).
"""

import contextlib
import os
from collections.abc import Iterator

UMASK = 0o077

_users: list[int] = []
"""The umask before each active block of :func:`writing`."""


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
    """Within :func:`writing`: create files with the user's own umask."""
    before = os.umask(_users[0]) if _users else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)
