"""The executor without Spark: each key after the other, in this process."""

from collections.abc import Callable

from checkers import memory
from checkers.kernels import key
from checkers.tables import Tables


def judge(tables: Tables, progress: Callable[[float], None]) -> dict[str, key.Report]:
    """What the kernels find, by key."""
    count = max(len(tables.active_keys), 1)
    reports = {}
    for done, log in enumerate(tables.logs(), start=1):
        reports[log.key] = key.judge(log)
        del log  # so that there is only one at a time
        progress(done / count)
    memory.release()
    return reports
