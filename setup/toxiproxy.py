"""Provides the pinned toxiproxy-server: the machine's, one built by Go, or the released binary."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from setup import fetch, pins
from setup.environment import version_of
from setup.problem import CannotGoOn, say

MODULE = "github.com/Shopify/toxiproxy/v2"
RELEASES = "https://github.com/Shopify/toxiproxy/releases/download"


def version(program: Path) -> str | None:
    """Return the version of a toxiproxy-server; ``None`` if it does not run or is unknown.

    A binary that was built by a plain ``go install`` reports its version as "git". The version is
    then in the build information that Go stores in every binary.
    """
    try:
        answer = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    said = version_of(answer.stdout + answer.stderr)
    if said:
        return ".".join(map(str, said))
    return built_from(program.read_bytes())


def built_from(binary: bytes) -> str | None:
    """Return the module version from which a Go binary was built, as ``go version -m`` does."""
    found = re.search(rb"mod\t" + re.escape(MODULE.encode()) + rb"\tv(\d+\.\d+\.\d+)\b", binary)
    return found[1].decode() if found else None


def server(tools: Path) -> Path:
    """Return a toxiproxy-server of the pinned version; install it if necessary."""
    ours = tools / "bin" / "toxiproxy-server"
    for candidate in (shutil.which("toxiproxy-server"), str(ours)):
        if candidate and version(Path(candidate)) == pins.TOXIPROXY_VERSION:
            return Path(candidate)
    if not _by_go(ours):
        _released(ours)
    return ours


def _by_go(path: Path) -> bool:
    go = shutil.which("go")
    if go is None:
        return False
    say(f"building toxiproxy-server {pins.TOXIPROXY_VERSION} with Go (slow the first time)")
    place = path.parent / "go-install"
    place.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"GOBIN": str(place), "CGO_ENABLED": "0"}
    stamp = f"-s -w -X {MODULE}.Version={pins.TOXIPROXY_VERSION}"
    package = f"{MODULE}/cmd/server@v{pins.TOXIPROXY_VERSION}"
    done = subprocess.run(
        [go, "install", "-ldflags", stamp, package], env=environment, cwd=place, check=False
    )
    built = place / "server"
    if done.returncode == 0 and built.exists():
        built.replace(path)
    shutil.rmtree(place)
    return done.returncode == 0


def _released(path: Path) -> None:
    advice = f"install toxiproxy-server {pins.TOXIPROXY_VERSION} on PATH, or Go, and try again"
    pin = pins.for_machine(pins.TOXIPROXY_BINARIES, platform.system(), platform.machine())
    if pin is None:
        raise CannotGoOn(f"Toxiproxy has no release for this system and processor: {advice}.")
    url = f"{RELEASES}/v{pins.TOXIPROXY_VERSION}/{pin.filename}"
    say(f"fetching {pin.filename} {pins.TOXIPROXY_VERSION} from github.com")
    try:
        fetch.executable(path, fetch.verified(fetch.get(url), pin))
    except fetch.NotFetched as error:
        raise CannotGoOn(
            f"toxiproxy-server could not be fetched, because {error}: {advice}."
        ) from error
