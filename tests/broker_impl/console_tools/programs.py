"""The command line tools of Apache Kafka 2.8.2, and a cluster of this project's brokers for them.

A tool runs as the script of its name in Kafka's ``bin`` folder would run it: the scripts only start
a Java class. The jars are those of the pinned release, downloaded once by Maven.
"""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import jars
from harness.systems.java.lockfile import Product

RELEASE: Final = "2.8.2"
TIMEOUT_S: Final = 90
CLASSES: Final = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "kafka.tools.ConsoleConsumer",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "kafka.admin.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "kafka.tools.ConsumerPerformance",
    "kafka-delete-records": "kafka.admin.DeleteRecordsCommand",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
    "kafka-features": "kafka.admin.FeatureCommand",
    "kafka-get-offsets": "kafka.tools.GetOffsetShell",
    "kafka-leader-election": "kafka.admin.LeaderElectionCommand",
    "kafka-log-dirs": "kafka.admin.LogDirsCommand",
    "kafka-preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "kafka-replica-verification": "kafka.tools.ReplicaVerificationTool",
    "kafka-run-class": "",
    "kafka-topics": "kafka.admin.TopicCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-e2e-latency": "kafka.tools.EndToEndLatency",
}
"""The Java class that each script starts; the name of kafka-e2e-latency is not Kafka's."""
_LOG4J: Final = """
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.stderr.Target=System.err
"""
_TOOLS: Final = Product("Apache Kafka tools", Path(__file__).parent / "locks", __name__)


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool has printed."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[list[str]]:
        """The words of each line that is not empty."""
        return [line.split() for line in self.output.splitlines() if line.strip()]


class Tools:
    """Runs the tools in a folder, where they find the files that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = [
            path
            for product in (PRODUCT, _TOOLS)
            for path in asyncio.run(jars.resolve(RELEASE, _say, product))
        ]
        log4j = folder / "log4j.properties"
        log4j.write_text(_LOG4J)
        self._java = [
            *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
            *(f"-Dlog4j.configuration=file:{log4j}", "-cp", ":".join(map(str, found))),
        ]

    def run(self, name: str, *arguments: str, given: str = "") -> Done:
        """Run a tool to its end; ``given`` is its standard input."""
        done = subprocess.run(
            self.command(name, *arguments),
            input=given,
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of a tool."""
        return [*self._java, *filter(None, [CLASSES[name]]), *arguments]

    def write(self, name: str, text: str) -> None:
        """Write a file that a tool reads."""
        (self.folder / name).write_text(text)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
