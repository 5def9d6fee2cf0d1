"""Brokers of every release log the same lines to standard output, in UTC.

The lines have the pattern of Kafka's own ``log4j.properties``. Releases before 4.0 read a
configuration of log4j 1 (or of reload4j, its continuation), later ones one of log4j 2 (KIP-653).
"""

from collections.abc import Sequence
from pathlib import Path, PurePath

from harness.systems.java.lockfile import numbers

PATTERN = "[%d] %p %m (%c)%n"
QUIET = ("org.apache.zookeeper", "org.I0Itec.zkclient", "kafka.request.logger")
"""Loggers of a broker that write no INFO lines: two ZooKeeper clients, and one line per request."""
_LOG4J2 = (4, 0)
"""The first release that uses log4j 2."""


def logging_options(version: str, folder: PurePath) -> list[str]:
    """Return the options of a JVM that logs as the configuration file in the folder says.

    ``folder`` is an absolute path, as the JVM sees it.
    """
    name = "log4j2.configurationFile" if numbers(version) >= _LOG4J2 else "log4j.configuration"
    return [f"-D{name}={(folder / _file(version)).as_uri()}", "-Duser.timezone=UTC"]


def write_configuration(version: str, folder: Path, quiet: Sequence[str] = QUIET) -> Path:
    """Write the configuration file of a release into a folder; return its path.

    Everything at INFO and above is logged, for the loggers in ``quiet`` only WARN and above.
    """
    path = folder / _file(version)
    path.write_text(_log4j2(quiet) if numbers(version) >= _LOG4J2 else _log4j1(quiet))
    return path


def _file(version: str) -> str:
    return "log4j2.properties" if numbers(version) >= _LOG4J2 else "log4j.properties"


def _log4j1(quiet: Sequence[str]) -> str:
    lines = [
        "log4j.rootLogger=INFO, stdout",
        "log4j.appender.stdout=org.apache.log4j.ConsoleAppender",
        "log4j.appender.stdout.layout=org.apache.log4j.PatternLayout",
        f"log4j.appender.stdout.layout.ConversionPattern={PATTERN}",
        *(f"log4j.logger.{name}=WARN" for name in quiet),
    ]
    return "\n".join(lines) + "\n"


def _log4j2(quiet: Sequence[str]) -> str:
    lines = [
        "appender.stdout.type=Console",
        "appender.stdout.name=stdout",
        "appender.stdout.layout.type=PatternLayout",
        f"appender.stdout.layout.pattern={PATTERN}",
        "rootLogger.level=INFO",
        "rootLogger.appenderRef.stdout.ref=stdout",
    ]
    for number, name in enumerate(quiet):
        lines += [f"logger.quiet{number}.name={name}", f"logger.quiet{number}.level=WARN"]
    return "\n".join(lines) + "\n"
