"""Rows of a lake with figures as a test wants them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from harness.app.lake import schema
from harness.app.lake.store import Lake

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
Outage = Callable[[int, np.random.Generator], float]
"""Returns the outage of a run of the version with this number."""


def commit(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()


def rows(versions: Sequence[int], runs: int, outage: Outage, **fields: Any) -> Iterator[Any]:
    """Yield ``runs`` rows for each version, half of them of a slower scenario."""
    rng = np.random.default_rng(7)
    for version in versions:
        for number in range(runs):
            slow = number % 2
            outage_s = outage(version, rng) * (3.0 if slow else 1.0)
            name = f"{version}-{number}-{fields.get('release')}-{fields.get('suite', 0)}"
            yield {
                "version": schema.VERSION,
                "id": name,
                "time": FIRST + timedelta(days=version, minutes=number),
                "commit": commit(version),
                "suite": "nightly",
                "system": "kafka",
                "workload": "groups" if slow else "idempotent",
                "target": "simulated",
                "verdict": "valid",
                "duration_s": 60.0,
                "outage_s": outage_s,
                "throughput_hz": float(rng.normal(100, 5)),
                **fields,
            }


def noise(rng: np.random.Generator) -> float:
    return float(rng.lognormal(0.7, 0.3))


def steady(version: int, rng: np.random.Generator) -> float:
    """Outages of about two seconds, of whatever version."""
    return noise(rng)


def slower_from(first: int, factor: float = 2.0) -> Outage:
    """Outages that are longer from a version on."""
    return lambda version, rng: noise(rng) * (factor if version >= first else 1.0)


def lake(folder: Path, *groups: Iterator[Any]) -> Lake:
    """Make a lake with these rows."""
    made = Lake.create(folder)
    for group in groups:
        made.add(list(group))
    return made
