"""Options of a plan that are numbers: why one is none that will do."""

import math
from collections.abc import Mapping
from typing import Any

MOST: Mapping[str, float] = {
    "topics": 1_000,
    "late_topics": 1_000,
    "partitions": 1_000,
    "batch_max": 100_000,
    "keys": 1_000_000,
    "memory_mb": 1 << 20,
    "disk_mb": 1 << 20,
    "cpus": 1024,
}
"""The largest number of each option that decides how much is made before anything starts."""
MOST_OF_OTHERS = (1 << 31) - 1


def refusal(options: Mapping[str, Any], least: Mapping[str, float]) -> str | None:
    """The first of these options that is too small, too large or no number, in one line; ``None``
    when all will do. ``least`` has the smallest that does by name: a whole number asks for whole
    ones."""
    for name, smallest in least.items():
        number, whole = options[name], isinstance(smallest, int)
        kinds = int if whole else int | float
        fits = isinstance(number, kinds) and not isinstance(number, bool)
        if not (fits and smallest <= number < math.inf):
            what = "whole number" if whole else "number"
            return f"options: {name}={number}: must be a {what} of at least {smallest:g}"
        most = MOST.get(name, MOST_OF_OTHERS)
        if number > most:
            return f"options: {name}={number}: must be {most:,} at most"
    return None
