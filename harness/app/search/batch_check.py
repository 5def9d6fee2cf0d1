"""Judges all histories of a search again in one Spark job, and compares the judgements.

When a run ended, its own process judged it, without Spark. The input and the result of that
judgement are stored, and the result is compared with that of the Spark job.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from checkers import findings as findings_
from checkers.verdict import Verdict, essence
from harness.app import temporary
from harness.app.check import examine_together
from harness.app.judgements import Judged
from model import cluster_facts, violation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = ("plan.json", "history.parquet", violation.FILE, "verdict.json", "findings.parquet")
"""The files of a run's folder that a judgement reads and writes."""


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the comparison."""

    histories: int
    seconds: float
    """The duration, including the start of Spark."""
    differ: tuple[str, ...]
    """The folders whose two judgements differ; they are kept."""


def put_aside(folder: Path, place: Path) -> None:
    """Copy the files that are needed to judge a run again, and to compare the judgements.

    The files are copied from the run's folder ``folder`` to a new folder ``place``.
    """
    place.mkdir(parents=True)
    for name in PARTS:
        shutil.copy(folder / name, place / name)
    if (folder / cluster_facts.FILE).is_file():
        shutil.copy(folder / cluster_facts.FILE, place / cluster_facts.FILE)


def judge(folders: Sequence[Path], session: "SparkSession | None" = None) -> BatchResult:
    """Judge these stored histories again, and remove the folders whose judgements agree.

    Without ``session``, Spark is started and stopped. Raises :class:`~checkers.session.NoSpark`,
    and the error of a job that crashes.
    """
    began_s = time.monotonic()
    differ = []
    for folder, judged in zip(folders, _judged(folders, session) if folders else (), strict=True):
        if _is_same(folder, judged):
            shutil.rmtree(folder)
        else:
            differ.append(str(folder))
    return BatchResult(
        histories=len(folders),
        seconds=round(time.monotonic() - began_s, 1),
        differ=tuple(differ),
    )


def _judged(folders: Sequence[Path], session: "SparkSession | None") -> list[Judged]:
    from checkers import session as session_  # a search without Spark must not import it

    size = sum((folder / "history.parquet").stat().st_size for folder in folders)
    with temporary.folder(None, "faultline-together-") as scratch:
        if session is not None:
            return examine_together(folders, session, scratch)
        session = session_.start(scratch, memory_bytes=session_.memory_for(size))
        try:
            return examine_together(folders, session, scratch)
        finally:
            session_.stop(session)


def _is_same(folder: Path, judged: Judged) -> bool:
    """Return whether verdict and findings are equal, apart from the duration of the checkers."""
    said = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=Verdict)
    if essence(said) != essence(judged.verdict):
        return False
    again = folder / "findings-of-spark.parquet"
    findings_.write(again, judged.findings)
    same: bool = pq.read_table(again).equals(pq.read_table(folder / "findings.parquet"))
    if same:
        again.unlink()
    return same
