"""Tasks and futures whose hash is a counter, so that the order of a set of them is the seed's.

asyncio and its users keep both in sets (``asyncio.wait``, ``TaskGroup``, ``all_tasks``). By default
the hash of an object is its address, and addresses differ between two runs.
"""

import asyncio
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.simulation.loop import SimLoop


class SimTask(asyncio.Task[Any]):
    """A task of a simulated process."""

    def __init__(self, coro: Any, *, loop: "SimLoop", number: int, **options: Any) -> None:
        self.number = number  # first: a task is put into a set while it is made
        self.label: str = getattr(coro, "__qualname__", None) or type(coro).__name__
        """What runs in it."""
        context: Context | None = options.pop("context", None)
        self._made_in = copy_context() if context is None else context
        super().__init__(coro, loop=loop, context=self._made_in, **options)

    def get_context(self) -> Context:
        """The context it runs in, as every task of Python 3.12 tells."""
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
    """What ``asyncio.gather`` returns is a future that no loop makes: number it, too."""
    gathering: Any = asyncio.tasks._GatheringFuture  # type: ignore[attr-defined]
    gathering.__hash__ = _hash_of_gathering
