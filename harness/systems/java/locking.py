"""Finds out which jars a release needs: what Maven resolves, with checksums."""

import hashlib
import tempfile
from collections.abc import Collection
from pathlib import Path

from harness.systems.java import maven
from harness.systems.java.coordinates import Coordinates


async def resolved(dependencies: Collection[Coordinates]) -> dict[Coordinates, str]:
    """Return the dependencies and all that they need at run time, with the checksums.

    Raises :class:`~harness.systems.java.maven.MavenError`.
    """
    with tempfile.TemporaryDirectory() as folder:
        project = maven.pom(dependencies, transitive=True)
        jars = await maven.copy_dependencies(
            maven.require(), project, Path(folder), repository_layout=True
        )
        return {
            Coordinates.of_path(path.relative_to(jars)): _sha256(path)
            for path in jars.rglob("*.jar")
        }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
