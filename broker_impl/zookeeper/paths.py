"""Validate znode paths, and compute parents, names and children from them."""

import re
from collections.abc import Iterator

from broker_impl.zookeeper.errors import BadArguments


def parent_of(path: str) -> str:
    """The path of the parent node; the root's own is ``/``."""
    return path[: path.rindex("/")] or "/"


def name_of(path: str) -> str:
    """The last part of a path."""
    return path[path.rindex("/") + 1 :]


def child_of(path: str, name: str) -> str:
    """The path of a child."""
    return f"/{name}" if path == "/" else f"{path}/{name}"


def ancestors(path: str) -> Iterator[str]:
    """The paths of all nodes above a path, from the parent to the root; the root has none."""
    while path != "/":
        path = parent_of(path)
        yield path


def check_form(path: str) -> None:
    """Reject a path that cannot be looked up; requests are checked for this first.

    Raises:
        BadArguments: not absolute, the root itself, or with a NUL character.
    """
    if not path.startswith("/") or path == "/" or "\0" in path:
        raise BadArguments(path)


def check(path: str) -> None:
    """Reject a path that no node can have.

    Raises:
        BadArguments: an empty or relative part, a slash at the end, a character out of range.
    """
    if not path.startswith("/"):
        raise BadArguments(path)
    if path == "/":
        return
    if _FORBIDDEN.search(path) or not _PARTS.isdisjoint(path[1:].split("/")):
        raise BadArguments(path)


_FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_PARTS = frozenset({"", ".", ".."})
"""The parts of a path that name no node."""
