"""Packs the code that executors run, so that the workers of a cluster need none of it.

The archive has this project's packages, and the libraries msgspec and rustworkx, which are partly
machine code: Spark demands the same version of Python everywhere, and so they fit. Machine code is
not imported from an archive, so a worker unpacks it. The libraries have a folder of their own in
the archive, because Spark lets the driver import from the archive as well.
"""

import importlib.util
import os
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = ("checkers", "model")
"""The packages of this project that executors need. Everything else that they import is in Python's
library, or is numpy, pyarrow or one of :data:`LIBRARIES`."""
NAME = "faultline-code.zip"
LIBRARIES = ("msgspec", "rustworkx")
"""The libraries of the archive: one reads lines, and one finds components of graphs."""
_FOLDER = "libraries"
_UNPACKED = "faultline-packages"
_ROOT = Path(__file__).resolve().parent.parent
_BEGIN = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the same code is the same archive."""


def archive(folder: Path) -> Path:
    """Write the packages into an archive in a folder, and return its path."""
    path = folder / NAME
    files = {
        str(file.relative_to(_ROOT)): file
        for package in PACKAGES
        for file in sorted((_ROOT / package).rglob("*.py"))
    }
    for library in LIBRARIES:
        spec = importlib.util.find_spec(library)
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        for file in sorted((*home.rglob("*.py"), *home.rglob("*.so"))):
            files[f"{_FOLDER}/{library}/{file.relative_to(home)}"] = file
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in files.items():
            packed.writestr(zipfile.ZipInfo(name, _BEGIN), file.read_bytes())
    return path


def unpack() -> None:
    """On an executor, make sure that all packages of the archive can be imported."""
    if _can_import():
        return
    from pyspark import SparkFiles  # only an executor has it at this point

    home = Path(SparkFiles.getRootDirectory())
    folder = home / _UNPACKED
    if not folder.is_dir():
        made = Path(tempfile.mkdtemp(dir=home))
        with zipfile.ZipFile(SparkFiles.get(NAME)) as packed:
            packed.extractall(made)
        try:
            made.rename(folder)
        except OSError:  # another task was faster
            assert folder.is_dir(), f"{folder} cannot be written"
    sys.path.insert(0, os.fspath(folder / _FOLDER))
    importlib.invalidate_caches()


def _can_import() -> bool:
    try:
        import msgspec  # noqa: F401 - the question is whether that works
        import rustworkx  # noqa: F401
    except ImportError:
        return False
    return True
