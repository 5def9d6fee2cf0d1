"""A batch: the events that were recorded since the batch before, for a judge that works meanwhile.

A batch names a range of a history's file, and has what its events need from earlier ones: the
invocations of operations that were open when it began, and what concerns all partitions.
"""

import msgspec


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A range of adjacent events."""

    number: int
    """The first batch of a run has 0."""
    path: str
    """The file of JSON lines."""
    begin: int
    """The position of the first event in the file, in bytes."""
    end: int
    """The position after the last event."""
    now_ns: int
    """The time of the last event."""
    open_event: int
    """The oldest invocation of an operation that may still deliver records at the end of the batch;
    the index after the last event if there is none."""
    open_ns: int
    """The time of that invocation."""
    carried: tuple[str, ...] = ()
    """The invocations, one line each, of operations that were open at the beginning."""
    keys: tuple[str, ...] = ()
    """The partitions that earlier batches have named."""
    new_keys: tuple[str, ...] = ()
    """The partitions that this batch is the first to name."""
    context: tuple[str, ...] = ()
    """For new partitions: earlier events that concern all partitions, one line each."""


def empty(path: str, keys: tuple[str, ...]) -> Batch:
    """Return a batch without events, which shows that a judge works."""
    return Batch(number=0, path=path, begin=0, end=0, now_ns=0, open_event=0, open_ns=0, keys=keys)
