"""The settings of this project's brokers, and the command of its ZooKeeper."""

import sys

from harness.cluster import settings
from harness.cluster.settings import Addresses
from harness.cluster.system import Place
from model import roles
from model.plan import Plan
from model.roles import ZOOKEEPER


def broker_settings(place: Place, plan: Plan) -> dict[str, str]:
    """Return all settings of the broker at this place."""
    addresses = Addresses.of_links(place.listens, place.advertised, place.links)
    number = roles.number(place.node)
    return settings.of_broker(number, plan.brokers, addresses, place.data, plan.broker)


def zookeeper_arguments(place: Place) -> list[str]:
    """Return the arguments of Python that start this project's ZooKeeper at this place."""
    return [
        *("-m", "broker_impl.zookeeper", "--listen", str(place.listens[ZOOKEEPER])),
        *("--data", str(place.data), "--tick-ms", str(settings.TICK_MS)),
    ]


def zookeeper_command(place: Place) -> list[str]:
    """Return the command of this project's ZooKeeper as a process of this machine."""
    return [sys.executable, *zookeeper_arguments(place)]
