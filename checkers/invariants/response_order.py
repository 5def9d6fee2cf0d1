"""``answered-in-order``: a broker answers the requests of a connection one after the other.

A client matches a response to the oldest request that has none: many do not look for another
one, and close the connection if the correlation id differs. A Produce with acks=0 has no response,
which its header does not show: so any Produce may have one or none, but not after a later response.
"""

from collections import deque
from typing import Final

PRODUCE: Final = 0
"""The API key of the requests that may have no response."""
HANDSHAKE: Final = 17
"""The API key of SaslHandshake; after v0, tokens without a header follow."""


class ResponseOrder:
    """The requests of one connection that have no response yet, by correlation id."""

    def __init__(self) -> None:
        self._open: deque[tuple[int, int]] = deque()
        self._left_out: set[int] = set()
        """Produce requests after which another request was answered."""

    def asked(self, api_key: int, number: int) -> None:
        """Note a request that the broker has received."""
        self._open.append((api_key, number))

    def answered(self, number: int) -> str | None:
        """Return what is wrong about a response that the broker has sent, or None.

        After an error the connection cannot be judged any more.
        """
        while self._open:
            api_key, oldest = self._open.popleft()
            if oldest == number:
                return None
            if api_key != PRODUCE:
                return (
                    f"request {number} was answered before the earlier request {oldest} of API "
                    f"{api_key}"
                )
            self._left_out.add(oldest)
        if number in self._left_out:
            return f"request {number} was answered after a later one"
        return f"the response {number} belongs to no open request"
