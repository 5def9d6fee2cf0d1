"""Creates the locked Python environment with uv; fetches uv as a wheel if the machine has none."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setup import fetch, pins
from setup.problem import CannotGoOn, say

OLDEST_UV = (0, 9)
"""Older versions are replaced by the pinned one, because the lock file is untested with them."""


def version_of(text: str) -> tuple[int, ...]:
    """Return the first dotted number in the output of ``--version``, ``()`` if there is none."""
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, found.group().split("."))) if found else ()


def uv(tools: Path) -> Path:
    """Return a usable uv: the one on PATH, else one fetched earlier, else the pinned wheel's."""
    for candidate in (shutil.which("uv"), str(tools / "bin" / "uv")):
        if candidate and _version(candidate) >= OLDEST_UV:
            return Path(candidate)
    advice = "install uv (https://docs.astral.sh/uv/) and try again"
    pin = pins.for_machine(pins.UV_WHEELS, platform.system(), platform.machine())
    if pin is None:
        raise CannotGoOn(f"Faultline has no pinned uv for this system and processor: {advice}.")
    unpacked = tools / "uv"
    try:
        fetch.wheel("uv", pin, unpacked)
    except fetch.NotFetched as error:
        raise CannotGoOn(f"uv could not be fetched, because {error}: {advice}.") from error
    program = unpacked / f"uv-{pins.UV_VERSION}.data" / "scripts" / "uv"
    fetch.executable(tools / "bin" / "uv", program.read_bytes())
    shutil.rmtree(unpacked)
    return tools / "bin" / "uv"


def _version(program: str) -> tuple[int, ...]:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    return version_of(answer.stdout)


def sync(root: Path, uv_program: Path) -> None:
    """Bring ``.venv`` in line with the lock file, with its own Python or the one that runs this."""
    inside = root / ".venv" / "bin" / "python"
    interpreter = inside if inside.exists() else Path(sys.executable)
    say("installing the packages that uv.lock lists into .venv")
    # By default uv trusts its own root certificates, not those that an administrator has added.
    environment = {"UV_SYSTEM_CERTS": "1", **os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    environment.pop("VIRTUAL_ENV", None)
    command = [
        str(uv_program),
        "sync",
        "--locked",
        "--compile-bytecode",
        "--python",
        str(interpreter),
    ]
    done = subprocess.run(command, cwd=root, env=environment, check=False)
    if done.returncode:
        raise CannotGoOn(
            "uv could not install the locked packages: see its message above, check the network "
            "and the index, and try again."
        )
