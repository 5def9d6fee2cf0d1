"""Where this user's commands find what earlier ones have written down. Cheap to import."""

import os
from pathlib import Path


def state_folder() -> Path:
    """``$XDG_STATE_HOME/faultline``, by default ``~/.local/state/faultline``: its ``processes``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "faultline" / "processes"
