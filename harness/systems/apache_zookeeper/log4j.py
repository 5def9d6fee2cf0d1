"""Servers of every release log to standard output, in UTC, by a configuration of log4j 1."""

from pathlib import Path

FILE = "log4j.properties"
_LINES = (
    "log4j.rootLogger=INFO, stdout",
    "log4j.appender.stdout=org.apache.log4j.ConsoleAppender",
    "log4j.appender.stdout.layout=org.apache.log4j.PatternLayout",
    "log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n",
)


def write_configuration(folder: Path) -> Path:
    """Write the configuration file into a folder; return its path."""
    path = folder / FILE
    path.write_text("\n".join(_LINES) + "\n")
    return path
