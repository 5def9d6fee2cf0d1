"""The wheels that go into the node's image: the packages that the broker imports, from ``uv.lock``.

The broker needs few small packages of the many that the project locks. They are listed here, and a
test compares them with the imports of ``broker_impl``. Versions and checksums come from the lock
file.
"""

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from setup import fetch
from setup.pins import Pin

PACKAGES = ("click", "cramjam", "fastcrc", "javaproperties", "msgspec", "prometheus-client")
PYTHON = "cp311"
"""The CPython version of the base image."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""The name that wheels use for a processor, by the engine's name for it."""


class Locked(NamedTuple):
    """One package of the lock file."""

    name: str
    version: str
    wheels: tuple[Pin, ...]

    def for_machine(self, machine: str) -> Pin | None:
        """The wheel for this CPython on Linux (glibc) and this processor."""
        fits = re.compile(rf"-(?:{PYTHON}-{PYTHON}-manylinux\S*_{machine}|py3-none-any)\.whl$")
        return next((pin for pin in self.wheels if fits.search(pin.filename)), None)


def locked(lock: Path) -> list[Locked]:
    """The broker's packages, in the order of their names."""
    table = {item["name"]: item for item in tomllib.loads(lock.read_text())["package"]}
    return [
        Locked(
            name,
            table[name]["version"],
            tuple(
                Pin(wheel["url"].rsplit("/", 1)[1], wheel["hash"].removeprefix("sha256:"))
                for wheel in table[name]["wheels"]
            ),
        )
        for name in sorted(PACKAGES)
    ]


def requirements(packages: list[Locked]) -> str:
    """The packages as a requirements file for pip.

    Builds that are given no wheels (``docker compose build``) use it.
    """
    lines = ["# Generated from uv.lock by `make image`, for builds that are given no wheels."]
    for package in packages:
        pins = filter(None, map(package.for_machine, sorted(MACHINES.values())))
        checksums = sorted({pin.sha256 for pin in pins})
        lines.append(f"{package.name}=={package.version} \\")
        lines.append(" \\\n".join(f"    --hash=sha256:{checksum}" for checksum in checksums))
    return "\n".join(lines) + "\n"


def fetched(
    packages: list[Locked], machine: str, into: Path, say: Callable[[str], None]
) -> list[Path]:
    """Download the wheels that are missing, and verify all; ``NotFetched`` if that fails."""
    return [_one(package, machine, into, say) for package in packages]


def _one(package: Locked, machine: str, into: Path, say: Callable[[str], None]) -> Path:
    pin = package.for_machine(machine)
    if pin is None:
        raise fetch.NotFetched(f"{package.name} {package.version} has no wheel for {machine}")
    path = into / pin.filename
    if path.exists():
        fetch.verified(path.read_bytes(), pin)
        return path
    page_url = f"{fetch.index_url(os.environ)}/{package.name}/"
    say(f"fetching {pin.filename} from {urlsplit(page_url).hostname}")
    url = fetch.link_to(fetch.get(page_url).decode(errors="replace"), page_url, pin.filename)
    if url is None:
        raise fetch.NotFetched(f"{urlsplit(page_url).hostname} does not list {pin.filename}")
    data = fetch.verified(fetch.get(url), pin)
    into.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_bytes(data)
    half.replace(path)
    return path
