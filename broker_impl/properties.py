"""Sources of settings: a properties file, environment variables, and Kafka's older names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import javaproperties

from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import Kind, parse_value

_ENVIRONMENT_PREFIX: Final = "KAFKA_"
_FOR_START_SCRIPTS: Final = (
    "DEBUG",
    "GC_LOG_OPTS",
    "HEAP_OPTS",
    "HOME",
    "JMX_OPTS",
    "JVM_PERFORMANCE_OPTS",
    "LOG4J_OPTS",
    "OPTS",
)
"""Variables of Kafka's start scripts, which are not broker settings."""
_COARSER: Final = {
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", 3_600_000),
}
"""Kafka's names for times in minutes or hours, the smaller unit first.

Each has the name of the setting in milliseconds, and the factor.
"""
_ONE_LISTENER: Final = ("host.name", "port")
_ONE_ADVERTISED: Final = ("advertised.host.name", "advertised.port")
OTHER_NAMES: Final = (*_COARSER, "log.dir", *_ONE_LISTENER, *_ONE_ADVERTISED)
"""Names that stand for another setting; see :func:`by_one_name`."""


def load(path: Path) -> dict[str, str]:
    """Load a ``server.properties`` file in the format of ``java.util.Properties``."""
    try:
        with path.open("rb") as file:
            return dict(javaproperties.load(file))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (javaproperties.InvalidUEscapeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a properties file: {error}") from error


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return settings from environment variables, named as in Kafka's images.

    ``KAFKA_LOG_RETENTION_HOURS=60`` is ``log.retention.hours=60``.
    """
    return {
        name.removeprefix(_ENVIRONMENT_PREFIX).lower().replace("_", "."): environment[name]
        for name in sorted(environment)
        if name.startswith(_ENVIRONMENT_PREFIX)
        and name.removeprefix(_ENVIRONMENT_PREFIX) not in _FOR_START_SCRIPTS
    }


def by_one_name(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings, each under the only one of its names that the broker reads.

    If a setting is given under several names, the precedence is that of Kafka: the smallest unit of
    time (``log.retention.ms`` over ``log.retention.hours``), ``log.dirs`` over ``log.dir``, and
    ``listeners`` over ``host.name`` and ``port``. Raises ConfigError for an invalid value.
    """
    values = dict(settings)
    for name, (finest, factor) in _COARSER.items():
        if name in values:
            number = parse_value(Kind.INT, name, values.pop(name))
            values.setdefault(finest, str(number * factor if number > 0 else number))
    if "log.dir" in values:
        values.setdefault("log.dirs", values.pop("log.dir"))
    values.pop("log.dir", None)
    _listeners(values)
    return values


def _listeners(values: dict[str, str]) -> None:
    """Replace the settings that were used before ``listeners`` (Kafka 3.0 removed them)."""
    listener = {name: values.pop(name) for name in _ONE_LISTENER if name in values}
    advertised = {name: values.pop(name) for name in _ONE_ADVERTISED if name in values}
    for name, text in (listener | advertised).items():
        if name.endswith("port"):
            parse_value(Kind.INT, name, text)
    host, port = listener.get("host.name", ""), listener.get("port", "9092")
    if listener and "listeners" not in values:
        values["listeners"] = _plaintext(host, port)
    if advertised and "advertised.listeners" not in values:
        values["advertised.listeners"] = _plaintext(
            advertised.get("advertised.host.name", host), advertised.get("advertised.port", port)
        )


def _plaintext(host: str, port: str) -> str:
    host = host.strip()
    return f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port.strip()}"
