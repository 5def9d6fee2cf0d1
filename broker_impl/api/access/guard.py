"""What all guards share: the client's rights, requests in parts, and answers that come later."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from broker_impl.api.purgatory import resolve
from broker_impl.api.registry import RequestContext
from broker_impl.security.acls import (
    CLUSTER_NAME,
    Authorizer,
    Operation,
    ResourceType,
    Subject,
)

Call = Callable[[Any], Any]
"""Runs the handler with a request; the answer may be awaitable."""


class Check:
    """The rights of the client that sent a request."""

    def __init__(self, authorizer: Authorizer, context: RequestContext) -> None:
        self.context = context
        self._authorizer = authorizer
        self._subject = Subject(context.session.principal, context.client_address)

    def topic(self, operation: Operation, name: str) -> bool:
        """Whether the client may perform the operation on a topic."""
        return self._allows(operation, ResourceType.TOPIC, name)

    def group(self, operation: Operation, name: str) -> bool:
        """Whether the client may perform the operation on a group."""
        return self._allows(operation, ResourceType.GROUP, name)

    def transactional_id(self, operation: Operation, name: str) -> bool:
        """Whether the client may perform the operation on a transactional id."""
        return self._allows(operation, ResourceType.TRANSACTIONAL_ID, name)

    def cluster(self, operation: Operation) -> bool:
        """Whether the client may perform the operation on the cluster."""
        return self._allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def permitted(self, supported: int, may: Callable[[Operation], bool]) -> int:
        """Return the bits of the supported operations that the client may perform (KIP-430).

        ``supported`` is negative if the request did not ask for them, and is returned then.
        """
        if supported < 0:
            return supported
        return sum(1 << each for each in Operation if supported >> each & 1 and may(each))

    def permitted_of_cluster(self, supported: int) -> int:
        """Return the bits of the operations on the cluster that the client may perform (KIP-430).

        A client that may not describe the cluster sees none of them.
        """
        if supported >= 0 and not self.cluster(Operation.DESCRIBE):
            return 0
        return self.permitted(supported, self.cluster)

    def any_topic(self, operation: Operation) -> bool:
        """Whether the client may perform the operation on some topic."""
        return self._authorizer.allows_any(self._subject, operation, ResourceType.TOPIC)

    def _allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._authorizer.allows(self._subject, operation, kind, name)


Guard = Callable[[Check, Any, Call], Any]
"""Returns the answer to a request, or an awaitable of it."""


class Parts(NamedTuple):
    """Where a request and its response have their parts, such as topics."""

    requested: str
    """The field of the request that has a list of parts."""
    name: str
    """The field of a part that has its name; empty if the part is the name."""
    answered: str
    """The field of the response that has a list of the parts' results."""
    response: Callable[[], Any]
    denied: Callable[[Any], Any]
    """Returns the result of a part that the client may not use."""

    def name_of(self, part: Any) -> str:
        """Return the name of a part."""
        return str(getattr(part, self.name)) if self.name else str(part)


def divided(parts: Iterable[Any], may: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Return the parts that the client may use, and the others, both in the order of the request.

    Each part is judged once, so that none can be in both lists or in neither.
    """
    allowed: list[Any] = []
    others: list[Any] = []
    for part in parts:
        (allowed if may(part) else others).append(part)
    return allowed, others


def in_parts(request: Any, parts: Parts, may: Callable[[str], bool], call: Call) -> Any:
    """Let the handler process the parts that the client may use, and add errors for the others."""
    allowed, others = divided(
        getattr(request, parts.requested), lambda part: may(parts.name_of(part))
    )
    if not others:
        return call(request)
    denied = [parts.denied(part) for part in others]
    if not allowed:
        return extended(parts.response(), parts.answered, denied)
    rest = msgspec.structs.replace(request, **{parts.requested: allowed})
    return then(call(rest), lambda answer: extended(answer, parts.answered, denied))


def all_denied(request: Any, parts: Parts) -> Any:
    """Return the response in which every part is denied."""
    return in_parts(request, parts, lambda _: False, lambda _: parts.response())


def filtered(answer: Any, answered: str, keep: Callable[[Any], bool]) -> Any:
    """Remove from a list of the response what the client may not see."""
    setattr(answer, answered, [part for part in getattr(answer, answered) if keep(part)])
    return answer


def extended(answer: Any, answered: str, denied: list[Any]) -> Any:
    """Append the results of denied parts to a list of the response."""
    setattr(answer, answered, [*getattr(answer, answered), *denied])
    return answer


def then(answer: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a change to an answer, now or when it comes; an answer of None stays None."""
    if inspect.iscoroutine(answer):
        return _later(answer, change)
    if isinstance(answer, asyncio.Future):
        return _chained(answer, change)
    return None if answer is None else change(answer)


async def _later(answer: Any, change: Callable[[Any], Any]) -> Any:
    return then(await answer, change)


def _chained(answer: "asyncio.Future[Any]", change: Callable[[Any], Any]) -> "asyncio.Future[Any]":
    """Return a future of the changed answer; cancelling it cancels the parked request."""
    changed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def settle(done: "asyncio.Future[Any]") -> None:
        if not changed.done():
            resolve(changed, lambda: then(done.result(), change))

    def forward(done: "asyncio.Future[Any]") -> None:
        if done.cancelled():
            answer.cancel()

    answer.add_done_callback(settle)
    changed.add_done_callback(forward)
    return changed
