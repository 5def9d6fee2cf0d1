"""Links from a page to the other files of its folder, as far as they are there."""

from pathlib import Path
from urllib.parse import quote

FILES = ("plan.json", "run.json", "schedule.jsonl", "history.jsonl", "findings.parquet",
         "invariants.jsonl", "verdict.json", "crash.txt")  # fmt: skip


def files(folder: Path) -> list[tuple[str, str]]:
    """Name and link of each file of a run's folder that a reader may want to open."""
    return [(name, quote(name)) for name in FILES if (folder / name).is_file()]
