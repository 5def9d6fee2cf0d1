"""Judges one history on Spark: a large one in chunks, and others from tables of this process.

Executors read a large history themselves, if they see its file. Tables of this process are sent to
Spark otherwise.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from checkers.kernels.key import Report
from checkers.tables import Tables
from harness.app import signals, temporary, typed_history, unpacking
from model import history
from model.history import BadHistory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from checkers.overview import Whole

Progress = Callable[[float], None]
"""A callback that receives how much is done, from 0 to 1."""

LARGE_BYTES: Mapping[str, int] = {".parquet": 8 << 20, ".jsonl": 64 << 20}
"""The sizes from which on executors read files, by the ending of their names. For a smaller file,
further jobs of Spark take longer than to read it here."""


@dataclass(frozen=True)
class SparkJudge:
    """A session for one judgement, which may still be starting."""

    session: Callable[[], "SparkSession"]
    scratch: Path
    """A folder for temporary files."""

    def whole(self, folder: Path | None, file: Path, progress: Progress) -> "Whole | None":
        """Judge a large history without reading it here; ``None`` where that is not possible.

        ``folder`` is the run's; its typed copy of the history is read, if it has one. Raises
        :class:`~model.history.BadHistory`.
        """
        size, segments = LARGE_BYTES.get(file.suffix), _segments(folder, file)
        if size is None or sum(each.stat().st_size for each in segments) < size:
            return None
        from checkers import session as session_  # an inline judgement never imports Spark
        from checkers.distributed import chunks, on_spark, plan

        session = self.session()
        if session_.is_remote(session):  # its executors may not see the file
            return None

        def judged(sources: Sequence[Path]) -> "Whole":
            runner = on_spark.OnSpark(session, progress)
            with (
                signals.followed_by(partial(session_.cancel, session)),
                temporary.folder(self.scratch, "chunks-") as scratch,
            ):
                given = [chunk for each in sources for chunk in chunks.of_file(each.resolve())]
                whole = plan.judge(file, given, runner, scratch)
                typed = sorted(scratch.glob("*.parquet"))  # of lines: rows are read as they are
                if folder is not None and typed:
                    typed_history.join(folder, file, typed, whole.overview)
                return whole

        copy = typed_history.copy_of(folder, file)
        if copy != file:
            with contextlib.suppress(BadHistory):  # damaged, perhaps; the text counts
                return judged([copy])
        return judged(segments)

    def reports(self, tables: Tables, progress: Progress) -> Mapping[str, Report]:
        """Judge tables of this process, and return the report of each partition."""
        from checkers import session as session_
        from checkers import spark

        session = self.session()
        with signals.followed_by(partial(session_.cancel, session)):
            return spark.judge(tables, session, self.scratch, progress)


def _segments(folder: Path | None, file: Path) -> list[Path]:
    """Return the files of a run's history, or a bare file alone."""
    return [file] if folder is None else history.segments(file)


@contextmanager
def opened(folder: Path | None, file: Path, session: "SparkSession | None") -> Iterator[SparkJudge]:
    """Yield an executor that uses this session or one of its own.

    Its own session starts while the history is read, and stops with the context. ``folder`` is the
    run's.
    """
    from checkers import session as session_

    with ExitStack() as stack:
        scratch = stack.enter_context(_scratch(folder))
        if session is not None:
            yield SparkJudge(lambda: session, scratch)
            return
        thread = stack.enter_context(ThreadPoolExecutor(1, "spark"))
        size = sum(each.stat().st_size for each in _segments(folder, file))
        memory = session_.memory_for(size)
        own = thread.submit(session_.start, scratch, memory_bytes=memory)
        try:
            yield SparkJudge(own.result, scratch)
        finally:
            if own.exception() is None:
                session_.stop(own.result())


@contextmanager
def for_many(files: Sequence[Path]) -> Iterator["SparkSession | None"]:
    """Start one session for many histories, sized for the largest of them.

    Yields ``None`` where there is no Spark; the judgement of each history then reports why.
    """
    from checkers import session as session_

    bytes_max = max(unpacking.text_bytes(file) for file in files)
    with temporary.folder(None, "faultline-check-") as home:
        try:
            session = session_.start(home, memory_bytes=session_.memory_for(bytes_max))
        except session_.NoSpark:
            yield None
            return
        try:
            yield session
        finally:
            session_.stop(session)


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    """Create a folder for Spark's files, in the run's folder if possible, because that has room."""
    with ExitStack() as stack:
        made: Path | None = None
        if folder is not None:
            with contextlib.suppress(OSError):
                made = stack.enter_context(temporary.folder(folder, ".check-"))
        yield made or stack.enter_context(temporary.folder(None, "faultline-check-"))
