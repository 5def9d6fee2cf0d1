"""The base images: each named by the user, present, pulled, or made from Debian's packages.

Making one needs no registry: debootstrap unpacks a small Debian with the programs, and the engine
imports it. The image is kept, so that this takes its minute only once.
"""

import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils import parse_repository_tag

SUITE = "bookworm"
"""The Debian release whose python3 fits the wheels."""
MIRROR = "http://deb.debian.org/debian"


class Base(NamedTuple):
    """A base image, which contains certain programs."""

    variable: str
    """The environment variable with which the user names one."""
    default: str
    """The image of a registry."""
    made: str
    """The image that is made from Debian's packages."""
    packages: tuple[str, ...]
    """The Debian packages of the programs."""


PYTHON = Base(
    "FAULTLINE_BASE_IMAGE",
    "python:3.11-slim-bookworm",
    f"faultline-base:{SUITE}",
    ("ca-certificates", "nftables", "python3"),
)
JAVA = Base(
    "FAULTLINE_JAVA_BASE_IMAGE",
    "eclipse-temurin:17-jre-jammy",
    f"faultline-java:{SUITE}",
    ("ca-certificates", "openjdk-17-jre-headless"),
)
LEFT_OUT = (
    "./dev/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/lintian",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/*",
    "./var/cache/debconf/*-old",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
"""Files that no program reads in a container: half of the tree."""
PATIENCE_S = 15.0
"""How long a registry may be silent."""


class ImageError(Exception):
    """An image is missing and cannot be obtained; the message is a sentence that says what
    helps."""


def candidates(environment: Mapping[str, str] = os.environ, base: Base = PYTHON) -> list[str]:
    """The base images that may be used, the preferred one first."""
    named = environment.get(base.variable)
    return [named] if named else [base.default, base.made]


def obtain(
    client: docker.DockerClient,
    work: Path,
    say: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
    base: Base = PYTHON,
) -> str:
    """Return the name of a base image that the engine has, pulling or making it if necessary.

    ``work`` is a folder for temporary files.
    """
    names = candidates(environment, base)
    for name in names:
        if there(client, name):
            return name
    say(f"pulling {names[0]}")
    refused = pull(client, names[0])
    if refused is None:
        return names[0]
    if base.made not in names:
        raise ImageError(
            f"the base image {names[0]}, which {base.variable} names, is not on this machine"
            f" and cannot be pulled: {refused}"
        )
    say(f"{names[0]} cannot be pulled: {refused}")
    make(client, work, say, environment, base)
    return base.made


def there(client: docker.DockerClient, name: str) -> bool:
    """Return whether the engine has this image."""
    try:
        client.api.inspect_image(name)
    except ImageNotFound:
        return False
    return True


def pull(client: docker.DockerClient, name: str, patience_s: float = PATIENCE_S) -> str | None:
    """Pull an image; return ``None``, or why not. A registry must not be silent for too long."""
    lines: queue.Queue[Mapping[str, Any] | None] = queue.Queue()

    def follow() -> None:
        try:
            repository, tag = parse_repository_tag(name)
            for line in client.api.pull(repository, tag=tag or "latest", stream=True, decode=True):
                lines.put(line)
        except (DockerException, OSError) as error:
            lines.put({"error": _sentence(error)})
        lines.put(None)

    # A separate thread: the engine tries for minutes, and a call to it cannot be cancelled.
    threading.Thread(target=follow, name=f"pull {name}", daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=patience_s)
        except queue.Empty:
            return f"the registry did not respond for {patience_s:g} s"
        if line is None:
            return None
        if "error" in line:
            return str(line["error"])


def _sentence(error: Exception) -> str:
    return str(error.explanation if isinstance(error, APIError) else error)


def make(
    client: docker.DockerClient,
    work: Path,
    say: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
    base: Base = PYTHON,
) -> None:
    """Make a base image from Debian's packages."""
    program = debootstrap(environment)
    if program is None or os.geteuid() != 0:
        raise ImageError(
            f"there is no base image: make sure that a registry with {base.default} can be reached,"
            f" or set {base.variable} to an image on this machine, or install debootstrap and run "
            "`make image` once as root"
        )
    mirror = environment.get("FAULTLINE_DEBIAN_MIRROR", MIRROR)
    say(f"building {base.made} from the packages of {mirror} (takes a minute or two, only once)")
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix="base-") as place:
        root, archive = Path(place, "root"), Path(place, "base.tar")
        include = f"--include={','.join(base.packages)}"
        _run([program, "--variant=minbase", include, SUITE, str(root), mirror])
        exclude = [f"--exclude={pattern}" for pattern in LEFT_OUT]
        where = ["--numeric-owner", "--one-file-system", "-C", str(root)]
        _run(["tar", "-cf", str(archive), *exclude, *where, "."])
        repository, tag = base.made.split(":")
        client.api.import_image_from_file(
            str(archive), repository=repository, tag=tag, changes=["LABEL faultline=image"]
        )
    if not there(client, base.made):
        raise ImageError(
            f"the container engine did not import {base.made}, which debootstrap built"
        )


def debootstrap(environment: Mapping[str, str]) -> str | None:
    """The path of debootstrap, which may be in a directory that only root's ``PATH`` contains."""
    return shutil.which("debootstrap", path=f"{environment.get('PATH', '')}:/usr/sbin:/sbin")


def _run(command: list[str]) -> None:
    # The image's users must be able to read its files, whatever umask this process has.
    done = subprocess.run(command, capture_output=True, text=True, check=False, umask=0o022)
    if done.returncode:
        raise ImageError(f"{Path(command[0]).name} failed: {last_line(done.stdout, done.stderr)}")


def last_line(*texts: Iterable[str] | str) -> str:
    """The last line of several outputs that is not blank."""
    lines = [line.strip() for text in texts for line in "".join(text).splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
