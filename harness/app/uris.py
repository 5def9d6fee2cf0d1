"""Distinguishes URIs of Hadoop's file systems from paths of this machine."""

import os
import re
from pathlib import Path

from harness.app.refused import Refused

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>/.*)", re.DOTALL)
_HERE = ("", "localhost")


class Uri(str):
    """A URI with a scheme other than ``file:``, or a pattern of such URIs."""

    __slots__ = ()


def location(text: str) -> Path | Uri:
    """Return what a user names: a path, or a URI that only Hadoop reads.

    A path that exists is a path, whatever it looks like. ``file:`` URIs stand for paths; as for
    Hadoop, their percent signs are plain characters. Raises
    :class:`~harness.app.refused.Refused` for a ``file:`` URI of another machine.
    """
    match = _URI.fullmatch(text)
    if match is None or os.path.lexists(text):
        return Path(text)
    if match["scheme"].lower() != "file":
        return Uri(text)
    rest = match["rest"]
    if not rest.startswith("//"):
        return Path(rest)
    host, slash, path = rest.removeprefix("//").partition("/")
    if host not in _HERE:
        raise Refused(f"{text}: a file: URI is of this machine, so it has no host {host}")
    return Path(slash + path)
