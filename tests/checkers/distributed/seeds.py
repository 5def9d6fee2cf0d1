"""How many generated histories are judged by both executors; ``make twins COUNT=n`` judges more."""

import os

COUNT = int(os.environ.get("FAULTLINE_SEEDS", "2"))


def seeds(first: int) -> range:
    """Return the seeds of a test, from the first one on."""
    return range(first, first + COUNT)
