"""All systems that a plan can name."""

import functools

from harness.cluster.system import System
from harness.systems.apache_kafka.releases import Release
from harness.systems.apache_kafka.system import ApacheKafka
from harness.systems.apache_zookeeper.releases import Release as ZooKeeperRelease
from harness.systems.apache_zookeeper.system import ApacheZooKeeper
from harness.systems.kafka.system import Kafka
from harness.systems.zookeeper.system import ZooKeeper

OURS = "kafka"
APACHE = "apache-kafka"
ZOOKEEPER = "zookeeper"
APACHE_ZOOKEEPER = "apache-zookeeper"


class UnknownSystem(ValueError):
    """No system has this name; the message says which names there are."""


@functools.cache
def system(name: str) -> System:
    """Return the system that a plan names, such as ``apache-kafka:3.9.1``.

    Raises :class:`UnknownSystem`.
    """
    if name == OURS:
        return Kafka()
    if name == ZOOKEEPER:
        return ZooKeeper()
    kind, _, version = name.partition(":")
    try:
        if kind == APACHE and version:
            return ApacheKafka(Release.parse(version))
        if kind == APACHE_ZOOKEEPER and version:
            return ApacheZooKeeper(ZooKeeperRelease.parse(version))
    except ValueError as error:
        raise UnknownSystem(f"--system {name}: {error}") from None
    raise UnknownSystem(
        f"--system {name}: must be {OURS} (this project's broker), {APACHE}:VERSION such as"
        f" {APACHE}:3.9.1, {ZOOKEEPER} (this project's ZooKeeper) or {APACHE_ZOOKEEPER}:VERSION"
    )
