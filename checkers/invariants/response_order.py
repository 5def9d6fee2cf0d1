"""``answered-in-order``: a broker answers the requests of a connection one after the other.

A client matches a response to the oldest request that has none: many do not look for another
one, and close the connection if the correlation id differs. A Produce with acks=0 has no response,
which its header does not show; so a Produce may be left out, and is not answered after that.
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
        """Return what is wrong about a response that the broker has sent, or None."""
        passed = []
        while self._open:
            api_key, oldest = self._open.popleft()
            if oldest == number:
                break
            passed.append((api_key, oldest))
        else:
            self._open.extend(passed)
            if number in self._left_out:
                return f"request {number} was answered after a later one"
            return f"the response {number} belongs to no open request"
        self._left_out.update(each for api_key, each in passed if api_key == PRODUCE)
        overtaken = [(api_key, each) for api_key, each in passed if api_key != PRODUCE]
        if not overtaken:
            return None
        self._open.extendleft(reversed(overtaken))
        api_key, oldest = overtaken[0]
        return f"request {number} was answered before the earlier request {oldest} of API {api_key}"
