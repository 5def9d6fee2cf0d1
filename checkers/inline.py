"""The executor without Spark: judges one partition after the other, in this process.

Two threads share the partitions of a large history.
"""

from collections.abc import Callable

from checkers import memory, threads
from checkers.kernels import key
from checkers.logs import Logs
from checkers.tables import Tables


def judge(tables: Tables, progress: Callable[[float], None]) -> dict[str, key.Report]:
    """Return the report of each partition, by name."""
    keys, logs = tables.active(), Logs(tables.key_rows(), len(tables.keys))
    count = threads.count(len(tables.sends) + len(tables.polls))
    # Each thread has one log at a time.
    found = threads.mapped(lambda each: key.judge(logs.log(each)), keys, count)
    reports = {}
    for done, (each, report) in enumerate(zip(keys, found, strict=True), start=1):
        reports[each.name] = report
        progress(done / len(keys))
    memory.release()
    return reports
