"""``faultline clean``: removes everything that killed commands left behind."""

import contextlib
import tempfile
from pathlib import Path

import msgspec

from harness.app import cluster, leftovers, temporary
from harness.app.leftovers import Removed
from harness.app.search import temp_dir
from harness.cluster.registry import Entry

CHECK, WATCH = ".check-", ".watch-"
"""The prefix of a judgement's temporary folder in a run's folder."""
SPARK = ".spark"
"""The folder of Spark's files in a run's folder."""
_RUNS = ("*", "gates/*/*", "searches/*/*", "shrunk/*")
"""Patterns of the runs' folders below a results folder."""


def clean(results: Path) -> Removed:
    """Remove leftovers of this user on this machine, and of the runs in ``results``."""
    removed = leftovers.remove(asks_engine=True)
    folders = [*cluster.remove_leftovers(), *temp_dir.sweep(temp_dir.MEMORY)]
    folders += temporary.sweep(Path(tempfile.gettempdir()), "faultline-*")
    for runs in _RUNS:
        folders += temporary.sweep(results, f"{runs}/{CHECK}*", f"{runs}/{WATCH}*")
        folders += [path for path in sorted(results.glob(f"{runs}/{SPARK}")) if _removed(path)]
    return msgspec.structs.replace(removed, folders=tuple(map(str, folders)))


def _removed(spark: Path) -> bool:
    """Remove Spark's files from a run's folder if the run's own record shows that it has ended."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        record = (spark.parent / "nodes" / "pids.json").read_bytes()
        entry = msgspec.json.decode(record, type=Entry)
        if entry.is_stray and not spark.is_symlink():
            return temporary.is_removed(spark)
    return False
