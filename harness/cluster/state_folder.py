"""The folder in which a user's commands find the records of earlier ones. Cheap to import."""

import os
from pathlib import Path


def state_folder() -> Path:
    """The ``processes`` folder in ``$XDG_STATE_HOME/faultline``, by default ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "faultline" / "processes"
