"""How nodes of this project's broker and ZooKeeper run in containers: by commands alone."""

from harness.cluster import settings
from harness.cluster.system import Contained, Place
from harness.systems.kafka.configuration import broker_settings, zookeeper_arguments
from model.layout import Layout
from model.plan import Plan

PYTHON = "python3"


def zookeeper(place: Place, layout: Layout) -> Contained:
    """Return the command of a ZooKeeper server."""
    return Contained([PYTHON, *zookeeper_arguments(place, layout)])


def broker(place: Place, plan: Plan) -> Contained:
    """Return the command of a broker, which contains all its settings.

    They are also written into its folder on this machine, for readers of the run.
    """
    named = broker_settings(place, plan)
    settings.write(place.folder / "server.properties", named)
    command = [PYTHON, "-m", "broker_impl"]
    command += [word for item in named.items() for word in ("--set", "=".join(item))]
    command += [word for mutant in plan.mutants for word in ("--mutant", mutant)]
    return Contained(command)
