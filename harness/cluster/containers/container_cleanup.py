"""Removes containers, networks and volumes that carry certain labels, in this order.

All calls block. A removal succeeds if another process has just removed the same object.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.cluster.containers import labels

if TYPE_CHECKING:
    from docker import DockerClient

Labels = Mapping[str, str] | None

TRIES = 20
BETWEEN_S = 0.5
"""The engine releases what a container held a moment after its removal, or seconds if busy."""


class _Thing(NamedTuple):
    """An object of the engine that can be removed."""

    what: str
    labels: Labels
    remove: Callable[[], Any]


def reap(client: "DockerClient", removed: Callable[[str], object] = lambda what: None) -> list[str]:
    """Remove what ended harnesses have left behind; return a line for each failure.

    ``removed`` is called with the name of each removed object.
    """
    return sweep(client, labels.is_stray, removed)


def sweep(
    client: "DockerClient",
    doomed: Callable[[Labels], bool],
    removed: Callable[[str], object] = lambda what: None,
) -> list[str]:
    """Remove all owned objects whose labels are ``doomed``; return a line for each failure."""
    from docker.errors import DockerException, NotFound
    from requests.exceptions import RequestException

    left: list[str] = []
    for attempt in range(TRIES):
        left = []
        for things in (_containers(client), _networks(client), _volumes(client)):
            for thing in things:
                if doomed(thing.labels):
                    try:
                        thing.remove()
                    except NotFound:
                        continue
                    except (DockerException, RequestException) as error:
                        left.append(f"{thing.what}: {error}")
                    else:
                        removed(thing.what)
        if not left:
            break
        if attempt < TRIES - 1:
            time.sleep(BETWEEN_S)
    return left


def _containers(client: "DockerClient") -> Iterator[_Thing]:
    remove = functools.partial(client.api.remove_container, force=True, v=True)
    for found in client.api.containers(all=True, filters={"label": labels.OWNER}):
        what = f"container {found['Id'][:12]}"
        yield _Thing(what, found["Labels"], functools.partial(remove, found["Id"]))


def _networks(client: "DockerClient") -> Iterator[_Thing]:
    for found in client.api.networks(filters={"label": labels.OWNER}):
        remove = functools.partial(client.api.remove_network, found["Id"])
        yield _Thing(f"network {found['Name']}", found["Labels"], remove)


def _volumes(client: "DockerClient") -> Iterator[_Thing]:
    for found in client.api.volumes(filters={"label": labels.OWNER})["Volumes"] or ():
        remove = functools.partial(client.api.remove_volume, found["Name"])
        yield _Thing(f"volume {found['Name']}", found["Labels"], remove)
