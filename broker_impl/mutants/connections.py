"""Bugs in how brokers answer the requests of a connection."""

from collections.abc import Sequence

from broker_impl.mutants import mutant
from broker_impl.server.line import Request


@mutant(
    "responses-overtake",
    of="broker_impl.server.line:next_answered",
    source="Kafka's protocol",
    kind="mutation",
    symptom="invariant:answered-in-order",
    schedule="A client sends a second request while the first one waits in the purgatory.",
)
def next_answered(line: Sequence[Request]) -> Request | None:
    """A broker sends each response as soon as it is ready, also before those of earlier requests.

    Most clients take it for the response to their oldest request, find another correlation id, and
    close the connection, with all that is in flight on it.
    """
    return next((request for request in line if request.is_answered), None)
