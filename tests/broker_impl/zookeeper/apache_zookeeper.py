"""Apache ZooKeeper's jars, downloaded once by Maven, and its programs."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.systems.java import maven
from harness.systems.java.coordinates import Coordinates

VERSION = "3.9.3"
JARS = [
    Coordinates.parse(text)
    for text in (
        f"org.apache.zookeeper:zookeeper:{VERSION}",
        "ch.qos.logback:logback-classic:1.2.13",
        "commons-cli:commons-cli:1.5.0",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
    )
]


class Absent(Exception):
    """Apache ZooKeeper cannot be run here; the message says why."""


def folder() -> Path:
    """Return the folder of the jars, downloading them if they are not there; raises Absent."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(base) / "faultline" / "apache-zookeeper-tools" / VERSION
    if shutil.which("java") is None:
        raise Absent("there is no java on PATH")
    if not found.is_dir():
        found.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=found.parent, prefix="incomplete-") as temporary:
            try:
                project = maven.pom(JARS, transitive=True)
                copied = maven.copy_dependencies(maven.require(), project, Path(temporary))
                _install(asyncio.run(copied), found)
            except maven.MavenError as error:
                raise Absent(f"the jars of Apache ZooKeeper are not here: {error}") from None
    return found


def _install(jars: Path, found: Path) -> None:
    """Move the jars to their place, unless another process has done that meanwhile."""
    try:
        jars.rename(found)
    except OSError:
        if not found.is_dir():
            raise


def run(program: str, *arguments: str | Path) -> str:
    """Run one of Apache's tools to its end, and return its output."""
    command = ["java", "-cp", f"{folder()}/*", f"org.apache.zookeeper.server.{program}"]
    done = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shell(*arguments: str, options: Sequence[str] = ()) -> str:
    """Run one command of Apache's shell, and return everything that it prints."""
    program = "org.apache.zookeeper.ZooKeeperMain"
    done = subprocess.run(
        ["java", "-cp", f"{folder()}/*", *options, program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


@contextlib.contextmanager
def server(data: Path, *, snap_count: int = 100_000, options: Sequence[str] = ()) -> Iterator[int]:
    """Run Apache's server on a data directory; yield its port, and kill it at the end.

    ``options`` are those of the JVM.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    settings = data.with_suffix(".cfg")
    settings.write_text(
        f"dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n4lw.commands.whitelist=*\n"
    )
    command = [
        "java", "-cp", f"{folder()}/*", f"-Dzookeeper.snapCount={snap_count}",
        "-Dzookeeper.extendedTypesEnabled=true", *options,
        "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings),
    ]  # fmt: skip
    log = data.with_suffix(".log")
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=data)
    try:
        _wait(port, process, log)
        yield port
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as asked:
            asked.sendall(b"ruok")
            if asked.recv(4) == b"imok":
                return
        time.sleep(0.1)
    raise TimeoutError(f"the server does not answer: {log.read_text()}")
