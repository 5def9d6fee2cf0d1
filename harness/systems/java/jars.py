"""The jars of a pinned release are downloaded once, and verified each time they are used.

They are kept in ``$XDG_CACHE_HOME/faultline/apache-kafka/VERSION`` (by default ``~/.cache``; other
products have other folders). A folder of that name is complete, because it is renamed to it only
after every checksum was right. Reading and verifying the 46 MB of a release takes less than 0.1 s,
so nothing else remembers that they were right.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from harness.cluster.node import ClusterError
from harness.cluster.polling import until
from harness.systems.java import maven
from harness.systems.java.lockfile import Lock, Product, load

Say = Callable[[str], None]
"""Receives progress messages, one line each."""


class JarsError(ClusterError):
    """The jars of a release are not available; the message says why."""


def cache_folder(product: Product) -> Path:
    """The folder that contains a folder for each release of a product."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "faultline" / product.folder


def is_cached(version: str, product: Product) -> bool:
    """Return whether the jars of a release are here, without reading them.

    Raises :class:`~harness.systems.java.lockfile.UnknownRelease`.
    """
    return all(path.is_file() for path in _paths(load(version, product)))


async def resolve(version: str, say: Say, product: Product) -> tuple[Path, ...]:
    """Return the jars of a pinned release, downloading them by Maven if they are not here.

    Raises :class:`~harness.systems.java.lockfile.UnknownRelease` without a lock file,
    :class:`~harness.systems.java.maven.MavenMissing` if the jars are not here and ``mvn``
    is not either, :class:`~harness.systems.java.maven.MavenError` if Maven fails, and
    :class:`JarsError` if a checksum differs or the cache cannot be written. If the task is
    cancelled, Maven ends.
    """
    lock = load(version, product)
    try:
        await _ensure(lock, say)
    except OSError as error:
        where = error.filename or cache_folder(product)
        raise JarsError(f"{where}: {error.strerror or error}") from None
    return _paths(lock)


def _paths(lock: Lock) -> tuple[Path, ...]:
    return tuple(_folder(lock) / jar.file_name for jar in lock.sha256)


def _folder(lock: Lock) -> Path:
    return cache_folder(lock.product) / lock.version


async def _ensure(lock: Lock, say: Say) -> None:
    folder = _folder(lock)
    if await asyncio.to_thread(_defect, folder, lock) is None:
        return
    mvn = _maven(lock, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _exclusive(lock, folder, say):
        defect = await asyncio.to_thread(_defect, folder, lock)
        if defect is None:  # another process has downloaded them
            return
        if folder.exists():
            say(f"{folder}: {defect}; the jars are downloaded again")
        await _download(mvn, lock, folder, say)


def _maven(lock: Lock, folder: Path) -> str:
    try:
        return maven.require()
    except maven.MavenMissing as error:
        raise maven.MavenMissing(
            f"{error}, and the jars of {lock} are not in {folder}; "
            "install Maven, or unpack a distribution and name its folder"
        ) from None


def _defect(folder: Path, lock: Lock) -> str | None:
    """Return what is wrong with the first jar that is missing or differs, None if all are right."""
    for jar, checksum in lock.sha256.items():
        try:
            with (folder / jar.file_name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return f"{jar} is missing"
        if found != checksum:
            return f"{jar} has the SHA-256 checksum {found}, but {checksum} is pinned"
    return None


@contextlib.asynccontextmanager
async def _exclusive(lock: Lock, folder: Path, say: Say) -> AsyncIterator[None]:
    """Exclude other processes from downloading the same release, also if one of them is killed."""
    with folder.with_name(f"{folder.name}.lock").open("w") as file:

        async def locked() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        if not await locked():
            say(f"waiting for another process that downloads {lock}")
            await until(locked)
        yield


async def _download(mvn: str, lock: Lock, folder: Path, say: Say) -> None:
    prefix = f"{lock.version}.incomplete-"
    for left in folder.parent.glob(f"{prefix}*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    say(f"downloading the {len(lock.sha256)} jars of {lock} by Maven")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as temporary:
        project = maven.pom(lock.sha256, transitive=False)
        found = await maven.copy_dependencies(mvn, project, Path(temporary))
        defect = await asyncio.to_thread(_defect, found, lock)
        if defect is not None:
            raise JarsError(f"Maven's copy of {lock} is not usable: {defect}")
        _replace(folder, found, Path(temporary))
    say(f"the jars of {lock} are in {folder}")


def _replace(folder: Path, by: Path, temporary: Path) -> None:
    """Rename a folder to its final name; the one that had the name is left in ``temporary``."""
    if folder.exists():
        folder.rename(temporary / "replaced")
    by.rename(folder)
