from typing import Any

import pytest

from checkers.kernels import key
from checkers.kernels.found import Found
from checkers.kernels.log import Log


def explode(log: Log) -> list[Found]:
    raise ZeroDivisionError(f"on {log.key}")


@pytest.mark.parametrize("kernels", [key.BASIC, key.DERIVED])
def test_a_checker_that_crashes_spares_the_others(
    histories: Any, monkeypatch: pytest.MonkeyPatch, kernels: dict[str, key.Kernel]
) -> None:
    """A checker that crashes does not affect the others, and its receipt says why."""
    monkeypatch.setitem(kernels, "polls" if "polls" in kernels else "offsets", explode)
    report = key.judge(histories.log("s:x=a@0 s:x=b@1 p:x=b@1"))
    crashes = [receipt.crash for receipt in report.checker_runs if receipt.crash]
    assert crashes == ["ZeroDivisionError: on x"]
    assert [f.anomaly for f in report.found] == ["lost-write"]


def test_evidence_of_a_key(histories: Any) -> None:
    """The evidence of a partition is its acknowledged records, and the distinct records that were
    read."""
    report = key.judge(histories.log("s:x=a@0 s?:x=b s1?:x=c p:x=a@0,x=b@1 p2:x=a@0"))
    assert (report.acked, report.read) == (1, 2)
