"""The summary of a gate for a CI job, in GitHub's Markdown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.app.gate.outcome import FaultProof
from harness.app.gate.summary import markdown

Make = Callable[..., Any]
FOLDER = Path("results/gates/x")


def test_the_word_then_what_needs_a_look_then_the_table(case: Make, gate: Make) -> None:
    """The verdict comes first, then red cases with the command to replay them, then the table."""
    text = markdown(
        gate(
            case("valid", seconds=26.2, throughput_hz=1812.4, unavailable_s=3.1, recovery_s=1.04,
                 faults=(FaultProof("kill", True), FaultProof("kill", False))),
            case("skipped", why=("containers is optional",), excused=True),
            case("invalid", why=("lost-write 3 · partition x-0: …", "b", "c", "d", "e"),
                 folder="runs/a"),
            seconds=125.0,
        ),
        FOLDER,
    )  # fmt: skip
    assert text.splitlines() == [
        "## Faultline gate quick: 1 invalid, 1 skipped, 1 valid of 3 cases in 2:05 min: ❌ invalid",
        "",
        "**❌ idempotent · kill · invalid**",
        "",
        "- lost-write 3 · partition x-0: …",
        "- b",
        "- c",
        "- … and 2 more",
        "- repeat: `faultline replay results/gates/x/runs/a`",
        "",
        "| | case | seconds | acked/s | longest wait | recovery | faults proved |",
        "|---|---|---:|---:|---:|---:|---:|",
        "| ❌ invalid | idempotent · kill · invalid | 0 s | — | — | — | 0 of 0 |",
        "| ✅ valid | idempotent · kill · valid | 26 s | 1,812 | 3.1 s | 1.0 s | 1 of 2 |",
        "| ⏭️ skipped | idempotent · kill · skipped | — | — | — | — | — |",
        "",
        "Skipped: containers is optional",
    ]  # fmt: skip


def test_nothing_that_was_recorded_is_taken_for_markup(case: Make, gate: Make) -> None:
    """Keys, errors and last lines are escaped, because they come from outside."""
    why = "crash 1 · its last line: <img src=x onerror=alert(1)> | `a` *b* [c](d)\n# e"
    text = markdown(gate(case("invalid", why=(why,))), FOLDER)
    (line,) = (line for line in text.splitlines() if "last line" in line)
    assert line == (
        r"- crash 1 · its last line: &lt;img src=x onerror=alert(1)&gt; \| \`a\` \*b\* \[c\](d) # e"
    )


def test_an_empty_gate_has_a_summary(gate: Make) -> None:
    """A gate that was interrupted before its first case ended has a summary."""
    text = markdown(gate(planned=3, interrupted=True, seconds=2.0), FOLDER)
    assert "quick: none of 3 cases, interrupted after 0:02 min: ❔ unknown" in text


def test_systems_have_a_table_of_their_own(case: Make, gate: Make) -> None:
    """The medians of several systems follow the table of the cases."""
    system = "apache-kafka:3.9.1"
    ours = case(name="a · seed 1", throughput_hz=200.0)
    theirs = case(name=f"a · {system} · seed 1", system=system, throughput_hz=50.0)
    text = markdown(gate(ours, theirs), Path("g"))
    assert text.endswith(
        "| system | valid | median throughput | median longest wait | median recovery |\n"
        "|---|---:|---:|---:|---:|\n"
        "| kafka | 1 of 1 | 200 /s | — | — |\n"
        f"| {system} | 1 of 1 | 50 /s (ratio 0.25) | — | — |\n"
    )
    assert "median throughput" not in markdown(gate(ours), Path("g"))
