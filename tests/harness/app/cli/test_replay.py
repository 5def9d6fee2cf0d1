"""``faultline replay`` of a plan that cannot be repeated."""

from pathlib import Path

import msgspec
import pytest

from model.plan import Plan
from tests.harness.app.cli.conftest import Call


@pytest.mark.parametrize(
    ("plan", "told_why"),
    [
        (Plan(), "no schedule"),
        (Plan(schedule=(), producer={"sasl.password": "***"}), "a secret in this plan was masked"),
    ],
)
def test_a_plan_that_cannot_be_repeated_is_refused(
    plan: Plan, told_why: str, tmp_path: Path, call: Call
) -> None:
    """``replay`` refuses a plan without a schedule or with a masked secret."""
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    status, _, err = call("replay", str(tmp_path))
    assert status == 64
    assert told_why in err
