"""Runs the tasks of a plan in this process, one after the other."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from checkers.distributed.runner import Cut, Judge, Parts, Split

_Numbered = defaultdict[int, list[bytes]]


class Here:
    """The :class:`~checkers.distributed.runner.Runner` without Spark."""

    def expect(self, stages: int) -> None:
        """Do nothing: there is no progress to report."""

    def keep(self, cut: Cut) -> None:
        """Do nothing: all parts are in memory at once, and none should stay."""

    def forget(self) -> None:
        """Do nothing, since nothing was kept."""

    def each(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        """Return what the task returns for each item."""
        return [task(item) for item in items]

    def grouped(
        self,
        cut: Cut,
        items: Sequence[Any],
        judge: Judge,
        numbers: Collection[int] | None = None,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, and judge the parts of each number."""
        said, parts = _cut(cut, items)
        wanted = sorted(parts) if numbers is None else sorted(parts.keys() & numbers)
        return said, [_tried(judge, number, parts[number]) for number in wanted]

    def regrouped(
        self, cut: Cut, items: Sequence[Any], split: Split, judge: Judge
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, split these by number, and judge the parts of that."""
        _, parts = _cut(cut, items)
        said, again = [], _Numbered(list)
        for number in sorted(parts):
            found = _tried(split, number, parts[number])
            if isinstance(found, Exception):
                said.append(found)
                continue
            said.append(found[0])
            _collect(again, found[1])
        return said, [_tried(judge, number, again[number]) for number in sorted(again)]


def _cut(cut: Cut, items: Sequence[Any]) -> tuple[list[Any], _Numbered]:
    said, parts = [], _Numbered(list)
    for item in items:
        about, cuts = cut(item)
        said.append(about)
        _collect(parts, cuts)
    return said, parts


def _collect(into: _Numbered, parts: Parts) -> None:
    for number, part in parts:
        into[number].append(part)


def _tried(judge: Judge, number: int, parts: Sequence[bytes]) -> Any:
    try:
        return judge(number, parts)
    except Exception as error:  # noqa: BLE001 - the plan decides what it means
        return error
