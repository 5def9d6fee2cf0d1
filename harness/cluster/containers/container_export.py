"""Copies a container's log and data out of the engine, so that they outlive it. All calls block."""

import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import DockerClient


def log(client: "DockerClient", identity: str, folder: Path) -> None:
    """Write ``log.txt``: the container's output over all of its lives."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.txt").open("wb") as file:
        file.writelines(client.api.logs(identity, stream=True, follow=False))


def data(client: "DockerClient", identity: str, path: str, folder: Path) -> None:
    """Copy a folder of the container with its contents; the container need not run."""
    folder.mkdir(parents=True, exist_ok=True)
    stream, _ = client.api.get_archive(identity, path)
    with tempfile.TemporaryFile() as archive:
        archive.writelines(stream)
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tar:
            unpack(tar, folder)


def unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Extract the folders and files of an archive into ``folder``.

    Raises :class:`tarfile.TarError` for a path outside of the folder. Links and devices are
    skipped: nodes create none. Not by ``extractall``: its filters came with Python 3.11.4.
    """
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise tarfile.TarError(f"{member.name} would be written outside of the folder")
        if member.isdir():
            (folder / path).mkdir(parents=True, exist_ok=True)
        elif member.isreg() and (content := tar.extractfile(member)) is not None:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with content, (folder / path).open("wb") as file:
                shutil.copyfileobj(content, file)
