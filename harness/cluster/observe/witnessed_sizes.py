"""Passes the sizes of what simulated brokers return to `checkers.invariants.fetch_sizes`."""

from collections.abc import Callable
from typing import Any

from broker_impl.errors import WireError
from broker_impl.wire.batch import batches
from broker_impl.wire.messages.fetch_request import FetchRequest
from broker_impl.wire.messages.fetch_response import FetchResponse
from broker_impl.wire.types import TopicPartition
from checkers.invariants import fetch_sizes
from checkers.invariants.fetch_sizes import Part
from model.violation import Violation

OnAnswer = Callable[[Any], None]


class SizeWitness:
    """Sees the fetches of clients and followers from one life of a broker.

    Args:
        number: the broker's id.
        bytes_max: the broker's ``fetch.max.bytes``.
        now_ns: returns the history's time.
        report: is called with each violation.
    """

    def __init__(
        self,
        number: int,
        bytes_max: int,
        *,
        now_ns: Callable[[], int],
        report: Callable[[Violation], None],
    ) -> None:
        self._number = number
        self._bytes_max = bytes_max
        self._now_ns = now_ns
        self._report = report

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
            self._report(
                Violation(
                    invariant="fetched-within-limits",
                    time_ns=self._now_ns(),
                    key=key,
                    brokers=(self._number,),
                    why=f"broker {self._number}, {key}: {why}",
                )
            )


def _sizes(records: Any) -> list[int] | None:
    """Return the size of each batch in a response; None: the bytes are not whole batches."""
    if isinstance(records, bytes | bytearray | memoryview):
        records = [records]
    sizes = []
    for buffer in records or ():
        try:
            sizes += [header.size for _, header in batches(buffer)]
        except WireError:
            return None
    return sizes
