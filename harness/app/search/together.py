"""The histories of a whole search judged once more, all in one Spark job: do the judgements agree?

Each run was judged in its own process as it ended, by the executor without Spark. What that read
and what it said is put aside, and compared with what the job says of the same.
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
from model import violation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = ("plan.json", "history.parquet", violation.FILE, "verdict.json", "findings.parquet")
"""Of a run's folder: what judging takes, and what it says."""


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    histories: int
    seconds: float
    """With the start of Spark."""
    differ: tuple[str, ...]
    """The folders of which the two judgements are not the same; they are kept."""


def put_aside(folder: Path, place: Path) -> None:
    """Copy what is needed of a judged run's folder to a new folder ``place``."""
    place.mkdir(parents=True)
    for name in PARTS:
        shutil.copy(folder / name, place / name)


def judge(folders: Sequence[Path], session: "SparkSession | None" = None) -> Together:
    """All of these, which were put aside; those that agree are gone afterwards.

    Without ``session``, Spark is started and stopped. Raises :class:`~checkers.session.NoSpark`,
    and whatever comes of a job that crashes.
    """
    began_s = time.monotonic()
    differ = []
    for folder, judged in zip(folders, _judged(folders, session) if folders else (), strict=True):
        if _is_same(folder, judged):
            shutil.rmtree(folder)
        else:
            differ.append(str(folder))
    return Together(
        histories=len(folders),
        seconds=round(time.monotonic() - began_s, 1),
        differ=tuple(differ),
    )


def _judged(folders: Sequence[Path], session: "SparkSession | None") -> list[Judged]:
    from checkers import session as session_  # a search that wants no Spark imports none

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
    """Verdict and findings, to the last word; how long a checker took is its own affair."""
    said = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=Verdict)
    if essence(said) != essence(judged.verdict):
        return False
    again = folder / "findings-of-spark.parquet"
    findings_.write(again, judged.findings)
    same: bool = pq.read_table(again).equals(pq.read_table(folder / "findings.parquet"))
    if same:
        again.unlink()
    return same
