"""Whether the files of a run's folder are what their names say: it may come from somebody else.

A named pipe would make a reader wait for ever, a device could be read for ever; through a symbolic
link a file from elsewhere would be shown on the page, or a verdict would be written elsewhere.
"""

import stat
from collections.abc import Iterator
from pathlib import Path

FILES = (
    *("plan.json", "run.json", "schedule.jsonl", "invariants.jsonl", "crash.txt"),
    *("history.jsonl", "history.parquet", "history.edn"),
    *("verdict.json", "findings.parquet", "report.html"),
)
FOLDERS = ("nodes", "judgements")
"""Each holds one folder a node, or a judgement."""
OF_EACH = ("log.txt", "server.properties", "verdict.json", "findings.parquet", "report.html")
"""What those folders hold that is read or written."""
PLAN_BYTES_MAX = 64 << 20
"""Far more than a schedule of a million faults."""


def refusal(folder: Path, names: tuple[str, ...] | None = None) -> str | None:
    """What is wrong with a file of a run's folder, in one line; ``None`` when each is a regular
    file or does not exist. ``names``: only of these."""
    for path, is_folder in _of(folder) if names is None else ((folder / n, False) for n in names):
        try:
            found = path.lstat()
        except OSError:
            continue  # the reader says what is missing
        if is_folder and not stat.S_ISDIR(found.st_mode):
            return f"{path} is {_kind(found.st_mode)}; in a run's folder it is a folder"
        if not is_folder and not stat.S_ISREG(found.st_mode):
            return f"{path} is {_kind(found.st_mode)}; a run's folder holds regular files"
        if path.name == "plan.json" and found.st_size > PLAN_BYTES_MAX:
            return f"{path} has {found.st_size:,} bytes; a plan has {PLAN_BYTES_MAX:,} at most"
    return None


def _of(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Each path that is looked at, and whether it is a folder; a folder before what it holds."""
    for name in FILES:
        yield folder / name, False
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
