"""The requests of a connection that have no response yet, in the order of their arrival.

Clients match each response to the oldest request that has none, so responses keep that order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker_impl.server.throttling import Charge
from broker_impl.wire.framing import RequestHeader


@dataclass(eq=False, slots=True)
class Request:
    """A request in the order of responses."""

    header: RequestHeader
    version: int
    size: int
    """The bytes that the request holds; 0 once it is parked or answered."""
    kind: int
    """The API key, or ``FOLLOWER_FETCH``."""
    arrived_at: float
    """Seconds of the loop."""
    answer: Any = None
    is_answered: bool = False
    charge: Charge | None = None
    """What it is charged with, if clients have quotas."""
    is_silent: bool = False
    """No response is sent (Produce with acks=0)."""
    is_raw: bool = False
    """The request is a token without a header (SaslHandshake v0)."""
    on_answer: Callable[[Any], None] | None = None
    """What the witness wants to be called with the answer."""


def next_answered(line: Sequence[Request]) -> Request | None:
    """Return the request whose response is sent next; None while the oldest has no answer."""
    return line[0] if line and line[0].is_answered else None
