"""Runs the tasks of a plan in this process, one after the other."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Here:
    """The :class:`~checkers.distributed.plan.Runner` without Spark."""

    def each(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        """Return what the task returns for each item."""
        return [task(item) for item in items]

    def grouped(
        self,
        cut: Callable[[Any], tuple[Any, Iterator[tuple[int, bytes]]]],
        items: Sequence[Any],
        judge: Callable[[int, Sequence[bytes]], Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, and judge the parts of each number."""
        parts: defaultdict[int, list[bytes]] = defaultdict(list)
        said = []
        for item in items:
            about, cuts = cut(item)
            said.append(about)
            for number, part in cuts:
                parts[number].append(part)
        return said, [_tried(judge, number, parts[number]) for number in sorted(parts)]


def _tried(
    judge: Callable[[int, Sequence[bytes]], Any], number: int, parts: Sequence[bytes]
) -> Any:
    try:
        return judge(number, parts)
    except Exception as error:  # noqa: BLE001 - the plan decides what it means
        return error
