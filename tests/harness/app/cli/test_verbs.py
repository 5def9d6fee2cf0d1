"""The verbs of the command line: each has a help with an example."""

import click
import pytest

from harness.app import cli
from tests.harness.app.cli.conftest import Call


def verbs(group: click.Group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += verbs(command, (*before, name))
        else:
            found.append((*before, name))
    return found


@pytest.mark.parametrize("verb", verbs(cli.faultline), ids=" ".join)
def test_every_verb_explains_itself(verb: tuple[str, ...], call: Call) -> None:
    """``--help`` shows what a verb does, an example, and ``--json``."""
    status, out, _ = call(*verb, "--help")
    assert (status, call(*verb, "-h")) == (0, (0, out, ""))
    assert f"faultline {' '.join(verb)}" in out.partition("Example:")[2]
    assert "--json" in out


def test_without_a_verb_there_is_help(call: Call) -> None:
    """Without a verb the help is printed, and the status is 64."""
    status, out, err = call()
    assert (status, out) == (64, "")
    assert "Commands:" in err
