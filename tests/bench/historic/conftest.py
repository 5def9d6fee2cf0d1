"""A command that answers like ``faultline run``, without running anything."""

import subprocess
from collections.abc import Callable, Sequence

import msgspec
import pytest

VALID, INVALID, UNKNOWN = 0, 1, 2


class FakeFaultline:
    """Convicts what has a bug, and acquits the rest."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.answer: Callable[[Sequence[str]], int] = lambda words: (
            INVALID if "--mutant" in words or "apache-kafka:0.10.2.2" in words else VALID
        )

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(list(words))
        status = self.answer(words)
        verdict = {
            "valid": {VALID: True, INVALID: False, UNKNOWN: "unknown"}.get(status),
            "anomalies": {"lost-write": 16} if status == INVALID else {},
            "evidence": {"acked": 1209, "read": 1200, "faults": 5, "faults_effective": 5},
            "unknown_because": ["the cluster did not recover"] if status == UNKNOWN else [],
            "judged_by": {"commit": "abc"},
        }
        text = msgspec.json.encode(verdict).decode() if status <= UNKNOWN else "one\ntwo\n"
        return subprocess.CompletedProcess(list(words), status, text)


@pytest.fixture
def fake() -> FakeFaultline:
    return FakeFaultline()
