"""Checks each request against the ACLs before its handler, as Kafka 2.8 does.

A guard removes from a request what its client may not use, lets the handler process the rest, and
adds the errors to the response. Without an authorizer no guard runs.
"""

from typing import Any

from broker_impl.api.access.guard import Call, Check
from broker_impl.api.access.table import GUARDS
from broker_impl.api.registry import Api, RequestContext
from broker_impl.security.acls import Authorizer

__all__ = ["GUARDS", "handle"]


def handle(authorizer: Authorizer, row: Api, context: RequestContext, request: Any) -> Any:
    """Return the answer to a request: the handler's, as far as the client may request it."""

    def call(allowed: Any) -> Any:
        return row.handle(context, allowed)

    follow_up: Call = call
    return GUARDS[row.key](Check(authorizer, context), request, follow_up)
