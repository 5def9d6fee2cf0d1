"""Runs the tasks of a plan on Spark.

Spark moves tasks, slices and results as bytes. This module is all that an executor needs before it
can import the code of the tasks, so it imports nothing but what every executor has.
"""

import pickle
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from checkers import shipping
from checkers.distributed.runner import Cut, Judge, Split

Progress = Callable[[float], None]
"""A callback that receives how much is done, from 0 to 1."""

_POLL_S = 0.5
_ABOUT = -1
"""The number that stands for what a task says of its item, in place of a slice."""
_PART = pa.schema([("slice", pa.int32()), ("item", pa.int32()), ("data", pa.binary())])
_FIELDS = "slice int, item int, data binary"


class OnSpark:
    """The :class:`~checkers.distributed.runner.Runner` of a session; there is a task per item.

    ``held`` is a data frame with the events of chunks, in the columns ``id`` and ``data``. With it,
    every item is a tuple that begins with a chunk whose ``begin`` is such an id, and a task gets
    the chunk with its data.
    """

    def __init__(self, session: Any, progress: Progress, held: Any = None) -> None:
        self._session, self._progress, self._held = session, progress, held
        self._done, self._stages = 0, 1
        self._to_keep: Cut | None = None
        self._kept: Any = None

    def expect(self, stages: int) -> None:
        """Set how many stages the plan will have had at its end."""
        self._stages = stages

    def keep(self, cut: Cut) -> None:
        """Keep the parts that this cut makes when it is used first, on the disks of executors."""
        self._to_keep = cut

    def forget(self) -> None:
        """Release the parts that were kept."""
        if self._kept is not None:
            self._kept.unpersist()
        self._to_keep = self._kept = None

    def each(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        """Return what the task returns for each item."""
        if not items:
            return []
        run = _each(_dumped(task), self._given(items))
        with self.watched(1):
            rows = self._items(items).mapInArrow(run, _FIELDS).toArrow()
        return _said(rows, items)

    def grouped(
        self,
        cut: Cut,
        items: Sequence[Any],
        judge: Judge,
        numbers: Collection[int] | None = None,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, and judge the parts of each number."""
        parts = self._cut(cut, items)
        if numbers is not None:
            parts = parts.filter(parts["slice"].isin(_ABOUT, *numbers))
        with self.watched(2):
            rows = parts.groupBy("slice").applyInArrow(_judged(_dumped(judge)), _FIELDS).toArrow()
        about, judged = _divided(rows)
        return _said(about, items), judged

    def regrouped(
        self, cut: Cut, items: Sequence[Any], split: Split, judge: Judge
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into parts, split these by number, and judge the parts of that."""
        parts = self._cut(cut, items)
        again = parts.groupBy("slice").applyInArrow(_split(_dumped(split)), _FIELDS)
        with self.watched(3):
            rows = again.groupBy("slice").applyInArrow(_judged(_dumped(judge)), _FIELDS).toArrow()
        about, judged = _divided(rows)
        return _in_order(about, "item"), judged

    def _cut(self, cut: Cut, items: Sequence[Any]) -> Any:
        if cut is self._to_keep and self._kept is not None:
            return self._kept
        run = _cut(_dumped(cut), self._given(items))
        parts = self._items(items).mapInArrow(run, _FIELDS)
        if cut is self._to_keep:
            from pyspark import StorageLevel

            parts = self._kept = parts.persist(StorageLevel.DISK_ONLY)
        return parts

    def _given(self, items: Sequence[Any]) -> "_Given":
        ids = range(len(items)) if self._held is None else [chunk.begin for chunk, *_ in items]
        return {of: (place, _dumped(items[place])) for place, of in enumerate(ids)}

    def _items(self, items: Sequence[Any]) -> Any:
        if self._held is not None:
            return self._held.select("id", "data")
        return self._session.range(0, len(items), 1, max(1, len(items)))

    @contextmanager
    def watched(self, stages: int) -> Iterator[None]:
        """Report how much of a job of so many stages is done, as Spark reports it."""
        over = threading.Event()
        tracker = self._session.sparkContext.statusTracker()
        begun, seen = self._done, set[int]()

        def watch() -> None:
            while not over.wait(_POLL_S):
                seen.update(tracker.getActiveStageIds())
                info = tracker.getStageInfo(max(seen)) if seen else None
                if info is not None and info.numTasks:
                    done = begun + len(seen) - 1 + info.numCompletedTasks / info.numTasks
                    self._progress(min(done / self._stages, 1.0))

        thread = threading.Thread(target=watch, name="spark-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        self._done += stages
        self._progress(min(self._done / self._stages, 1.0))


Batches = Iterator[pa.RecordBatch]
_Given = Mapping[int, tuple[int, bytes]]
"""The place of each item, and the item, by its id."""


def streamed(task: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Return a function for ``mapInArrow`` that does what the task does, which may need any package
    of this project."""
    dumped = _dumped(task)

    def run(batches: Batches) -> Batches:
        yield from _loaded(dumped)(batches)

    return run


def _each(task: bytes, items: _Given) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        wanted = _loaded(task)
        for place, item in _taken(items, batches):
            yield _row(_ABOUT, place, pickle.dumps(wanted(item)))

    return run


def _cut(cut: bytes, items: _Given) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        wanted = _loaded(cut)
        for place, item in _taken(items, batches):
            about, parts = wanted(item)
            yield _row(_ABOUT, place, pickle.dumps(about))
            for number, part in parts:
                yield _row(number, place, part)

    return run


def _judged(judge: bytes) -> Callable[[pa.Table], pa.Table]:
    def run(rows: pa.Table) -> pa.Table:
        [number] = set(rows["slice"].to_pylist())
        if number == _ABOUT:
            return rows
        parts = [row["data"] for row in rows.sort_by("item").to_pylist()]
        try:
            found = _loaded(judge)(number, parts)
        except Exception as error:  # noqa: BLE001 - the plan decides what it means
            found = RuntimeError(f"{type(error).__name__}: {error}")
        return pa.Table.from_batches([_row(number, 0, pickle.dumps(found))])

    return run


def _split(split: bytes) -> Callable[[pa.Table], pa.Table]:
    def run(rows: pa.Table) -> pa.Table:
        [number] = set(rows["slice"].to_pylist())
        if number == _ABOUT:  # what was said of the items is not asked for
            return rows.slice(0, 0)
        data = [row["data"] for row in rows.sort_by("item").to_pylist()]
        try:
            about, parts = _loaded(split)(number, data)
            found = [_row(of, number, part) for of, part in parts]
        except Exception as error:  # noqa: BLE001 - the plan decides what it means
            about, found = RuntimeError(f"{type(error).__name__}: {error}"), []
        return pa.Table.from_batches([_row(_ABOUT, number, pickle.dumps(about)), *found])

    return run


def _taken(items: _Given, batches: Batches) -> Iterator[tuple[int, Any]]:
    """Yield the items of these rows, each with its place; a chunk gets the data of its row."""
    for batch in batches:
        held = batch.column("data") if "data" in batch.schema.names else None
        for row, of in enumerate(batch.column("id").to_pylist()):
            if of not in items:
                continue
            place, dumped = items[of]
            item = _loaded(dumped)
            if held is not None:
                chunk, *rest = item
                item = (chunk._replace(data=held[row].as_py()), *rest)
            yield place, item


def _row(number: int, item: int, data: bytes) -> pa.RecordBatch:
    return pa.record_batch([[number], [item], [data]], schema=_PART)


def _said(rows: pa.Table, items: Sequence[Any]) -> list[Any]:
    """Return what tasks say of their items; every item must have its row."""
    if sorted(rows["item"].to_pylist()) != list(range(len(items))):
        raise RuntimeError(f"Spark returned {rows.num_rows} results for {len(items)} tasks")
    return _in_order(rows, "item")


def _divided(rows: pa.Table) -> tuple[pa.Table, list[Any]]:
    """Return the rows about items, and what was found by number."""
    is_about = pa.compute.equal(rows["slice"], _ABOUT)
    return rows.filter(is_about), _in_order(rows.filter(pa.compute.invert(is_about)), "slice")


def _in_order(rows: pa.Table, by: str) -> list[Any]:
    return [pickle.loads(data.as_py()) for data in rows.sort_by(by)["data"]]


def _dumped(value: Any) -> bytes:
    from pyspark import cloudpickle  # only the driver needs it

    dumped: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return dumped


def _loaded(value: bytes) -> Any:
    """Load what the driver sent, once all packages that it may need can be imported."""
    shipping.unpack()
    return pickle.loads(value)
