"""Links from a page to the other files of its folder, if they exist."""

import os
from pathlib import Path
from urllib.parse import quote

from model import history

HISTORY = "history.jsonl"
FILES = ("plan.json", "run.json", "cluster.json", "schedule.jsonl", HISTORY,
         "findings.parquet", "invariants.jsonl", "node-signs.jsonl", "verdict.json",
         "crash.txt")  # fmt: skip


def files(folder: Path, page: Path) -> list[tuple[str, str]]:
    """Return name and link of each file of a run's folder that a reader may want to open.

    Links start from the folder of ``page``. The page of a further judgement links to its own
    verdict and findings.
    """
    found = []
    following = [path.name for path in history.segments(folder / HISTORY)[1:]]
    at = FILES.index(HISTORY) + 1
    for name in (*FILES[:at], *following, *FILES[at:]):
        of = page if (page / name).is_file() else folder
        if (of / name).is_file():
            found.append((name, to(of / name, page)))
    return found


def to(path: Path, page: Path) -> str:
    """Return the link from a page's folder to a file."""
    return quote(Path(os.path.relpath(path, page)).as_posix())
