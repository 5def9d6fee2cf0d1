"""A program ``mvn`` that copies jars without a network, and fails in the ways that Maven fails."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from harness.systems.java.coordinates import Coordinates
from harness.systems.java.lockfile import Product

JARS = tuple(
    Coordinates.parse(text)
    for text in ("org.apache.kafka:kafka_2.13:9.9.9", "org.x:y:1.0", "org.x:z:1.0:linux-x86_64")
)
SCRIPT = """#!{python} -IS
import os, pathlib, re, signal, sys

options = dict(part[2:].split("=", 1) for part in sys.argv if part.startswith("-D"))
here = pathlib.Path({folder!r})
mode = (here / "mode").read_text()
with (here / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if mode == "fail":
    print("[INFO] Scanning for projects...")
    print("[\\x1b[1;31mERROR\\x1b[m] Failed to execute goal: Could not find y.jar -> [Help 1]")
    print("[ERROR] Re-run Maven using the -X switch to enable full debug logging.")
    sys.exit(1)
jars = re.findall(
    "<dependency><groupId>(.*?)</groupId><artifactId>(.*?)</artifactId><version>(.*?)</version>"
    "(?:<classifier>(.*?)</classifier>)?", pathlib.Path("pom.xml").read_text())
for number, (group, artifact, version, classifier) in enumerate(jars):
    if mode == "hang" and number == 1:
        (here / "pid.new").write_text(str(os.getpid()))
        (here / "pid.new").rename(here / "pid")
        signal.pause()
    folder = pathlib.Path(options["outputDirectory"])
    if options["mdep.useRepositoryLayout"] == "true":
        folder = folder.joinpath(*group.split("."), artifact, version)
        folder.mkdir(parents=True)
    name = "-".join(filter(None, (artifact, version, classifier))) + ".jar"
    content = artifact if mode != "wrong" or number != 1 else "another one"
    (folder / name).write_text(content)
"""


@dataclass(frozen=True)
class FakeMaven:
    """The folder of the program, which reads its mode there and writes its calls."""

    folder: Path

    @property
    def product(self) -> Product:
        """A product whose lock files are next to the program."""
        return Product("Apache Kafka", self.locks, "harness.systems.apache_kafka.lock")

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    @property
    def pid(self) -> Path:
        """Contains the id of the process, once one hangs half way."""
        return self.folder / "pid"

    def mode(self, name: str) -> None:
        """``ok``, ``fail``, ``wrong`` (one checksum differs) or ``hang``."""
        (self.folder / "mode").write_text(name)

    async def hangs(self) -> bool:
        """Return whether a process hangs."""
        return self.pid.exists()

    def calls(self) -> list[str]:
        """The arguments of each call."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


def checksum(jar: Coordinates) -> str:
    """The checksum of the jar that the program makes."""
    return hashlib.sha256(jar.artifact.encode()).hexdigest()
