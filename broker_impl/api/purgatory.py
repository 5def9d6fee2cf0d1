"""Parked requests (Kafka's purgatory): each is tried again when one of its partitions changes.

A request is parked at places: its partitions, or one place that stands for many partitions, such as
a fetch session.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from broker_impl.wire.types import TopicPartition

Attempt = Callable[[bool], Any]
"""Called with ``expired``; returns the answer, or None to keep waiting (not if expired)."""
Moved = Callable[[Sequence[TopicPartition]], None]
"""Called before an attempt, with the partitions that have changed since the previous attempt."""


def _no_matter(moved: Sequence[TopicPartition]) -> None:
    """Ignore the changed partitions, for an attempt that checks all of them."""


class Parked(asyncio.Future[Any]):
    """One parked request: the future of its answer. Cancelling it removes the request."""

    def __init__(
        self,
        places: tuple[Hashable, ...],
        attempt: Attempt,
        timeout_s: float,
        moved: Moved,
        on_end: Callable[["Parked"], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop=loop)
        self.places = places
        self.moved = moved
        self._attempt = attempt
        self._on_end = on_end
        self._is_trying = False
        self._on_answer: Callable[[Parked], None] | None = None
        self._timer = loop.call_later(timeout_s, self.attempt, True)

    def on_answer(self, call: Callable[["Parked"], None]) -> None:
        """Call this once with the answered request, before the next request is tried.

        The callbacks of a future are called a turn of the event loop later. Until then, the other
        requests would be tried whose partitions have changed together with those of this one. The
        function must neither raise nor handle another request.
        """
        assert self._on_answer is None, "one function receives the answer"
        if self.done():
            self.add_done_callback(call)
        else:
            self._on_answer = call

    def attempt(self, expired: bool = False) -> None:
        """Try to answer the request.

        An attempt that notifies its own partition does not start another attempt.
        """
        if self._is_trying or self.done():
            return
        self._is_trying = True
        try:
            answer = self._attempt(expired)
            assert answer is not None or not expired, "an expired request must be answered"
        except Exception as error:  # noqa: BLE001 - the waiting request handles it
            self.set_exception(error)
        else:
            if answer is not None:
                self.set_result(answer)
        finally:
            self._is_trying = False
        if self.done():
            call = self._on_answer
            self._end()
            if call is not None:
                call(self)

    def cancel(self, msg: Any = None) -> bool:
        """Stop waiting without an answer; False if the request has its answer."""
        was_cancelled = super().cancel(msg)
        if was_cancelled:
            self._end()
        return was_cancelled

    def _end(self) -> None:
        self._timer.cancel()
        self._on_answer = None
        self._on_end(self)


def _no_places(partition: TopicPartition) -> Iterable[Hashable]:
    """Return no place: every request is parked at its partitions."""
    return ()


class Waiting:
    """All parked requests of a broker, by place, in the order of arrival."""

    def __init__(self, shared: Callable[[TopicPartition], Iterable[Hashable]] = _no_places) -> None:
        """``shared`` returns the other places at which requests wait for this partition."""
        self._shared = shared
        self._parked: dict[Hashable, dict[Parked, None]] = {}

    def park(
        self,
        places: Collection[Hashable],
        attempt: Attempt,
        timeout_s: float,
        moved: Moved = _no_matter,
    ) -> Parked:
        """Park a request and return it; it is the future of its answer.

        The answer is the result of ``attempt(False)`` after a change of one of the partitions, or
        of ``attempt(True)`` after the timeout (seconds). Cancelling the future removes the request.
        """
        parked = Parked(tuple(places), attempt, timeout_s, moved, self._remove)
        for place in parked.places:
            self._parked.setdefault(place, {})[parked] = None
        return parked

    def notify(self, *partitions: TopicPartition) -> None:
        """Retry the requests that are parked at these changed partitions, each request once."""
        touched: dict[Parked, list[TopicPartition]] = {}
        for partition in partitions:
            for place in (partition, *self._shared(partition)):
                for parked in self._parked.get(place, ()):
                    touched.setdefault(parked, []).append(partition)
        for parked, moved in touched.items():
            parked.moved(moved)
            parked.attempt()

    def retry(self, place: Hashable) -> None:
        """Retry the requests that are parked at this place."""
        for parked in tuple(self._parked.get(place, ())):
            parked.attempt()

    def __contains__(self, partition: TopicPartition) -> bool:
        """Whether requests wait for this partition."""
        return partition in self._parked or any(
            place in self._parked for place in self._shared(partition)
        )

    def __len__(self) -> int:
        return len({parked for waiting in self._parked.values() for parked in waiting})

    def _remove(self, parked: Parked) -> None:
        for place in parked.places:
            waiting = self._parked[place]
            del waiting[parked]
            if not waiting:
                del self._parked[place]


def resolve(future: "asyncio.Future[Any]", make: Callable[[], Any]) -> None:
    """Complete a future by what a function returns or raises.

    It is for callbacks of another future: an error there would leave this one pending, and all
    later responses of its connection behind it.
    """
    try:
        result = make()
    except asyncio.CancelledError:
        future.cancel()
    except Exception as error:  # noqa: BLE001 - the waiting request handles it
        future.set_exception(error)
    else:
        future.set_result(result)
