"""One table of the requests that are served: dispatch and ApiVersions both read it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_impl.api.services import Services


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks, and how."""

    services: Services
    listener: str
    """The listener the request came in on; Metadata answers with the endpoints of its name."""
    client_id: str | None
    client_address: str
    connection: int
    """Which one it came by: connections are counted as they come."""
    version: int
    answer_room: Callable[[], int]
    """Bytes that an answer may have by now; few while slow readers hold many."""


Answer = Any
"""A response message; None where none is due (Produce with acks=0); or an awaitable of one."""
Handler = Callable[[RequestContext, Any], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Api:
    """A row of the table."""

    key: int
    served: range
    advertised: range
    between_brokers: bool
    """Only for the inter-broker listener: neither served nor advertised elsewhere."""
    handle: Handler
    holds_line: bool = False
    """While one is parked, requests behind it on the same connection wait."""
    private_from: int | None = None
    """Versions from here on are for brokers: not advertised, and served on their listener only."""


APIS: Final[dict[int, Api]] = {}


class CloseConnection(Exception):
    """The only answer left is to hang up; the message says why."""


def api(
    key: int,
    versions: range,
    *,
    advertise_from: int | None = None,
    between_brokers: bool = False,
    holds_line: bool = False,
    private_from: int | None = None,
) -> Callable[[Handler], Handler]:
    """Register a handler for one API.

    advertise_from: lower bound that ApiVersions shows when it differs from what is served.
    """

    def register(handler: Handler) -> Handler:
        assert key not in APIS, f"API {key} is handled twice"
        first = versions.start if advertise_from is None else advertise_from
        stop = versions.stop if private_from is None else private_from
        APIS[key] = Api(
            *(key, versions, range(first, stop), between_brokers, handler, holds_line),
            private_from,
        )
        return handler

    return register
