"""What the last set-up found, kept with a stamp that says for which project files it holds."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path


def stamp(root: Path) -> str:
    """A digest of everything that decides what a set-up does."""
    digest = hashlib.sha256()
    for path in (root / "uv.lock", root / "pyproject.toml", *sorted((root / "setup").glob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def load(file: Path, current: str) -> dict[str, str] | None:
    """The variables of the last set-up, ``None`` when it is out of date or its things are gone."""
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
    """Keep the variables for the next time."""
    half = file.with_suffix(".part")
    half.write_text(json.dumps({"stamp": current, "variables": dict(variables)}, indent=1) + "\n")
    half.replace(file)


def complete(
    environment: Mapping[str, str], variables: Mapping[str, str], root: Path
) -> dict[str, str]:
    """The environment that a command of the project runs in: our programs before the machine's."""
    ours = (str(root / ".venv" / "bin"), str(root / ".tools" / "bin"))
    path = (*ours, environment.get("PATH", os.defpath))
    return {**environment, **variables, "PATH": os.pathsep.join(path)}
