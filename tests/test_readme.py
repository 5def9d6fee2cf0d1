"""README's examples are run, or at least name verbs that exist.

A fenced block after the comment ``<!-- run -->`` is run in an empty folder: in a ``console`` block
each line that begins with ``$``, a ``python`` block as a whole. Other blocks are only read.
"""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
FENCE = re.compile(r"(<!-- run -->\s*)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block."""

    runs: bool
    language: str
    text: str


def blocks(text: str) -> list[Block]:
    """The fenced blocks that name a language."""
    return [Block(bool(run), language, body) for run, language, body in FENCE.findall(text)]


def commands(block: Block) -> list[list[str]]:
    """The commands of a block, each as its arguments; comments left out."""
    if block.language == "python":
        return [[sys.executable, "-c", block.text]]
    lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines]


def verbs(found: list[Block]) -> list[str]:
    """The verbs of ``faultline`` that console blocks name."""
    asked = [words for block in found if block.language == "console" for words in commands(block)]
    return [words[1] for words in asked if words[0] == "faultline" and len(words) > 1]


def test_blocks_are_told_apart() -> None:
    """Only a block right after the comment is run, and only its ``$`` lines are commands."""
    text = (
        "<!-- run -->\n```console\n$ echo 'a b'  # note\na b\n```\n"
        "text\n```console\n$ faultline run --seed 7\n```\n"
    )
    first, second = blocks(text)
    assert (first.runs, commands(first)) == (True, [["echo", "a b"]])
    assert (second.runs, verbs([second])) == (False, ["run"])


@pytest.mark.slow
def test_runnable_examples_run(tmp_path: Path, project_environment: dict[str, str]) -> None:
    """Each command that README shows as runnable has exit status 0."""
    runnable = [block for block in blocks(README.read_text()) if block.runs]
    for command in [command for block in runnable for command in commands(block)]:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=project_environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(command)}: {done.stderr}"


def test_verbs_exist() -> None:
    """README names no verb that the command line does not have."""
    cli = pytest.importorskip("harness.app.cli", reason="there is no command line yet")
    known = set(import_module(cli.__name__).faultline.commands)
    assert set(verbs(blocks(README.read_text()))) - {"--help", "--version"} <= known
