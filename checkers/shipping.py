"""Packs the code that executors run, so that the workers of a cluster need none of it."""

import zipfile
from pathlib import Path

PACKAGES = ("checkers", "model")
"""The packages that :mod:`checkers.bucket_task` needs. Everything else that it imports is in
Python's library, or is numpy or pyarrow."""
_ROOT = Path(__file__).resolve().parent.parent
_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same code is the same archive."""


def archive(folder: Path) -> Path:
    """Write the packages into ``faultline-code.zip`` in a folder, and return its path."""
    path = folder / "faultline-code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for package in PACKAGES:
            for file in sorted((_ROOT / package).rglob("*.py")):
                name = zipfile.ZipInfo(str(file.relative_to(_ROOT)), _BEGIN)
                packed.writestr(name, file.read_bytes())
    return path
