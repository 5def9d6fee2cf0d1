"""Which faults the target ``simulated`` offers to a plan."""

import msgspec
import pytest

from harness.app import plan_resolution
from harness.app.refused import Refused
from model.plan import Plan


def test_a_directory_fails_only_where_there_are_several() -> None:
    """With one data directory, ``all`` has no fault of directories, and naming it is refused."""
    several = Plan(target="simulated", options={"data_directories": 2})
    assert "directories" in plan_resolution.offered(several)
    assert "directories" not in plan_resolution.offered(Plan(target="simulated"))
    named = Plan(target="simulated", nemesis=("directories",), time_limit_s=60.0)
    with pytest.raises(Refused, match="set the option data_directories to 2 or more"):
        plan_resolution.resolve(named)
    schedule = plan_resolution.resolve(
        msgspec.structs.replace(named, options=several.options)
    ).schedule
    assert {fault.options["directory"] for fault in schedule or ()} == {1, 2}
