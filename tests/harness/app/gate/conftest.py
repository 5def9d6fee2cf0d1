"""Fixtures that make cases and gates without any runs."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.app.gate.outcome import Case, Gate, Status, overall


def _case(status: Status = "valid", **other: Any) -> Case:
    fields: dict[str, Any] = {
        "name": f"idempotent · kill · {status}",
        "workload": "idempotent",
        "nemesis": ("kill",),
        "configuration": "default",
        "target": "processes",
        "seed": 1,
        "status": status,
    }
    return Case(**(fields | other))


def _gate(*cases: Case, planned: int | None = None, **other: Any) -> Gate:
    planned = len(cases) if planned is None else planned
    fields: dict[str, Any] = {
        "suite": "quick",
        "name": "20261120T161500Z-quick",
        "began": "2026-11-20T16:15:00Z",
        "planned": planned,
        "valid": overall(cases, finished=planned == len(cases)),
    }
    return Gate(cases=cases, **(fields | other))


@pytest.fixture
def case() -> Callable[..., Case]:
    """Make a case with the given status and fields."""
    return _case


@pytest.fixture
def gate() -> Callable[..., Gate]:
    """Make a gate of the given cases, with the verdict that follows from them."""
    return _gate
