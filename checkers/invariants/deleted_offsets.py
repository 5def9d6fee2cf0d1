"""Which committed offsets a coordinator must no longer return, because they were deleted.

- ``deleted-offset-returned``: an OffsetFetch is not answered with an offset that was committed
  before its group or its topic was deleted, and not again since. A consumer that gets it skips
  records, or reads again what it has read.

Only what is certain is judged. A commit counts as deleted if it was acknowledged before the
deletion was requested, and no commit of the same offset is open: of a commit without a successful
answer, and of one in a transaction, it is not known when it takes effect. Coordinators that cannot
know of the deletion are not judged: their logs lack the last record that the coordinator had when
the deletion was complete, as that of a replaced coordinator, or after a power loss.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

Key = tuple[str, str]
"""A group and a partition."""
Standing = Mapping[Key, Mapping[int, int]]
"""Acknowledged offsets by group and partition, each with the number of its acknowledgement."""


class LastRecord(NamedTuple):
    """A record that a log has, and with it all records before it."""

    offset: int
    epoch: int


class Deletion(NamedTuple):
    """A deletion that is complete."""

    what: str
    """What was deleted: "group" or "topic"."""
    time_ns: int
    """When it was known to be complete."""
    last: LastRecord
    """The last record that was committed in the coordinator's log then."""


class CommittedOffsets:
    """The offsets that all coordinators of a run have accepted, and which of them are deleted."""

    def __init__(self) -> None:
        self._open: Counter[tuple[Key, int]] = Counter()
        self._numbers = itertools.count()
        self._accepted: dict[Key, dict[int, int]] = {}
        self._deleted: dict[Key, dict[int, Deletion]] = {}

    def sent(self, key: Key, offset: int) -> None:
        """A coordinator received a commit; from now on the offset may be returned."""
        self._open[key, offset] += 1
        self._accepted.get(key, {}).pop(offset, None)
        self._deleted.get(key, {}).pop(offset, None)

    def accepted(self, key: Key, offset: int) -> None:
        """A commit outside of transactions was acknowledged."""
        self._open[key, offset] -= 1
        if not self._open[key, offset]:
            del self._open[key, offset]
            self._accepted.setdefault(key, {})[offset] = next(self._numbers)

    def of_groups(self, groups: Collection[str]) -> Standing:
        """Return the offsets that the deletion of these groups deletes if it is requested now."""
        return {key: dict(known) for key, known in self._accepted.items() if key[0] in groups}

    def of_partitions(self, partitions: Collection[str]) -> Standing:
        """Return the same for the deletion of partitions."""
        return {key: dict(known) for key, known in self._accepted.items() if key[1] in partitions}

    def delete(self, standing: Standing, deletion: Deletion) -> None:
        """Offsets of ``standing`` are deleted, unless they were sent again since."""
        for key, offsets in standing.items():
            accepted = self._accepted.get(key, {})
            for offset, number in offsets.items():
                if accepted.get(offset) == number:
                    del accepted[offset]
                    self._deleted.setdefault(key, {})[offset] = deletion

    def deletion(self, key: Key, offset: int) -> Deletion | None:
        """Return the deletion of an offset."""
        return self._deleted.get(key, {}).get(offset)


def returned(
    deletion: Deletion | None, offset: int, asked_ns: int, epoch_at_last: int | None
) -> str | None:
    """Return why a coordinator must not have returned this offset, or ``None``.

    deletion: that of the offset, when the coordinator answered. asked_ns: when the request arrived.
    epoch_at_last: the leader epoch, in the log of this coordinator, of the record at the offset of
    ``deletion.last``; None if its log ends before.
    """
    if deletion is None or asked_ns <= deletion.time_ns or epoch_at_last != deletion.last.epoch:
        return None
    return (
        f"offset {offset} was returned, although its {deletion.what} was deleted after the commit"
    )
