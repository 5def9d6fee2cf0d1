"""The container images of a cluster: built when they are missing, used again when they are not.

An image's tag is a digest of everything the image is built from. The engine can therefore say
whether it exists, two checkouts do not confuse their images, and no image is built twice. The
harness passes everything to the build that it needs (wheels, a toxiproxy-server), so the build
needs no network.
"""

import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import docker
from docker.errors import APIError, DockerException

from harness.cluster.containers import base_image, wheels
from harness.cluster.containers.base_image import ImageError, there
from harness.cluster.containers.build import WORK, alone, build, context, digest
from harness.cluster.containers.engine import EngineError, connect
from harness.cluster.mesh.toxiproxy import MeshError, find_server
from setup import fetch, pins
from setup.toxiproxy import RELEASES, version

__all__ = ["NODE_USER", "ImageError", "Images", "ensure"]

ROOT = Path(__file__).resolve().parents[3]
NODE_USER = "10001:10001"
"""The user that runs in the containers and owns ``/data``."""
TARGETS = {"node": "faultline-node", "toxiproxy": "faultline-toxiproxy"}
"""The image name of each of the Dockerfile's targets."""
LINKS = "containers/toxiproxy.json"
"""The links of the cluster of docker-compose.yml."""
KEPT_FOR = timedelta(hours=1)
"""Images that were requested within this time are not removed."""
_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}


class Images(NamedTuple):
    """The two images of a cluster, each with its tag."""

    node: str
    toxiproxy: str


def _silently(_: str) -> None:
    """Discard progress messages: the default of ``say``."""


def ensure(client: docker.DockerClient, say: Callable[[str], None] = _silently) -> Images:
    """Return the images, building those that are missing; :class:`ImageError` if that fails.

    Blocks: for milliseconds if they exist, else for seconds, the first time for about a minute.
    """
    try:
        return _ready(client) or _built(client, say)
    except (DockerException, OSError) as error:
        raise ImageError(f"the images cannot be built: {error}") from error


def _names(base: str) -> Images:
    """The names of the images; a change of the broker does not change Toxiproxy's."""
    files = sources()
    proxy = {name: files.pop(name) for name in (LINKS,)}
    proxy |= {"Dockerfile": files["Dockerfile"], "version": pins.TOXIPROXY_VERSION.encode()}
    return Images(
        node=f"{TARGETS['node']}:{digest(files, base)}",
        toxiproxy=f"{TARGETS['toxiproxy']}:{digest(proxy, base)}",
    )


def _ready(client: docker.DockerClient) -> Images | None:
    """Return the images, marked as requested; ``None`` if one is missing."""
    for base in base_image.candidates():
        images = _names(base)
        if all(there(client, image) for image in images):
            _mark(client, images)
            return images
    return None


def _mark(client: docker.DockerClient, images: Images) -> None:
    """Record that the images were requested: the engine records the time of each tag."""
    for image in images:
        client.api.tag(image, image.split(":")[0], "latest")


def sources(root: Path = ROOT) -> dict[str, bytes]:
    """The project's files for a build: name in the build context to content, in order."""
    code = sorted((root / "broker_impl").rglob("*.py"))
    paths = [root / "Dockerfile", root / "containers" / "requirements.txt", root / LINKS, *code]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def _built(client: docker.DockerClient, say: Callable[[str], None]) -> Images:
    with alone(WORK):
        if (images := _ready(client)) is not None:  # another harness has just built them
            return images
        base = base_image.obtain(client, WORK, say)
        images = _names(base)
        files = [*sources().items(), *_fetched(client, WORK, say)]
        arguments = {"BASE": base, "TOXIPROXY": "scratch"}
        for target, image in images._asdict().items():
            if there(client, image):
                continue
            say(f"building {image} on {base}")
            build(client, context(files), image, arguments, target)
        _mark(client, images)
        _remove_old(client, images)
        return images


