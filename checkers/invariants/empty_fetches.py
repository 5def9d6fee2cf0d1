"""``fetched-when-readable``: a fetch of a consumer that returns no records has found none.

A consumer that polls is given each record up to the high watermark, or up to the last stable offset
with ``isolation.level=read_committed`` (KIP-98). In a fetch session (KIP-227) a request names only
what changes, and is nevertheless about all partitions of the session; one that the broker does not
read again starves its reader until something else happens.
"""

from collections.abc import Mapping


def unread(
    offsets: Mapping[str, int], then: Mapping[str, range], now: Mapping[str, range]
) -> tuple[str, str] | None:
    """Return a partition with records that a fetch should have returned, and why, or ``None``.

    Args:
        offsets: from which each partition was fetched.
        then: which offsets of each partition were readable when the request arrived.
        now: the same when it was answered without records, and without an error.
    """
    for key, offset in offsets.items():
        if offset in then.get(key, ()) and offset in now.get(key, ()):
            return key, (
                f"a fetch from offset {offset} returned no records, although those up to "
                f"{then[key].stop} were readable"
            )
    return None
