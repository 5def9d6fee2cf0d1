"""The executor without Spark: judges one partition after the other, in this process."""

from collections.abc import Callable

from checkers import memory
from checkers.kernels import key
from checkers.tables import Tables


def judge(tables: Tables, progress: Callable[[float], None]) -> dict[str, key.Report]:
    """Return the report of each partition, by name."""
    count = max(len(tables.active_keys), 1)
    reports = {}
    for done, log in enumerate(tables.logs(), start=1):
        reports[log.key] = key.judge(log)
        del log  # so that there is only one at a time
        progress(done / count)
    memory.release()
    return reports
