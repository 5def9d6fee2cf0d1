"""Stores the result of the last set-up, with a digest of the project files that it is valid for."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path


def stamp(root: Path) -> str:
    """Return a digest of all files that determine what a set-up does."""
    digest = hashlib.sha256()
    for path in (root / "uv.lock", root / "pyproject.toml", *sorted((root / "setup").glob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def load(file: Path, current: str) -> dict[str, str] | None:
    """Return the variables of the last set-up.

    Returns ``None`` if they are out of date or the programs that they name no longer exist.
    """
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("stamp") != current:
        return None
    variables: dict[str, str] = kept["variables"]
    needed = (
        Path(variables["JAVA_HOME"]) / "bin" / "java",
        Path(variables["FAULTLINE_TOXIPROXY"]),
        file.parent.parent / ".venv" / "bin" / "python",
    )
    return variables if all(os.access(path, os.X_OK) for path in needed) else None


def save(file: Path, current: str, variables: Mapping[str, str]) -> None:
    """Store the variables for the next set-up."""
    half = file.with_suffix(".part")
    half.write_text(json.dumps({"stamp": current, "variables": dict(variables)}, indent=1) + "\n")
    half.replace(file)


def complete(
    environment: Mapping[str, str], variables: Mapping[str, str], root: Path
) -> dict[str, str]:
    """Return the environment for a command of the project: our programs come first in PATH."""
    ours = (str(root / ".venv" / "bin"), str(root / ".tools" / "bin"))
    path = (*ours, environment.get("PATH", os.defpath))
    return {**environment, **variables, "PATH": os.pathsep.join(path)}
