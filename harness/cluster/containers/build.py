"""Builds images from files; a tag is a digest of the files, and builds of a checkout take turns."""

import fcntl
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from harness.cluster.containers.base_image import ImageError, last_line

TIMEOUT_S = 900
WORK = Path(__file__).resolve().parents[3] / ".tools" / "image"
"""The folder for temporary files of builds."""


def digest(files: Mapping[str, bytes], base: str) -> str:
    """Twelve hexadecimal digits that change with the base image and with any file."""
    hasher = hashlib.sha256(f"{base}\0".encode())
    for name, content in files.items():
        hasher.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return hasher.hexdigest()[:12]


def context(files: Iterable[tuple[str, bytes]]) -> io.BytesIO:
    """Archive the files; equal files give equal bytes, which the builder's cache compares."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if name.startswith("containers/program/") else 0o644
            tar.addfile(member, io.BytesIO(content))
    archive.seek(0)
    return archive


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """Hold a lock, so that the harnesses of one checkout build one after the other.

    The second then finds the images built.
    """
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(
    client: docker.DockerClient,
    archive: io.BytesIO,
    image: str,
    arguments: Mapping[str, str],
    target: str | None = None,
) -> None:
    """Build an image from an archive that has a Dockerfile; ``target`` is one of its stages.

    Raises :class:`ImageError` if that fails.
    """
    said: list[str] = []
    # The label gives each tag its own image even if contents are equal, because the engine records
    # the time of a tag by image.
    answers: Iterator[Mapping[str, Any]] = client.api.build(
        fileobj=archive,
        custom_context=True,
        target=target,
        tag=image,
        buildargs=dict(arguments),
        labels={"faultline.image": image},
        rm=True,
        forcerm=True,
        timeout=TIMEOUT_S,
        decode=True,
    )
    for answer in answers:
        said.append(str(answer.get("stream", "")))
        if "error" in answer:
            # The engine's error names the command; the reason is in the command's own output.
            why = last_line(line for line in said if not line.startswith(("Step ", " --->")))
            raise ImageError(f"{image} cannot be built: {last_line(answer['error'])} ({why})")
