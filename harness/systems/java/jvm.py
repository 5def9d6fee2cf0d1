"""Finds Java, and holds the options with which a Java program of a test runs."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from harness.cluster.system import SystemUnavailable

OPTIONS = (
    "-server",
    # Two cores run several of these programs: the first compiler is fast enough, and starts sooner.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-XX:+ExitOnOutOfMemoryError",
)
BESIDE_HEAP_MB = 320
"""What a broker's JVM uses beyond its heap: classes, code, threads and buffers."""
STOPPED_STATUS = 128 + 15
"""The exit status of Java after its shutdown hooks have run because of SIGTERM."""
_OPEN = ("java.lang", "java.nio", "sun.nio.ch", "java.util", "jdk.internal.ref")
"""Packages of ``java.base`` that releases of Kafka before 3.0 reach into."""


class Runtime(NamedTuple):
    """Java and the jars of a program, where the program finds them."""

    java: PurePath
    classpath: Sequence[PurePath]


def find() -> Path:
    """Return ``java``: that of ``JAVA_HOME``, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java"] if home else []
    for candidate in (*candidates, shutil.which("java")):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise SystemUnavailable("no Java was found: run `make setup`, or set JAVA_HOME")


def command(
    runtime: Runtime,
    main: str,
    arguments: Sequence[str],
    *,
    heap_mb: int,
    folder: PurePath,
    properties: Mapping[str, str],
    options: Sequence[str] = (),
) -> list[str]:
    """Return the command of a Java program; ``folder``: where Java describes its own crash."""
    opens = [word for each in _OPEN for word in ("--add-opens", f"java.base/{each}=ALL-UNNAMED")]
    return [
        str(runtime.java),
        f"-Xmx{heap_mb}m",
        *OPTIONS,
        f"-XX:ErrorFile={folder}/hs_err_pid%p.log",
        *opens,
        *(f"-D{name}={value}" for name, value in properties.items()),
        *options,
        *("-cp", ":".join(map(str, runtime.classpath))),
        main,
        *arguments,
    ]
