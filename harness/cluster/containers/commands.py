"""The commands of this project's broker and ZooKeeper in their containers."""

from harness.cluster import settings
from harness.cluster.settings import Addresses
from harness.cluster.system import Place
from model import roles
from model.plan import Plan
from model.roles import ZOOKEEPER


def of_node(place: Place, plan: Plan) -> list[str]:
    """Return the command of a node, which contains all its settings.

    A broker's settings are also written into its folder on this machine, for readers of the run.
    """
    return _zookeeper(place) if place.node == ZOOKEEPER else _broker(place, plan)


def _zookeeper(place: Place) -> list[str]:
    return [
        *("python3", "-m", "broker_impl.zookeeper", "--data", str(place.data)),
        *("--listen", str(place.listens[ZOOKEEPER]), "--tick-ms", str(settings.TICK_MS)),
    ]


def _broker(place: Place, plan: Plan) -> list[str]:
    addresses = Addresses.of_links(place.listens, place.advertised, place.links)
    number = roles.number(place.node)
    named = settings.of_broker(number, plan.brokers, addresses, place.data, plan.broker)
    settings.write(place.folder / "server.properties", named)
    command = ["python3", "-m", "broker_impl"]
    command += [word for item in named.items() for word in ("--set", "=".join(item))]
    command += [word for mutant in plan.mutants for word in ("--mutant", mutant)]
    return command
