"""Which names of files and folders may be those of histories."""

from pathlib import PurePath

from harness.app import plan_file

OF_RUNS = ("history.jsonl", "history.parquet", "history.edn", plan_file.NAME)
"""A folder with one of these is a run."""
OTHER_FILES = (".html", ".json", ".log", ".md", ".png", ".txt", ".xml")
"""How the names of files end that are no histories."""


def may_be_history(name: str) -> bool:
    """Return whether a file with this name must be judged, or refused with the reason."""
    return PurePath(name).suffix not in OTHER_FILES and not name.startswith(".")
