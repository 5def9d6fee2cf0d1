"""``fetched-when-readable``: a fetch of a consumer leaves out no records that it has room for.

A consumer that polls is given each record up to the high watermark, or up to the last stable offset
with ``isolation.level=read_committed`` (KIP-98). In a fetch session (KIP-227) a request names only
what changes, and is nevertheless about all partitions of the session; one that the broker does not
read again starves its reader until something else happens. Only a limit of bytes may keep the next
batch of a partition from being returned, and not all of them: one is returned in any case (KIP-74).
"""

from typing import NamedTuple


class Batch(NamedTuple):
    """The first batch that a reader lacks."""

    next_offset: int
    """The offset after its last record."""
    size: int
    """In bytes."""


class Reader(NamedTuple):
    """A partition of which a fetch has returned no records, and no error."""

    offset: int
    """From which it was fetched."""
    then: range
    """Which offsets were readable when the request arrived."""
    now: range
    """The same when it was answered."""

    @property
    def end(self) -> int:
        """The offset before which records were readable all the time."""
        return min(self.then.stop, self.now.stop)

    @property
    def is_behind(self) -> bool:
        """Whether there were readable offsets."""
        return self.offset in self.then and self.offset in self.now


def unread(reader: Reader, batch: Batch | None, room: int | None) -> str | None:
    """Return why a fetch should have returned records of a partition, or ``None``.

    ``batch`` may lack: compaction may remove the last records. ``room``: how many bytes the limits
    have left; None: the fetch has returned no records at all.
    """
    if not reader.is_behind or batch is None or batch.next_offset > reader.end:
        return None
    if room is not None and batch.size > room:
        return None
    return (
        f"a fetch from offset {reader.offset} returned no records, although those up to "
        f"{reader.end} were readable"
    )
