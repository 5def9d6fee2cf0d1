"""Maven downloads jars; its own settings decide from which repositories."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.cluster.node import ClusterError
from harness.systems.java.coordinates import Coordinates

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
"""Copies the jars of a project's dependencies; needs Maven 3.6.3."""
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HELP = re.compile(r" -> \[Help \d+\]$")
"""Maven ends the line that states the cause with a reference to its manual."""


class MavenError(ClusterError):
    """Maven failed; the message contains the line in which it states the cause."""


class MavenMissing(MavenError):
    """There is no ``mvn`` on PATH."""


def require() -> str:
    """Return the path of the program; raises :class:`MavenMissing`."""
    found = shutil.which("mvn")
    if found is None:
        raise MavenMissing("there is no `mvn` on PATH")
    return found


def pom(dependencies: Iterable[Coordinates], *, transitive: bool) -> str:
    """Return the text of a project file with these dependencies.

    Unless ``transitive``, Maven does not add the dependencies of the dependencies.
    """
    exclusion = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    rest = "" if transitive else f"<exclusions>{exclusion}</exclusions>"
    entries = "".join(
        f"<dependency><groupId>{each.group}</groupId><artifactId>{each.artifact}</artifactId>"
        f"<version>{each.version}</version>"
        + (f"<classifier>{each.classifier}</classifier>" if each.classifier else "")
        + f"{rest}</dependency>\n"
        for each in dependencies
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        "<modelVersion>4.0.0</modelVersion>\n"
        "<groupId>faultline</groupId><artifactId>apache-kafka</artifactId><version>1</version>\n"
        f"<dependencies>\n{entries}</dependencies>\n</project>\n"
    )


async def copy_dependencies(
    mvn: str, project: str, folder: Path, *, repository_layout: bool = False
) -> Path:
    """Download the jars that a project needs at run time; return the folder that contains them.

    ``project`` is the text of the project file, and ``folder`` exists for this purpose alone. The
    jars are in one folder, or with ``repository_layout`` at the paths that they have in a
    repository. Raises :class:`MavenError`. If the task is cancelled, Maven has ended when this
    coroutine ends.
    """
    (folder / "pom.xml").write_text(project)
    jars = folder / "jars"
    jars.mkdir()
    layout = str(repository_layout).lower()
    status, output = await _run(
        folder, mvn, "-q", "-B", f"{PLUGIN}:copy-dependencies", "-DincludeScope=runtime",
        f"-DoutputDirectory={jars}", f"-Dmdep.useRepositoryLayout={layout}",
    )  # fmt: skip
    if status != 0:
        raise MavenError(f"Maven failed with exit status {status}: {cause(output)}")
    return jars


async def _run(folder: Path, *argv: str) -> tuple[int, str]:
    """Run a program to its end; return its exit status and its output with its errors."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that the program and its children can be ended together
    )
    try:
        output, _ = await process.communicate()
        return await process.wait(), output.decode(errors="replace")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def cause(output: str) -> str:
    """Return the line in which Maven states the cause of a failure.

    This is the last line of level ERROR that refers to the manual, else the first of level ERROR,
    else the last line of the output.
    """
    lines = [line.strip() for line in _ESCAPES.sub("", output).splitlines() if line.strip()]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    stated = [line for line in errors if _HELP.search(line)]
    chosen = [*stated[-1:], *errors[:1], *lines[-1:], "it printed nothing"]
    return _HELP.sub("", chosen[0])
