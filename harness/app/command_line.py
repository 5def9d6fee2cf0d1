"""Builds command lines that a user can paste into the shell from which the program was started.

The program may have been started by a path that is not on PATH, as ``make`` does.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

from harness.app import exits


def command(*words: object) -> str:
    """Return a command line of this program, for the current shell and folder."""
    return shlex.join([*_program(), *map(str, words)])


def _program() -> list[str]:
    started = Path(sys.argv[0])
    if exits.is_module():
        return [_short(Path(sys.executable)), "-m", exits.MODULE]
    if started.name != exits.PROGRAM or _is_on_users_path(started):
        return [exits.PROGRAM]
    return [_short(started)]


def _is_on_users_path(started: Path) -> bool:
    """Return whether the program is on the user's PATH, not only on that of this process.

    A virtual environment that is not activated may be on PATH for this process alone.
    """
    found = shutil.which(exits.PROGRAM)
    if found is None or not started.exists() or not Path(found).samefile(started):
        return False
    is_inside = sys.prefix != sys.base_prefix and Path(found).parent == Path(sys.prefix, "bin")
    return not is_inside or os.environ.get("VIRTUAL_ENV") == sys.prefix


def _short(path: Path) -> str:
    """Return the path relative to the current folder if it is below that, else absolute."""
    path, here = path.absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
