"""Unpacks a compressed history into a temporary file: lines are read by their positions.

The kind of compression is the last ending of the name: ``history.jsonl.gz``, ``history.edn.zst``.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from harness.app import temporary
from model.history import BadHistory

KINDS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""The endings of compressed files, with Arrow's names of the codecs."""
_BLOCK = 1 << 20
_RATIO = 10
"""About how much smaller a history is when it is compressed."""


def text_bytes(path: Path) -> int:
    """Return about how large a history is when it is unpacked."""
    return likely_bytes(path.suffix, path.stat().st_size)


def likely_bytes(suffix: str, size: int) -> int:
    """Return about how large a file is when it is unpacked, by how its name ends."""
    return size * (_RATIO if suffix in KINDS else 1)


@contextlib.contextmanager
def plain(path: Path) -> Iterator[Path]:
    """Yield a file with the history's text: the file itself, or a temporary one.

    A :class:`~model.history.BadHistory` that is raised in the block names the compressed file.
    """
    kind = KINDS.get(path.suffix)
    if kind is None:
        yield path
        return
    if Path(path.stem).suffix == ".parquet":
        raise BadHistory(f"{path}: a Parquet file is compressed within; unpack it first")
    with temporary.folder(None, "faultline-unpacked-") as folder:
        unpacked = folder / path.stem
        try:
            with pa.input_stream(path, compression=kind) as packed, unpacked.open("wb") as text:
                shutil.copyfileobj(packed, text, _BLOCK)
        except OSError as error:
            raise BadHistory(f"{path} cannot be unpacked ({kind}): {_why(error)}") from None
        try:
            yield unpacked
        except BadHistory as error:
            raise BadHistory(str(error).replace(str(unpacked), str(path))) from error


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).replace("\n", " ")
