"""Runs the set-up in order (environment, Java, Toxiproxy), and then the requested command."""

import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from setup import environment, java, state, toxiproxy
from setup.problem import CannotGoOn, say

ROOT = Path(__file__).resolve().parent.parent
CANNOT = 69
"""Exit status EX_UNAVAILABLE: a required program is missing and cannot be installed."""


def main(command: Sequence[str], root: Path = ROOT) -> int:
    """Set up, then replace this process with the command.

    Returns only if there is no command, the set-up failed, or the command cannot be run.
    """
    try:
        variables = ready(root)
    except CannotGoOn as problem:
        sys.stderr.write(f"{problem}\n")
        return CANNOT
    if not command:
        return 0
    surroundings = state.complete(os.environ, variables, root)
    try:
        os.execvpe(command[0], list(command), surroundings)
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be run: {error.strerror}.\n")
        return CANNOT


def ready(root: Path) -> dict[str, str]:
    """Return the variables that name what was found or installed; fast if nothing has changed."""
    tools = root / ".tools"
    (tools / "bin").mkdir(parents=True, exist_ok=True)
    with (tools / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        current = state.stamp(root)
        kept = state.load(tools / "env.json", current)
        if kept is not None:
            return kept
        environment.sync(root, environment.uv(tools))
        home = java.home(tools)
        variables = {
            "JAVA_HOME": str(home),
            "FAULTLINE_JAVA_HOME": str(home),
            "FAULTLINE_TOXIPROXY": str(toxiproxy.server(tools)),
        }
        state.save(tools / "env.json", current, variables)
        say("done; JAVA_HOME is " + variables["JAVA_HOME"])
        return variables
