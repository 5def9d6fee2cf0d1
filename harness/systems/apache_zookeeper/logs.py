"""Servers of every release log the same lines to standard output, in UTC.

Releases log by log4j 1 or by logback (ZOOKEEPER-4427), whichever their jars have; each reads its
own file.
"""

from collections.abc import Mapping
from pathlib import Path, PurePath

LOG4J = "log4j.properties"
LOGBACK = "logback.xml"
_LOG4J_LINES = (
    "log4j.rootLogger=INFO, stdout",
    "log4j.appender.stdout=org.apache.log4j.ConsoleAppender",
    "log4j.appender.stdout.layout=org.apache.log4j.PatternLayout",
    "log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n",
)
_LOGBACK_LINES = (
    "<configuration>",
    '  <appender name="stdout" class="ch.qos.logback.core.ConsoleAppender">',
    "    <encoder><pattern>[%d] %p %m \\(%c\\)%n</pattern></encoder>",
    "  </appender>",
    '  <root level="INFO"><appender-ref ref="stdout"/></root>',
    "</configuration>",
)


def write_configuration(folder: Path) -> None:
    """Write the configuration files into a folder."""
    for name, lines in ((LOG4J, _LOG4J_LINES), (LOGBACK, _LOGBACK_LINES)):
        (folder / name).write_text("\n".join(lines) + "\n")


def properties(folder: PurePath) -> Mapping[str, str]:
    """Return the JVM's properties; ``folder`` is an absolute path, as the JVM sees it."""
    return {
        "log4j.configuration": (folder / LOG4J).as_uri(),
        "logback.configurationFile": str(folder / LOGBACK),
        "user.timezone": "UTC",
    }
