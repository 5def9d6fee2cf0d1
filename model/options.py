"""Options of a plan that are numbers: why one is none that will do."""

import math
from collections.abc import Mapping
from typing import Any


def refusal(options: Mapping[str, Any], least: Mapping[str, float]) -> str | None:
    """The first of these options that is too small or no number, in one line; ``None`` when all
    will do. ``least`` has the smallest that does by name: a whole number asks for whole ones."""
    for name, smallest in least.items():
        number, whole = options[name], isinstance(smallest, int)
        kinds = int if whole else int | float
        fits = isinstance(number, kinds) and not isinstance(number, bool)
        if not (fits and smallest <= number < math.inf):
            what = "whole number" if whole else "number"
            return f"options: {name}={number}: must be a {what} of at least {smallest:g}"
    return None
