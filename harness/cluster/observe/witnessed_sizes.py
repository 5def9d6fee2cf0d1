"""Passes the sizes of what simulated brokers return to `checkers.invariants.fetch_sizes`."""

from collections.abc import Callable
from typing import Any

from broker_impl.errors import WireError
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse
from broker_impl.wire.types import TopicPartition
from checkers.invariants import fetch_sizes
from checkers.invariants.fetch_sizes import Part
from harness.cluster.observe.batch_headers import headers
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class SizeWitness:
    """Sees the fetches of clients and followers from one life of a broker.

    Args:
        reporter: reports violations in the broker's answers.
        bytes_max: the broker's ``fetch.max.bytes``.
    """

    def __init__(self, reporter: Reporter, bytes_max: int) -> None:
        self._reporter = reporter
        self._bytes_max = bytes_max

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        if not isinstance(request, FetchRequest):
            return None
        limit = min(request.max_bytes, self._bytes_max)
        limits = {
            TopicPartition(topic.topic, row.partition): row.partition_max_bytes
            for topic in request.topics
            for row in topic.partitions
        }

        def fetched(answer: FetchResponse) -> None:
            parts = []
            for topic in answer.responses:
                for data in topic.partitions:
                    tp = TopicPartition(topic.topic, data.partition_index)
                    own = limits.get(tp, fetch_sizes.UNKNOWN)
                    sizes = _sizes(data.records)
                    if sizes is None:
                        return  # the disk is damaged
                    parts.append(Part(str(tp), own, sizes))
            self._found(fetch_sizes.beyond(limit, parts))

        return fetched

    def _found(self, found: tuple[str, str] | None) -> None:
        if found is not None:
            key, why = found
            self._reporter.found("fetched-within-limits", why, about=key, key=key)


def _sizes(records: Any) -> list[int] | None:
    """Return the size of each batch in a response; None: the bytes are not whole batches."""
    try:
        return [header.size for header in headers(records)]
    except WireError:
        return None
