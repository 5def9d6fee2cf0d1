"""The images of a plan's nodes: this project's own, built from a system's programs, or the user's.

An image that is built has a digest of everything that goes into it as its tag, as the project's own
images have.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cluster.containers import engine
from harness.cluster.containers.engine import EngineError
from harness.cluster.system import Image, ImageSource, System
from model.plan import Plan
from model.roles import NodeId

if TYPE_CHECKING:
    from docker import DockerClient

    from harness.cluster.containers.image import Images

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NodeImages:
    """All images of a cluster, each present on the engine."""

    own: "Images"
    """Those of Toxiproxy, and of this project's nodes and helpers."""
    of_nodes: Mapping[NodeId, str]
    named: frozenset[NodeId]
    """The nodes whose images the user has named, so that nothing is known of their users."""


async def prepare(plan: Plan, system: System, say: Say) -> None:
    """Provide missing images, which may take minutes the first time."""
    client = await asyncio.to_thread(engine.connect)
    with closing(client):
        await asyncio.to_thread(ensure, client, system, plan, say)


def ensure(client: "DockerClient", system: System, plan: Plan, say: Say) -> NodeImages:
    """Return the images of a plan's cluster, after those that are missing are built or pulled.

    Blocks. Raises :class:`EngineError`.
    """
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    from harness.cluster.containers import image

    wanted = {node: system.image(node, plan) for node in system.layout(plan).nodes}
    try:
        own = image.ensure(client, say)
        names = {found: _name(client, found, own, say) for found in set(wanted.values())}
    except image.ImageError as error:
        raise EngineError(str(error)) from error
    except (DockerException, RequestException, OSError) as error:
        raise EngineError(f"the images of the nodes cannot be provided: {error}") from error
    named = frozenset(node for node, found in wanted.items() if isinstance(found, str))
    return NodeImages(own, {node: names[found] for node, found in wanted.items()}, named)


def _name(client: "DockerClient", found: Image, own: "Images", say: Say) -> str:
    """Return the name of an image that is present, after it is pulled or built."""
    if found is None:
        return own.node
    if isinstance(found, str):
        return _pulled(client, found, say)
    return _built(client, found, say)


def _pulled(client: "DockerClient", name: str, say: Say) -> str:
    from harness.cluster.containers import base_image

    if not base_image.there(client, name):
        say(f"pulling {name}")
        if refused := base_image.pull(client, name):
            raise base_image.ImageError(
                f"the image {name} is not on this machine and cannot be pulled: {refused}"
            )
    return name


def _built(client: "DockerClient", wanted: ImageSource, say: Say) -> str:
    from harness.cluster.containers import base_image, build

    kind = {"python": base_image.PYTHON, "java": base_image.JAVA}[wanted.base]
    files = {"Dockerfile": wanted.dockerfile.encode()}
    files |= {name: path.read_bytes() for name, path in sorted(wanted.files.items())}
    for base in base_image.candidates(base=kind):
        name = f"{wanted.name}:{build.digest(files, base)}"
        if base_image.there(client, base) and base_image.there(client, name):
            return name
    with build.alone(build.WORK):
        base = base_image.obtain(client, build.WORK, say, base=kind)
        name = f"{wanted.name}:{build.digest(files, base)}"
        if not base_image.there(client, name):  # another harness may have just built it
            say(f"building {name} on {base}")
            build.build(client, build.context(files.items()), name, {"BASE": base})
    return name
