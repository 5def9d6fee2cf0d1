"""The files of a lake: Parquet files with the rows of runs, added atomically and compacted.

Every addition writes one new file into the folder, under a temporary name until it is complete.
A file may replace others: its metadata names them, and readers leave those out from the moment at
which the new file has its name. They are removed afterwards, and not while a reader uses the lake.
So a process can be killed at any time: what it was adding is in the lake completely or not at all.

Additions hold a lock, which the kernel releases when a process ends. It works where all processes
that add run on one machine, or share a file system with locks.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from harness.app import files
from harness.app.lake import schema
from harness.app.refused import Refused

MARK = "lake.json"
"""The file by which a folder is known to be a lake."""
READERS, WRITERS = "readers.lock", "writers.lock"
"""The files that readers and writers lock while they use the lake."""
FANOUT = 16
"""So many files with about as many rows each become one file."""
COMPRESSION = "zstd"
_VERSION, _REPLACES = b"faultline.lake.version", b"faultline.lake.replaces"
_NO_VERDICT = (None, "failed")
_KNOWN = pa.schema([schema.ROW.field(name) for name in ("id", "verdict")])


class _Mark(msgspec.Struct, frozen=True):
    """The content of ``lake.json``."""

    lake: str = "faultline"
    version: int = schema.VERSION
    """The version that created the lake; each file has its own."""


class Stored(NamedTuple):
    """A file of rows; a file never changes."""

    path: Path
    version: int
    rows: int
    replaces: frozenset[str]
    verdicts: Mapping[str, str | None]
    """The verdict of each run, by its id."""


class Lake:
    """A folder with the rows of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, Stored] = {}
        """The files that were read so far."""

    @classmethod
    def open(cls, folder: Path) -> "Lake":
        """Return the lake of a folder; raises :class:`~harness.app.refused.Refused`."""
        mark = folder / MARK
        try:
            found = msgspec.json.decode(mark.read_bytes(), type=_Mark)
        except FileNotFoundError:
            raise Refused(
                f"--lake {folder}: there is no lake; `faultline lake add RUN… --lake {folder}`"
                " creates it"
            ) from None
        except OSError as error:
            raise Refused(f"--lake {folder}: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Refused(f"{mark} is not the file of a lake: {error}") from None
        _refuse_newer(mark, found.version)
        return cls(folder)

    @classmethod
    def create(cls, folder: Path) -> "Lake":
        """Return the lake of a folder, which is created if it is missing or empty.

        Raises :class:`~harness.app.refused.Refused` for a folder with other files.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / MARK).exists():
                others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
                if set(others) - {READERS, WRITERS}:
                    raise Refused(f"--lake {folder}: this folder is not empty and is not a lake")
                files.replace(folder / MARK, msgspec.json.encode(_Mark()) + b"\n")
        except FileExistsError:
            raise Refused(f"--lake {folder}: this path is not a folder") from None
        except OSError as error:
            raise Refused(f"--lake {folder}: {error.strerror}") from None
        return cls.open(folder)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add the rows whose ids the lake does not have; return how many were added.

        A row without a verdict is replaced by a row of the same id that has one. Raises
        :class:`OSError`, and :class:`~harness.app.refused.Refused` for a damaged lake.
        """
        with self._lock(WRITERS, fcntl.LOCK_EX):
            there = self.stored()
            known = {
                name: (verdict, file.path)
                for file in there
                for name, verdict in file.verdicts.items()
            }
            new, superseded = _to_add(rows, known)
            if not new:
                return 0
            held = {known[name][1] for name in superseded}
            old = [file for file in there if file.path in held]
            kept = [row for row in _tables(old).to_pylist() if row["id"] not in superseded]
            self._write(pa.Table.from_pylist([*kept, *new], schema.ROW), there, old)
            self._compact()
        return len(new)

    @contextlib.contextmanager
    def reading(self) -> Iterator[list[Path]]:
        """Yield the files to read; none of them is removed within the block."""
        with self._lock(READERS, fcntl.LOCK_SH):
            yield [file.path for file in self.stored()]

    def judged(self) -> set[str]:
        """Return the ids of the rows that have a verdict."""
        with self._lock(READERS, fcntl.LOCK_SH):
            there = self.stored()
        return {
            name
            for file in there
            for name, verdict in file.verdicts.items()
            if verdict not in _NO_VERDICT
        }

    def stored(self) -> list[Stored]:
        """Return the files that count, oldest first; raises Refused for one that is damaged."""
        paths = sorted(self.folder.glob("rows-*.parquet"))
        self._read = {path: self._read.get(path) or _stored(path) for path in paths}
        found = list(self._read.values())
        gone = {name for file in found for name in file.replaces}
        return [file for file in found if file.path.name not in gone]

    def _write(self, table: pa.Table, there: Sequence[Stored], old: Sequence[Stored]) -> None:
        """Write a file that replaces the ``old`` ones, and remove those."""
        numbers = [int(path.stem.split("-")[1]) for path in self.folder.glob("rows-*.parquet")]
        path = self.folder / f"rows-{max(numbers, default=0) + 1:08}.parquet"
        # What an earlier file has replaced may still be there, if a reader used it.
        left = {name for file in there for name in file.replaces if (self.folder / name).exists()}
        names = sorted(left | {file.path.name for file in old})
        metadata = {
            _VERSION: str(schema.VERSION).encode(),
            _REPLACES: msgspec.json.encode(names),
        }
        files.write(path, _filler(table.replace_schema_metadata(metadata)))
        self._remove(names)

    def _remove(self, names: Sequence[str]) -> None:
        """Remove replaced files; later, if a reader uses the lake now."""
        with (
            contextlib.suppress(BlockingIOError),
            self._lock(READERS, fcntl.LOCK_EX | fcntl.LOCK_NB),
        ):
            for name in names:
                (self.folder / name).unlink(missing_ok=True)

    def _compact(self) -> None:
        """Merge files while there are :data:`FANOUT` of about the same number of rows."""
        while True:
            there = self.stored()
            tiers: dict[int, list[Stored]] = {}
            for file in there:
                tiers.setdefault(_tier(file.rows), []).append(file)
            full = [tier for tier in tiers.values() if len(tier) >= FANOUT]
            if not full:
                return
            self._write(_tables(full[0]), there, full[0])

    def _lock(self, name: str, how: int) -> contextlib.AbstractContextManager[None]:
        """Hold a lock on a file of the lake; a lake that cannot be written is read without."""
        return files.locked(self.folder / name, how)


def _to_add(
    rows: Sequence[Mapping[str, Any]], known: Mapping[str, tuple[str | None, Path]]
) -> tuple[list[Mapping[str, Any]], set[str]]:
    """Return the rows to write, and the ids of those that they replace."""
    chosen: dict[str, Mapping[str, Any]] = {}
    superseded = set()
    for row in rows:
        name = row["id"]
        if name not in known:
            chosen.setdefault(name, row)
        elif known[name][0] in _NO_VERDICT and row.get("verdict") not in _NO_VERDICT:
            chosen[name] = row
            superseded.add(name)
    return list(chosen.values()), superseded


def _tier(rows: int) -> int:
    """Return the power of :data:`FANOUT` up to which a file has rows."""
    tier = 0
    while rows >= FANOUT:
        rows //= FANOUT
        tier += 1
    return tier


def _filler(table: pa.Table) -> Callable[[Path], None]:
    def fill(path: Path) -> None:
        pq.write_table(table, path, compression=COMPRESSION)
        with path.open("rb") as file:
            os.fsync(file.fileno())

    return fill


def _stored(path: Path) -> Stored:
    try:
        with pq.ParquetFile(path) as file:
            found = file.metadata
            metadata = found.metadata or {}
            version = int(metadata.get(_VERSION, b"0"))
            _refuse_newer(path, version)
            rows = current(file.read(columns=["id", "verdict"]), _KNOWN).to_pylist()
        replaces = msgspec.json.decode(metadata.get(_REPLACES, b"[]"), type=frozenset[str])
    except (OSError, pa.ArrowException, ValueError, msgspec.MsgspecError) as error:
        raise Refused(f"{path} cannot be read: {_first(error)}") from None
    verdicts = {row["id"]: row["verdict"] for row in rows}
    return Stored(path, version, found.num_rows, replaces, verdicts)


def _refuse_newer(path: Path, version: int) -> None:
    if version > schema.VERSION:
        raise Refused(
            f"{path} is of version {version} of the lake; this faultline reads versions up to"
            f" {schema.VERSION}"
        )


def _read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        return pq.ParquetFile(path).read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise Refused(f"{path} cannot be read: {_first(error)}") from None


def _tables(there: Sequence[Stored]) -> pa.Table:
    """Return the rows of several files in the current schema."""
    tables = [current(_read(file.path)) for file in there]
    return pa.concat_tables(tables) if tables else schema.ROW.empty_table()


def current(table: pa.Table, wanted: pa.Schema = schema.ROW) -> pa.Table:
    """Return a table of any earlier version in the current schema: what it lacks is null."""
    table = table.replace_schema_metadata(None)
    if table.schema.equals(wanted):
        return table
    return pa.Table.from_pylist(table.to_pylist(), schema=wanted)


def read(there: Sequence[Path], columns: Sequence[str]) -> pa.Table:
    """Return these columns of all rows in the current schema, without a Spark session."""
    wanted = pa.schema([schema.ROW.field(name) for name in columns])
    tables = []
    for path in there:
        names = [name for name in columns if name in pq.read_schema(path).names]
        tables.append(current(_read(path, names), wanted))
    return pa.concat_tables(tables) if tables else wanted.empty_table()


def _first(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
