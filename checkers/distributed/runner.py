"""What a plan needs from the place where its tasks run."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

Parts = Iterator[tuple[int, bytes]]
"""Numbered parts of an item, packed."""
Cut = Callable[[Any], tuple[Any, Parts]]
"""Cuts an item into parts. Returns what it says of the item besides, and the parts."""
Judge = Callable[[int, Sequence[bytes]], Any]
"""Judges all parts of one number, which are in the order of their items."""
Split = Callable[[int, Sequence[bytes]], tuple[Any, Parts]]
"""Judges all parts of one number, and cuts what follows from them into parts again."""


class Runner(Protocol):
    """Runs tasks somewhere, several at a time."""

    def expect(self, stages: int) -> None:
        """Set how many stages the plan will have had at its end; progress refers to this."""
        ...

    def keep(self, cut: Cut) -> None:
        """Keep the parts that this cut makes when it is used first: it will be used again.

        They are on the disks of the executors until :meth:`forget`, and made again if lost.
        """
        ...

    def forget(self) -> None:
        """Release the parts that were kept."""
        ...

    def each(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        """Return what the task returns for each item, in their order."""
        ...

    def grouped(
        self,
        cut: Cut,
        items: Sequence[Any],
        judge: Judge,
        numbers: Collection[int] | None = None,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, and judge the parts of each number together, by default of all
        numbers.

        Returns what ``cut`` says of each item, in their order; and what ``judge`` returns, or the
        error that it raises, in the order of the numbers.
        """
        ...

    def regrouped(
        self, cut: Cut, items: Sequence[Any], split: Split, judge: Judge
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, split what follows from the parts of each number, and judge
        that by its own numbers.

        Returns what ``split`` says, or the error that it raises, in the order of its numbers; and
        likewise for ``judge``.
        """
        ...
