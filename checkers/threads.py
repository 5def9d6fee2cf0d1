"""Uses a second core of this machine for the work on a large history.

Most of that work is inside numpy and Arrow, which let other threads run meanwhile. Tasks of Spark
must not use this module, since several of them share a machine.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

THREADS = min(2, len(os.sched_getaffinity(0)))
"""Number of threads that work on one history. Each needs memory of its own."""

ROWS_MIN = 1 << 17
"""Number of rows of sends and polls from which on more than one thread pays."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def count(rows: int) -> int:
    """Return how many threads to use for a history of so many sends and polls."""
    return THREADS if rows >= ROWS_MIN else 1


def both(
    one: Callable[[], _Item], other: Callable[[], _Result], threads: int = THREADS
) -> tuple[_Item, _Result]:
    """Return what two functions return, which run at the same time if there are two threads.

    Raises what one of them raises, when both have ended.
    """
    if threads == 1:
        return one(), other()
    with ThreadPoolExecutor(1, "history") as pool:
        second = pool.submit(other)
        return one(), second.result()


def mapped(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int = THREADS
) -> Iterator[_Result]:
    """Yield what the function returns for each item, in the order of the items.

    No more items than there are threads are worked on, or have results that are not yet taken.
    With one thread, that is the caller's. Raises what the function raises.
    """
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, "history") as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for item in items:
                if len(waiting) == threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(function, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
