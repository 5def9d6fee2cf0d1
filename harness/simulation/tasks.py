"""Tasks and futures hashed by a counter, so that the order of a set depends on the seed alone.

asyncio and its users keep both in sets (``asyncio.wait``, ``TaskGroup``, ``all_tasks``). By default
the hash of an object is its address, and addresses differ between two runs.
"""

import asyncio
from contextvars import Context, copy_context
from typing import Any


class SimTask(asyncio.Task[Any]):
    """A task of a simulated process."""

    def __init__(
        self, coro: Any, *, loop: asyncio.AbstractEventLoop, number: int, **options: Any
    ) -> None:
        self.number = number  # first: a task is put into a set while it is created
        self.label: str = getattr(coro, "__qualname__", None) or type(coro).__name__
        """The name of the coroutine that runs in the task."""
        context: Context | None = options.pop("context", None)
        self._made_in = copy_context() if context is None else context
        super().__init__(coro, loop=loop, context=self._made_in, **options)

    def get_context(self) -> Context:
        """The context in which the task runs; Python 3.12 has this method for every task."""
        return self._made_in

    def __hash__(self) -> int:
        return self.number


class SimFuture(asyncio.Future[Any]):
    """A future of a simulated process; it gets its number when it is first put into a set."""

    number = 0

    def __hash__(self) -> int:
        return self.number or _number(self)


def _number(future: Any) -> int:
    number: int = future.get_loop().next_number()
    future.number = number
    return number


def _hash_of_gathering(future: Any) -> int:
    number: int = getattr(future, "number", 0)
    if number:
        return number
    if hasattr(future.get_loop(), "next_number"):
        return _number(future)
    return object.__hash__(future)


def number_gatherings() -> None:
    """Number the futures that ``asyncio.gather`` returns, too, which no loop creates."""
    gathering: Any = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]
    gathering.__hash__ = _hash_of_gathering
