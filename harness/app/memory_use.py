"""The memory of this process and of all that it has started, by what they are."""

from typing import NamedTuple

import psutil


class MemoryUse(NamedTuple):
    """Resident memory in MB."""

    harness: float
    """This process, and what it has started to help it."""
    spark: float = 0.0
    """The JVM of Spark."""
    workers: float = 0.0
    """Spark's Python processes."""
    nodes: float = 0.0
    """All other processes: the nodes of the cluster, and their proxies."""


def measure() -> MemoryUse:
    """Measure now; a process that ends meanwhile has no memory."""
    me = psutil.Process()
    sizes = {"harness": me.memory_info().rss, "spark": 0, "workers": 0, "nodes": 0}
    for process in me.children(recursive=True):
        try:
            sizes[_kind(process.cmdline())] += process.memory_info().rss
        except psutil.Error:
            continue
    return MemoryUse(**{kind: size / 1e6 for kind, size in sizes.items()})


def _kind(command: list[str]) -> str:
    if any("org.apache.spark" in word for word in command):
        return "spark"
    if any(word.startswith("pyspark") for word in command):
        return "workers"
    return "harness" if any("multiprocessing" in word for word in command) else "nodes"
