"""The rule by which the rights of a consumer are checked at every fetch."""

import msgspec

from broker_impl.api.fetch_sessions import rules as sessions
from broker_impl.wire.messages.fetch_request import FetchRequest


def as_checked(request: FetchRequest) -> FetchRequest:
    """Return a consumer's fetch as one whose partitions are all checked: without a new session.

    An incremental fetch does not name the partitions of its session, so they would not be checked.
    """
    if request.session_epoch != sessions.CREATE:
        return request
    return msgspec.structs.replace(
        request, session_id=sessions.NO_SESSION, session_epoch=sessions.CLOSE
    )
