"""Names the code that runs: the versions of Faultline and of client libraries, and the commit."""

import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

import confluent_kafka

_ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def faultline() -> str:
    """Return the version of Faultline."""
    return importlib.metadata.version("faultline")


@functools.cache
def in_use() -> dict[str, str]:
    """Return the versions of Faultline, Python and the client libraries."""
    names = ("aiokafka", "confluent-kafka", "pyspark", "toxiproxy-python")
    return {
        "python": platform.python_version(),
        "faultline": faultline(),
        **{name: importlib.metadata.version(name) for name in names},
        "librdkafka": confluent_kafka.libversion()[0],
    }


@functools.cache
def commit() -> str:
    """Return the current commit, with ``-dirty`` for local changes; empty outside a repository."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return described.stdout.strip() if described.returncode == 0 else ""
