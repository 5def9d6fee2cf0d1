"""Checks the numeric options of a plan against their bounds."""

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
"""The upper bounds of options that determine how much is created before a run starts."""
MOST_OF_OTHERS = (1 << 31) - 1


def refusal(options: Mapping[str, Any], least: Mapping[str, float]) -> str | None:
    """Return why an option is too small, too large or not a number; ``None`` if all are good.

    ``least`` maps each option to its smallest allowed value. An integer there requires an integer.
    Only the first bad option is reported.
    """
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
