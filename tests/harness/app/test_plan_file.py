"""A recorded plan, which may come from another user, is read strictly."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import plan_file
from harness.app.refused import Refused
from model.plan import Plan, ScheduledFault

KILL = ScheduledFault(id=1, at_s=2.0, duration_s=1.0, fault="kill", targets=["broker-1"])
PLAN = Plan(target="simulated", nemesis=("kill",), schedule=(KILL,))


def written(folder: Path, text: str) -> Path:
    (folder / "plan.json").write_text(text)
    return folder


def changed(**fields: Any) -> str:
    return json.dumps(msgspec.to_builtins(PLAN) | fields)


def fault(**fields: Any) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(KILL) | fields]


def test_what_a_run_has_written_is_read(tmp_path: Path) -> None:
    """A plan is read as it was written."""
    assert plan_file.read(written(tmp_path, changed())) == PLAN


WRONG = {
    "an unknown field": (changed(expct={}), "no field is called expct; did you mean expect?"),
    "an unknown field of a fault": (changed(schedule=fault(durations=5)), "field `durations`"),
    "a field that comes twice": (
        changed().replace('{"', '{"seed": 5, "', 1),
        'two fields that are called "seed"',
    ),
    "a field of a fault that comes twice": (
        changed().replace('"id": 1', '"id": 1, "id": 2'),
        'two fields that are called "id"',
    ),
    "too many brokers": (changed(brokers=2**31), "brokers 2147483648: the maximum is 100 brokers"),
    "far too many brokers": (
        changed(brokers=2**63),
        "brokers 9223372036854775808: must be from 1 to",
    ),
    "brokers of 400 digits": (changed(brokers=10**400), "000…: must be from 1 to 100 brokers"),
    "no brokers": (changed(brokers=0), "brokers 0: must be"),
    "a negative time limit": (changed(time_limit_s=-1), "time-limit -1: must be"),
    "a time limit of ages": (changed(time_limit_s=1e300), "time-limit 1e+300: the maximum"),
    "too many clients": (changed(concurrency=2**40), "concurrency 1099511627776: the maximum"),
    "a seed of more than 64 bits": (changed(seed=2**63), "must fit into 64 bits"),
    "a fault in ages": (
        changed(schedule=fault(at_s=1e300)),
        "begins at 1e+300 s; the maximum is 604,800 s",
    ),
    "a fault before the start": (changed(schedule=fault(at_s=-1)), "needs times of 0 or more"),
    "two faults of one id": (changed(schedule=fault() * 2), "two faults have the id 1"),
    "no JSON": ("plan", "is not a plan"),
    "a list": ("[]", "is not a plan"),
    "deep lists": ("[" * 50_000, "is not a plan"),
    "NaN": (changed().replace("60.0", "NaN"), "is not a plan"),
    "a lone surrogate": (changed(commit="\ud800"), "is not a plan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_no_run_has_written_is_refused(tmp_path: Path, case: str) -> None:
    """A file that no run has written is refused in one line with its name and the mistake."""
    text, message = WRONG[case]
    with pytest.raises(Refused) as refused:
        plan_file.read(written(tmp_path, text))
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'plan.json'}")
    assert "\n" not in str(refused.value)
