"""All systems that a plan can name."""

import functools

from harness.cluster.system import System
from harness.systems.apache_kafka.releases import Release
from harness.systems.apache_kafka.system import ApacheKafka
from harness.systems.kafka.system import Kafka

OURS = "kafka"
APACHE = "apache-kafka"


class UnknownSystem(ValueError):
    """No system has this name; the message says which names there are."""


@functools.cache
def system(name: str) -> System:
    """Return the system that a plan names, such as ``apache-kafka:3.9.1``.

    Raises :class:`UnknownSystem`.
    """
    if name == OURS:
        return Kafka()
    kind, _, version = name.partition(":")
    if kind == APACHE and version:
        try:
            return ApacheKafka(Release.parse(version))
        except ValueError as error:
            raise UnknownSystem(f"--system {name}: {error}") from None
    raise UnknownSystem(
        f"--system {name}: must be {OURS} (this project's broker) or {APACHE}:VERSION,"
        f" such as {APACHE}:3.9.1"
    )
