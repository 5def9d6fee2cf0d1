"""Links from a page to the other files of its folder, as far as they are there."""

import os
from pathlib import Path
from urllib.parse import quote

FILES = ("plan.json", "run.json", "schedule.jsonl", "history.jsonl", "findings.parquet",
         "invariants.jsonl", "verdict.json", "crash.txt")  # fmt: skip


def files(folder: Path, page: Path) -> list[tuple[str, str]]:
    """Name and link of each file of a run's folder that a reader may want to open, from the folder
    of a page: that of a further judgement has a verdict and findings of its own."""
    found = []
    for name in FILES:
        of = page if (page / name).is_file() else folder
        if (of / name).is_file():
            found.append((name, to(of / name, page)))
    return found


def to(path: Path, page: Path) -> str:
    """A file, as a page in a folder links it."""
    return quote(Path(os.path.relpath(path, page)).as_posix())
