"""Requests that wait for a partition to move on: parked under its name, tried again when poked."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker_impl.wire.types import TopicPartition

Attempt = Callable[[bool], Any]
"""Called with ``expired``; gives the answer, or None to go on waiting (never when expired)."""
Moved = Callable[[Sequence[TopicPartition]], None]
"""Called before an attempt with those partitions that have moved since the last one."""


def _no_matter(moved: Sequence[TopicPartition]) -> None:
    """It looks at all of them anyway."""


class Parked:
    """One request that waits."""

    __slots__ = ("_attempt", "_is_trying", "_on_end", "_timer", "answer", "moved", "partitions")

    def __init__(
        self,
        partitions: tuple[TopicPartition, ...],
        attempt: Attempt,
        timeout_s: float,
        moved: Moved,
        on_end: Callable[["Parked"], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.partitions = partitions
        self.moved = moved
        self.answer: asyncio.Future[Any] = loop.create_future()
        self._attempt = attempt
        self._on_end = on_end
        self._is_trying = False
        self._timer = loop.call_later(timeout_s, self.attempt, True)

    def attempt(self, expired: bool = False) -> None:
        """Answer if the time has come. An attempt may poke its own partition: once is enough."""
        if self._is_trying or self.answer.done():
            return
        self._is_trying = True
        try:
            answer = self._attempt(expired)
            assert answer is not None or not expired, "an expired request has an answer"
        except Exception as error:  # noqa: BLE001 - whoever waits for the answer deals with it
            self.end()
            self.answer.set_exception(error)
        else:
            if answer is not None:
                self.end()
                self.answer.set_result(answer)
        finally:
            self._is_trying = False

    def end(self) -> None:
        """Nobody waits any more."""
        self._timer.cancel()
        self._on_end(self)


class Waiting:
    """All parked requests of a broker, by partition, in the order they came."""

    def __init__(self) -> None:
        self._parked: dict[TopicPartition, dict[Parked, None]] = {}

    def park(
        self,
        partitions: Iterable[TopicPartition],
        attempt: Attempt,
        timeout_s: float,
        moved: Moved = _no_matter,
    ) -> asyncio.Future[Any]:
        """A future answer: of ``attempt(False)`` once a poke makes it so, or of
        ``attempt(True)`` after the timeout (seconds). Cancelling the future forgets it."""
        parked = Parked(tuple(partitions), attempt, timeout_s, moved, self._remove)
        for partition in parked.partitions:
            self._parked.setdefault(partition, {})[parked] = None
        parked.answer.add_done_callback(lambda done: parked.end() if done.cancelled() else None)
        return parked.answer

    def poke(self, *partitions: TopicPartition) -> None:
        """Something about these partitions changed: try their requests again, each once."""
        touched: dict[Parked, list[TopicPartition]] = {}
        for partition in partitions:
            for parked in self._parked.get(partition, ()):
                touched.setdefault(parked, []).append(partition)
        for parked, moved in touched.items():
            parked.moved(moved)
            parked.attempt()

    def __contains__(self, partition: TopicPartition) -> bool:
        """Does anybody wait for this partition?"""
        return partition in self._parked

    def __len__(self) -> int:
        return len({parked for waiting in self._parked.values() for parked in waiting})

    def _remove(self, parked: Parked) -> None:
        for partition in parked.partitions:
            waiting = self._parked[partition]
            del waiting[parked]
            if not waiting:
                del self._parked[partition]
