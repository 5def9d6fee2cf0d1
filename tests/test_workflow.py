"""The GitHub workflow calls what exists, and follows the rules of a CI job."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from harness.app import cli

PINNED = re.compile(r"actions/[a-z/-]+@[0-9a-f]{40}")


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / ".github" / "workflows" / "faultline.yml").read_text()


@pytest.fixture
def workflow(text: str) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load(text)
    return document


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_its_commands_exist(workflow: dict[Any, Any], repository: Path) -> None:
    """Each command is the set-up, or a verb of the command line with options that it has."""
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    called = []
    for line in commands:
        words = shlex.split(re.sub(r"\$\{\w+:\+(.*?)\}", r"\1", line))
        assert words[:3] == ["python", "-m", "setup"]
        assert (repository / "setup" / "__main__.py").is_file()
        if words[3:]:
            program, verb, *rest = words[3:]
            assert program == "faultline"
            command = cli.faultline.commands[verb]
            assert isinstance(command, click.Command)
            known = {option for each in command.params for option in each.opts}
            assert {word for word in rest if word.startswith("--")} <= known
            called.append(verb)
    assert called == ["gate"]


def test_its_suites_exist(workflow: dict[Any, Any], text: str, repository: Path) -> None:
    """Each suite exists, both those to choose by hand and those that events choose."""
    chosen = workflow[True]["workflow_dispatch"]["inputs"]["suite"]["options"]  # YAML's "on"
    assert workflow[True]["schedule"]
    assert "pull_request" in workflow[True]
    named = re.findall(r"'(quick|nightly|release)'", text)
    there = {path.stem for path in (repository / "examples" / "suites").glob("*.toml")}
    assert set(chosen) == there
    assert {"quick", "nightly"} <= set(named) <= there


def test_its_actions_are_pinned_and_its_rights_few(workflow: dict[Any, Any], text: str) -> None:
    """Actions are pinned by commit, because a tag can be moved; a gate may only read the
    repository."""
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert used
    assert all(PINNED.fullmatch(action) for action in used)
    assert len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", text, re.MULTILINE)) == len(used)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_report_is_kept_when_the_gate_is_red(workflow: dict[Any, Any]) -> None:
    """The report is kept if the gate is red."""
    after = [
        step for step in steps(workflow) if step.get("name") in ("Report", "This gate, for trends")
    ]
    assert len(after) == 2
    assert all("always()" in step["if"] for step in after)
    assert "results/gates" in after[1]["with"]["path"]
