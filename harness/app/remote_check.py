"""Judges a history at a URI: executors read a large one, and others are copied to this machine.

A large file is read where it is if it has lines, perhaps compressed as Spark can read them, or if
it is a Parquet file with exactly the schema of histories. On a cluster, which may share no files
with this machine, smaller files are read so, too.
"""

import bz2
import contextlib
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers import engine
from checkers.pieces import SCHEMA
from checkers.stores import Entry, Store
from harness.app import check, judgements, remote, signals, spark_judge, unpacking
from harness.app.check import Examined, Progress
from harness.app.refused import Refused
from harness.app.remote import Remote
from model.history import BadHistory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from checkers.distributed.held_source import HeldSource
    from checkers.overview import Whole

_HEAD_BYTES = 1 << 20
"""More than the first block of a compressed text."""
_FOOTER_BYTES_MAX = 256 << 20
_MARK = b"\xef\xbb\xbf"
"""A mark of UTF-8, which Hadoop leaves out and JSON does not allow."""
_MAGIC = b"PAR1"
_NOT_READ = ("_", ".")
"""How the names of files begin that Spark does not read."""
_PATTERN = frozenset("*?[]{}\\")

Opened = Callable[[Callable[[float], None]], "AbstractContextManager[HeldSource]"]
"""Opens the chunks of a file, given a callback for progress."""


def examined(
    of: Remote,
    folder: Path | None,
    store: Store,
    session: "SparkSession",
    *,
    settings: Mapping[str, str],
    progress: Progress,
    results: Path,
) -> Examined:
    """Judge a history at a URI as :func:`harness.app.check.examined` judges one of this machine.

    ``folder`` has the other files of its run. The judgement is stored under ``results``. Raises
    :class:`~model.history.BadHistory` and :class:`~checkers.expectations.BadSetting`.
    """

    plan = None if folder is None else check.plan_of(folder)
    is_of_zookeeper = check.tests_zookeeper(plan)

    def find() -> "Whole":
        if is_of_zookeeper:
            with (
                remote.copied_history(store, of, folder) as file,
                unpacking.plain(file) as text,
            ):
                return check.of_zookeeper(None, text, progress)
        with check.crashes():
            opened = _opened(store, session, of.history)
            found = None if opened is None else _held(session, opened, of.history, progress)
        if found is not None:
            return found
        with (
            remote.copied_history(store, of, folder) as file,
            unpacking.plain(file) as text,
            spark_judge.opened(None, text, session) as spark,
        ):
            return check.whole(None, text, spark, progress)

    executor = "inline" if is_of_zookeeper else "spark"
    judged = check.concluded(folder, find, settings, executor)
    if folder is None:
        return Examined(judged, None)
    return Examined(judged, judgements.keep_here(folder, of.name, judged, results))


@contextlib.contextmanager
def opened_session() -> Iterator["SparkSession"]:
    """Start a session that reads URIs. Raises :class:`~harness.app.refused.Refused`."""
    from checkers import session as session_
    from harness.app import temporary

    if engine.selected().remote is not None:
        raise Refused(
            "a server of Spark Connect does not list files: judge URIs with --spark-master, or"
            " copy the files to this machine"
        )
    with temporary.folder(None, "faultline-check-") as home:
        try:
            session = session_.start(home)
        except session_.NoSpark as error:
            raise Refused(f"a URI is read by Spark: {error}") from None
        try:
            yield session
        finally:
            session_.stop(session)


def _held(
    session: "SparkSession", opened: Opened, history: Entry, progress: Progress
) -> "Whole | None":
    """Judge a file that executors read; ``None`` if it must be copied."""
    from checkers import session as session_
    from checkers.distributed import plan

    try:
        with (
            signals.followed_by(partial(session_.cancel, session)),
            opened(lambda done: progress("judging", done)) as source,
        ):
            return plan.of_source(source, source.runner)
    except BadHistory:
        raise
    except Exception as error:
        # A damaged compressed file, perhaps: the reader of a copy reports what is wrong with it.
        if signals.is_interrupt(error) or PurePath(history.name).suffix not in unpacking.KINDS:
            raise
        return None


def _opened(store: Store, session: "SparkSession", history: Entry) -> Opened | None:
    """Return how Spark reads a file without a copy; ``None`` if it cannot, or need not."""
    name = PurePath(history.name)
    if history.name.startswith(_NOT_READ) or _PATTERN & {*history.uri} or not history.size:
        return None
    kind = unpacking.KINDS.get(name.suffix)
    suffix = PurePath(name.stem).suffix if kind else name.suffix
    large = spark_judge.LARGE_BYTES.get(suffix)
    if large is None:
        return None
    if engine.selected().is_local and unpacking.likely_bytes(name.suffix, history.size) < large:
        return None
    if suffix == ".parquet":
        return None if kind else _opened_rows(store, session, history)
    return _opened_lines(store, session, history, kind)


def _opened_lines(
    store: Store, session: "SparkSession", history: Entry, kind: str | None
) -> Opened | None:
    from checkers.distributed import held_source

    head = _unpacked(kind, store.read(history.uri, 0, _HEAD_BYTES))
    if head is None or head.startswith(_MARK):
        return None
    known = held_source.Lines(None, None)
    if kind is None:
        end = store.read(history.uri, history.size - 1, 1)
        known = held_source.Lines(history.size, end == b"\n")
    return lambda progress: held_source.lines(session, history.uri, progress, known)


def _unpacked(kind: str | None, head: bytes) -> bytes | None:
    """Return how the text of a file begins; ``None`` if only a copy shows that."""
    openers: Mapping[str | None, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
        "bz2": bz2.BZ2Decompressor,
    }
    if kind is None:
        return head
    if kind not in openers:
        return None
    try:
        text: bytes = openers[kind]().decompress(head, len(_MARK))
    except (OSError, EOFError, zlib.error):
        return None
    return text if len(text) == len(_MARK) else None


def _opened_rows(store: Store, session: "SparkSession", history: Entry) -> Opened | None:
    from checkers.distributed import held_source

    footer = _footer(store, history)
    if footer is None or not footer.schema_arrow.equals(SCHEMA):
        return None
    schema, rows = footer.schema_arrow, footer.metadata.num_rows
    return lambda progress: held_source.rows(session, history.uri, progress, schema, rows)


def _footer(store: Store, history: Entry) -> pq.ParquetFile | None:
    """Return a Parquet file that has the footer alone; ``None`` if the file has none."""
    end = store.read(history.uri, max(history.size - 8, 0), 8)
    size = int.from_bytes(end[:4], "little")
    if not end.endswith(_MAGIC) or size > min(history.size - 12, _FOOTER_BYTES_MAX):
        return None
    footer = store.read(history.uri, history.size - 8 - size, size + 8)
    try:
        return pq.ParquetFile(io.BytesIO(_MAGIC + footer))
    except (pa.ArrowException, OSError):
        return None
