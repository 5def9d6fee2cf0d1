"""The files of the tables: a run's new files replace the earlier ones when all are complete."""

import contextlib
import fcntl
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from harness.app import files, temporary
from harness.app.refused import Refused
from harness.app.tables.rows import Made
from harness.app.tables.schema import TABLES, VERSION

LAYOUT = f"v{VERSION}"
LOCK = "tables.lock"
"""The file that readers lock, and writers while they replace a run."""
FILE = "part-0.parquet"
COMPRESSION = "zstd"
_NO_NAME = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = frozenset("\"#%'*/:=?\\{}[]^\x7f")


def create(root: Path) -> None:
    """Create the folder of tables if it is missing or empty; raises Refused for another one."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        others = {path.name for path in root.iterdir() if not path.name.startswith(".")}
        if LAYOUT not in others and others - {LOCK}:
            raise Refused(f"--to {root}: this folder is not empty and has no tables of {LAYOUT}")
        for name in TABLES:
            (root / LAYOUT / name).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Refused(f"--to {root}: this path is not a folder") from None
    except OSError as error:
        raise Refused(f"--to {root}: {error.strerror}") from None


def required(root: Path) -> Path:
    """Return the folder of the tables in ``root``; raises Refused if there is none."""
    if not all((root / LAYOUT / name).is_dir() for name in TABLES):
        raise Refused(
            f"--tables {root}: there are no tables of {LAYOUT}; `faultline tables PATH… --to"
            f" {root}` writes them"
        )
    return root / LAYOUT


def replace(root: Path, run: str, made: Iterable[Made]) -> None:
    """Write the tables of a run, and replace its earlier ones when all of them are complete.

    Raises :class:`OSError`.
    """
    with temporary.folder(root, ".adding-") as scratch:
        for name in TABLES:
            (scratch / name).mkdir()
        for name, partition, chunks in made:
            folder = scratch / name
            if partition is not None:
                folder /= _named("partition", partition)
                folder.mkdir()
            with pq.ParquetWriter(
                folder / FILE, TABLES[name].of_files, compression=COMPRESSION
            ) as file:
                for chunk in chunks:
                    file.write_table(chunk)
        old = scratch / "old"
        old.mkdir()
        with locked(root, fcntl.LOCK_EX):
            for name in TABLES:
                target = root / LAYOUT / name / _named("run", run)
                if target.exists():
                    target.rename(old / name)
                (scratch / name).rename(target)


def locked(root: Path, how: int = fcntl.LOCK_SH) -> contextlib.AbstractContextManager[None]:
    """Hold a lock on the tables; those that cannot be written are read without a lock."""
    return files.locked(root / LOCK, how)


def _named(column: str, value: str) -> str:
    """Return the name of a folder for a column's value, as Hive and Spark escape it."""
    escaped = "".join(f"%{ord(c):02X}" if c < " " or c in _SPECIAL else c for c in value)
    return f"{column}={escaped or _NO_NAME}"
