"""The rule by which a broker recognizes the log of a deleted topic: its topic id (KIP-516)."""

from uuid import UUID

from broker_impl.wire.types import NO_UUID


def is_of_deleted_topic(known: UUID, ordered: UUID, is_new: bool) -> bool:
    """Return whether a log belongs to a former topic of the same name, which was deleted.

    ``known`` is the topic id in the log's directory, ``ordered`` the id in the controller's
    request; NO_UUID: there is none. A log without an id is of an earlier release: it belongs to the
    topic in the request, unless that topic has just been created (``is_new``).
    """
    if ordered == NO_UUID:
        return False  # version 4 of the request
    if known == NO_UUID:
        return is_new
    return known != ordered
