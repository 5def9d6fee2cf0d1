"""The schedules in the documents about truncation to the watermark do what the text says."""

import re
from pathlib import Path

import msgspec
import pytest

from harness.app import plan_resolution
from tests.sim.conftest import Simulate

FINDINGS = Path(__file__).resolve().parents[2] / "docs" / "findings"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("story", "mutant", "told"),
    [
        ("hw-truncation-loses", "truncate-to-hw-loss", {"lost-write"}),
        (
            "hw-truncation-diverges",
            "truncate-to-hw-diverge",
            {"lost-write", "invariant:log-matching"},
        ),
    ],
)
def test_the_page_tells_the_truth(
    story: str, mutant: str, told: set[str], tmp_path: Path, simulate: Simulate
) -> None:
    """The schedule has the anomalies of the text with the mutant, and is valid without it."""
    [plan] = re.findall(
        r"^```toml\n(.*?)^```$", (FINDINGS / f"{story}.md").read_text(), re.MULTILINE | re.DOTALL
    )
    path = tmp_path / "plan.toml"
    path.write_text(plan)
    asked = plan_resolution.plan_of(plan_resolution.from_toml(path))
    without = simulate(asked).verdict
    planted = simulate(msgspec.structs.replace(asked, mutants=(mutant,))).verdict
    assert without["valid"] is True
    assert without["evidence"]["faults_effective"] == without["evidence"]["faults"]
    assert without["evidence"]["acked"] == without["evidence"]["read"] > 10
    assert told <= planted["anomalies"].keys()
