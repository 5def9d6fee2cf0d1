"""Checks the file types in a run's folder, which may come from an untrusted source.

A named pipe would block a reader, and reading a device might never end. Through a symbolic link a
file from elsewhere would be shown in the report, or a verdict would be written elsewhere.
"""

import stat
from collections.abc import Iterator
from pathlib import Path

FILES = (
    *("plan.json", "run.json", "cluster.json"),
    *("schedule.jsonl", "invariants.jsonl", "node-signs.jsonl", "crash.txt"),
    *("watch.jsonl", "soak.jsonl"),
    *("history.jsonl", "history.parquet", "history.edn"),
    *("verdict.json", "findings.parquet", "report.html"),
)
FOLDERS = ("nodes", "judgements")
"""Folders with one folder for each node, or for each judgement."""
OF_EACH = ("log.txt", "server.properties", "verdict.json", "findings.parquet", "report.html")
"""The files in those folders that are read or written."""
PLAN_BYTES_MAX = 64 << 20
"""Far larger than a schedule of a million faults."""


def refusal(folder: Path, names: tuple[str, ...] | None = None) -> str | None:
    """Return which file of a run's folder has a wrong type, in one line.

    Returns ``None`` if each is a regular file or does not exist. ``names`` restricts the check to
    these files.
    """
    for path, is_folder in _of(folder) if names is None else ((folder / n, False) for n in names):
        try:
            found = path.lstat()
        except OSError:
            continue  # the reader reports a missing file
        if is_folder and not stat.S_ISDIR(found.st_mode):
            return f"{path} is {_kind(found.st_mode)}; it must be a folder"
        if not is_folder and not stat.S_ISREG(found.st_mode):
            return f"{path} is {_kind(found.st_mode)}; it must be a regular file"
        if path.name == "plan.json" and (why := too_large(path, found.st_size)) is not None:
            return why
    return None


def too_large(plan: object, size: int) -> str | None:
    """Return why a plan of this size is not read, in one line; ``None`` if it is."""
    if size <= PLAN_BYTES_MAX:
        return None
    return f"{plan} has {size:,} bytes; the maximum is {PLAN_BYTES_MAX:,}"


def _of(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each path to check, and whether it is a folder; a folder precedes its content."""
    for name in FILES:
        yield folder / name, False
    for segment in sorted(folder.glob("history-*.jsonl")):
        yield segment, False
    for name in FOLDERS:
        yield folder / name, True
        try:
            inner = sorted((folder / name).iterdir()) if not (folder / name).is_symlink() else []
        except OSError:
            continue
        for each in inner:
            if each.is_symlink():
                yield each, True
            else:
                yield from ((each / file, False) for file in OF_EACH)


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISREG, "a regular file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")
