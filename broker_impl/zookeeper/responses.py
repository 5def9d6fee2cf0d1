"""The bodies of the replies to writes."""

from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import (
    MULTI_END,
    Create2Response,
    MultiHeader,
    MultiRequest,
    Nothing,
    Number,
    Op,
    PathResponse,
    StatResponse,
)
from broker_impl.zookeeper.tree import Outcome


def response(op: int, request: Record | None, outcome: Outcome) -> Record:
    """Return the body of the reply to a write that was executed."""
    if isinstance(request, MultiRequest):
        return _MultiResponse(request, outcome.parts)
    return _single(op, outcome)


def _single(op: int, outcome: Outcome) -> Record:
    if op == Op.CREATE:
        return PathResponse(outcome.path)
    if outcome.stat is None:
        return Nothing()
    if op in (Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL):
        return Create2Response(outcome.path, outcome.stat)
    return StatResponse(outcome.stat)


class _MultiResponse(Record, frozen=True):
    """A result per operation; after a failure, an error per operation."""

    request: MultiRequest
    outcomes: tuple[Outcome, ...]

    def write(self, out: bytearray) -> None:
        failed = any(outcome.error for outcome in self.outcomes)
        for (op, _), outcome in zip(self.request.operations, self.outcomes, strict=True):
            if failed:
                MultiHeader(Op.ERROR, False, outcome.error).write(out)
                Number(outcome.error).write(out)
            else:
                MultiHeader(op, False, 0).write(out)
                _single(op, outcome).write(out)
        MULTI_END.write(out)
