"""Fetches a pinned file over https and rejects it if its checksum differs."""

import hashlib
import os
import re
import stat
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from setup.pins import Pin
from setup.problem import say

TIMEOUT_S = 60
PYPI = "https://pypi.org/simple"


class NotFetched(Exception):
    """The download failed, or the file is not the pinned one; the message says why."""


def index_url(environment: Mapping[str, str]) -> str:
    """Return the Python package index configured on this machine, else PyPI; no final slash."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if url := environment.get(name):
            return url.rstrip("/")
    return PYPI


def link_to(page: str, page_url: str, filename: str) -> str | None:
    """Return the address of a file in an index page (PEP 503); ``None`` if it is not listed."""
    for reference in re.findall(r"""href\s*=\s*["']([^"']+)["']""", page):
        url, _ = urldefrag(urljoin(page_url, unescape(reference)))
        if unquote(urlsplit(url).path).rsplit("/", 1)[-1] == filename:
            return url
    return None


def get(url: str) -> bytes:
    """Return the bytes at an address; raises :class:`NotFetched`."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read()
            return data
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise NotFetched(f"the download from {urlsplit(url).hostname} failed ({error})") from error


def verified(data: bytes, pin: Pin) -> bytes:
    """Return the data if its SHA-256 is the pinned one; raises :class:`NotFetched`."""
    found = hashlib.sha256(data).hexdigest()
    if found != pin.sha256:
        raise NotFetched(f"{pin.filename} has SHA-256 {found}, not the pinned {pin.sha256}")
    return data


def wheel(project: str, pin: Pin, into: Path) -> None:
    """Fetch a wheel from the index and unpack it; raises :class:`NotFetched`."""
    page_url = f"{index_url(os.environ)}/{project}/"
    say(f"fetching {pin.filename} from {urlsplit(page_url).hostname}")
    page = get(page_url).decode(errors="replace")
    url = link_to(page, page_url, pin.filename)
    if url is None:
        raise NotFetched(f"{urlsplit(page_url).hostname} does not list {pin.filename}")
    archive = into.with_name(into.name + ".whl")
    archive.write_bytes(verified(get(url), pin))
    unpack(archive, into)
    archive.unlink()


def unpack(archive: Path, into: Path) -> None:
    """Unpack a zip file with the permissions that it records (:mod:`zipfile` drops them)."""
    with zipfile.ZipFile(archive) as contents:
        for member in contents.infolist():
            path = Path(contents.extract(member, into))
            mode = stat.S_IMODE(member.external_attr >> 16)
            if mode and not member.is_dir():
                path.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)


def executable(path: Path, data: bytes) -> None:
    """Write a program atomically: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(path.name + ".part")
    half.write_bytes(data)
    half.chmod(0o755)
    half.replace(path)
