"""What a coordinator must return of committed offsets.

- ``fetched-as-committed``: an OffsetFetch is answered with offsets that were once committed so for
  this group and partition, and with those of all its partitions if all were asked for. A consumer
  that gets another one skips records, or reads again what it has read.

It does not depend on which commits have succeeded, so it holds after any failure.
"""

from collections.abc import Collection
from typing import NamedTuple

Key = tuple[str, str]
"""A group and a partition."""


class Commit(NamedTuple):
    """What was committed for one partition."""

    offset: int
    leader_epoch: int
    metadata: str


class Commits:
    """All that was ever committed in a run, also what was refused or lost."""

    def __init__(self) -> None:
        self._sent: dict[Key, set[Commit]] = {}

    def sent(self, key: Key, commit: Commit) -> None:
        """A coordinator has received a commit."""
        self._sent.setdefault(key, set()).add(commit)

    def other(self, key: Key, found: Commit) -> str | None:
        """Return why this cannot be the committed offset, or ``None``."""
        if found in self._sent.get(key, ()):
            return None
        return (
            f"offset {found.offset} with leader epoch {found.leader_epoch} and metadata "
            f"{found.metadata!r} was returned, which was never committed"
        )


def lacking(stored: Collection[str], returned: Collection[str]) -> str | None:
    """Return which partitions are missing from the offsets of all partitions, or ``None``."""
    missing = sorted(set(stored) - set(returned))
    return f"the offsets of {', '.join(missing)} are missing" if missing else None
