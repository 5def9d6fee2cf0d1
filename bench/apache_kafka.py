"""Brokers of Apache Kafka on this host, with the options of their own start script.

They use this project's ZooKeeper, which takes no part in what is measured.
"""

import socket
from collections.abc import Sequence
from pathlib import Path

from bench.nodes import Node, Nodes
from harness.systems.apache_kafka import log4j
from harness.systems.java import jvm

MAIN = "kafka.Kafka"
HEAP_MB = 1024
OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""The options of ``kafka-run-class.sh`` of release 2.8."""


def cluster(
    nodes: Nodes, folder: Path, name: str, brokers: int, release: str, classpath: Sequence[Path]
) -> list[Node]:
    """Start a ZooKeeper and this many brokers with default settings; files are in ``folder``."""
    zookeeper = nodes.zookeeper(f"{name}-zookeeper")
    started = []
    for number in range(1, brokers + 1):
        home = folder / f"{name}-{number}"
        home.mkdir()
        port = _free_port()
        lines = (
            f"broker.id={number}",
            f"listeners=PLAINTEXT://127.0.0.1:{port}",
            f"zookeeper.connect={zookeeper.address}",
            f"log.dirs={home / 'data'}",
            "log.segment.delete.delay.ms=0",
        )
        (home / "server.properties").write_text("\n".join(lines) + "\n")
        log4j.write_configuration(release, home)
        command = (
            str(jvm.find()),
            f"-Xms{HEAP_MB}m",
            f"-Xmx{HEAP_MB}m",
            *OPTIONS,
            *log4j.logging_options(release, home),
            "-cp",
            ":".join(map(str, classpath)),
            MAIN,
            str(home / "server.properties"),
        )
        started.append(nodes.program(home.name, command, home, port))
    return started


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