def _fetched(
    client: docker.DockerClient, work: Path, say: Callable[[str], None]
) -> list[tuple[str, bytes]]:
    """The files that a build without them would download: wheels and a toxiproxy-server.

    They are for the engine's processor.
    """
    arch = str(client.version()["Arch"])
    machine = wheels.MACHINES.get(arch, arch)
    packages = wheels.locked(ROOT / "uv.lock")
    try:
        paths = wheels.fetched(packages, machine, work / "wheels", say)
        program = _toxiproxy(machine, work, say)
    except fetch.NotFetched as error:
        raise ImageError(f"the images cannot be built: {error}") from error
    found = [(f"containers/wheels/{path.name}", path.read_bytes()) for path in paths]
    return [*found, ("containers/program/toxiproxy", program)]


def _toxiproxy(machine: str, work: Path, say: Callable[[str], None]) -> bytes:
    """The pinned toxiproxy-server for Linux: that of set-up, or else the released one."""
    with suppress(MeshError):
        server = find_server()
        program = server.read_bytes()
        if runs_on(program, machine) and version(server) == pins.TOXIPROXY_VERSION:
            return program
    pin = pins.for_machine(pins.TOXIPROXY_BINARIES, "Linux", machine)
    if pin is None:
        raise fetch.NotFetched(f"there is no toxiproxy-server for Linux on {machine}")
    path = work / pin.filename
    if not path.exists():
        say(f"fetching {pin.filename} {pins.TOXIPROXY_VERSION} from github.com")
        url = f"{RELEASES}/v{pins.TOXIPROXY_VERSION}/{pin.filename}"
        fetch.executable(path, fetch.verified(fetch.get(url), pin))
    return fetch.verified(path.read_bytes(), pin)


def runs_on(program: bytes, machine: str) -> bool:
    """Return whether the program is for Linux on that processor (a Mac's own is not)."""
    if program[:4] != b"\x7fELF":
        return False
    (code,) = struct.unpack_from("<H", program, 18)
    return _ELF_MACHINES.get(code) == machine


def _remove_old(client: docker.DockerClient, images: Images) -> None:
    """Remove images of this project that no container uses and no harness has requested lately."""
    used = {container["ImageID"] for container in client.api.containers(all=True)}
    now = datetime.fromisoformat(client.info()["SystemTime"])
    for name in TARGETS.values():
        for entry in client.api.images(name=name):
            image = client.api.inspect_image(entry["Id"])
            if image["Id"] in used or now - _asked_for(image) < KEPT_FOR:
                continue
            for tag in image["RepoTags"]:
                if tag not in images:
                    with suppress(APIError):  # taken into use, or removed by another harness
                        client.api.remove_image(tag)
    with suppress(APIError):
        until = f"{KEPT_FOR.total_seconds():.0f}s"
        client.api.prune_images({"dangling": True, "label": "faultline=image", "until": until})


def _asked_for(image: Mapping[str, Any]) -> datetime:
    """When an image was last tagged, as each ``ensure`` does; not every engine records it."""
    times = (image.get("Metadata", {}).get("LastTagTime"), image["Created"])
    known = [datetime.fromisoformat(time) for time in times if time and time[:4] > "0001"]
    return max(known)


UNAVAILABLE = 69
"""Exit status EX_UNAVAILABLE, as of a set-up that cannot continue."""


def _print_progress(what: str) -> None:
    sys.stderr.write(f"image: {what}\n")


def main() -> int:
    """``make image``: print the tags on standard output and the progress on standard error."""
    requirements = ROOT / "containers" / "requirements.txt"
    locked = wheels.requirements(wheels.locked(ROOT / "uv.lock"))
    if requirements.read_text() != locked:  # a change of uv.lock, to be committed with it
        requirements.write_text(locked)
    try:
        with closing(connect()) as client:
            images = ensure(client, _print_progress)
    except (EngineError, ImageError) as error:
        sys.stderr.write(f"{error}.\n")
        return UNAVAILABLE
    sys.stdout.write("\n".join(images) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
