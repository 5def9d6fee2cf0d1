"""The table of served requests, from which both dispatch and ApiVersions read."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from broker_impl.api.services import Services
from broker_impl.security.sessions import OpenSession, Session


class RequestContext(msgspec.Struct, frozen=True):
    """The sender and the circumstances of a request."""

    services: Services
    listener: str
    """The listener on which the request arrived; Metadata returns the endpoints of this name."""
    client_id: str | None
    client_address: str
    connection: int
    """The connection's number; connections are numbered in the order of arrival."""
    version: int
    answer_room: Callable[[], int]
    """The maximum size of a response in bytes; small while slow readers hold much memory."""
    session: Session = msgspec.field(default_factory=OpenSession)
    """The authentication of the connection."""


Answer = Any
"""A response message; None if none is sent (Produce with acks=0); or an awaitable of one."""
Handler = Callable[[RequestContext, Any], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Api:
    """A row of the table."""

    key: int
    served: range
    advertised: range
    between_brokers: bool
    """Served and advertised on the inter-broker listener only."""
    handle: Handler
    holds_line: bool = False
    """While one such request is parked, later requests on the same connection wait."""
    private_from: int | None = None
    """Versions from here on are served on the inter-broker listener only, and not advertised."""


APIS: Final[dict[int, Api]] = {}


class CloseConnection(Exception):
    """Close the connection instead of answering; the message says why."""


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

    advertise_from: the lowest version in ApiVersions, if it differs from the lowest served one.
    """

    def register(handler: Handler) -> Handler:
        assert key not in APIS, f"API {key} has two handlers"
        first = versions.start if advertise_from is None else advertise_from
        stop = versions.stop if private_from is None else private_from
        APIS[key] = Api(
            *(key, versions, range(first, stop), between_brokers, handler, holds_line),
            private_from,
        )
        return handler

    return register
