"""Judges transactions on lists in a Parquet file: in this process, or on Spark if they are many."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from checkers import engine
from checkers.distributed.runner import Runner
from checkers.isolation import columnar
from checkers.isolation.columnar import ListFile
from checkers.object_verdict import ObjectVerdict
from checkers.objects import Judged
from harness.app import signals, temporary
from harness.app.refused import Refused

Where = Literal["inline", "spark"]
ROW_BYTES = 170
"""Memory of this process for each micro-operation, in bytes, as measured."""


class Judge(Protocol):
    """Judges a file."""

    def __call__(self, history: ListFile, *, runner: Runner | None) -> Judged:
        """Judge a file with this runner."""
        ...


def judged(path: Path, model: str, where: Where | None, judge: Judge) -> Judged:
    """Judge a file where it was asked for, or where there is enough memory.

    A judgement that crashes is unknown. Raises :class:`~model.history.BadHistory`, and
    :class:`~harness.app.refused.Refused` if there is no Spark.
    """
    from harness.app import check

    try:
        with check.crashes():
            if where == "inline" or (where is None and _fits(path)):
                return judge(ListFile(path), runner=None)
            with _on_spark(path) as runner:
                return judge(ListFile(path), runner=runner)
    except check.Crashed as crash:
        unknown = ObjectVerdict(
            valid="unknown", model=model, operations=0, unknown_because=str(crash)
        )
        return Judged(unknown, "")


@contextmanager
def _on_spark(path: Path) -> Iterator[Runner]:
    if engine.selected().remote is not None:
        raise Refused("Spark Connect judges no transactions on lists: use --spark-master")
    from checkers import session as session_  # an inline judgement never imports Spark
    from checkers.distributed import on_spark

    with temporary.folder(None, "faultline-check-") as home:
        try:
            session = session_.start(home, memory_bytes=session_.memory_for(path.stat().st_size))
        except session_.NoSpark as error:
            raise Refused(f"{path}: {error}") from None
        try:
            with signals.followed_by(partial(session_.cancel, session)):
                yield on_spark.OnSpark(session, lambda done: None)
        finally:
            session_.stop(session)


def _fits(path: Path) -> bool:
    """Return whether half of this machine's memory is enough for a file."""
    return sum(columnar.group_rows(path)) * ROW_BYTES < engine.memory_bytes() // 2
