"""The target ``simulated``, as the catalogue lists it."""

from harness.cluster import security
from harness.cluster.simulated import simulated_options
from harness.cluster.simulated.simulated_cluster import Simulated
from harness.cluster.target import Target
from model import data_directories, options
from model.capabilities.machines import CanFailDirectory
from model.plan import Plan
from nemesis.package import Package


def _refuse(plan: Plan) -> str | None:
    client = plan.options.get("client")
    if client == "librdkafka":
        return (
            f"options: client={client} cannot be simulated, because librdkafka starts threads;"
            " use aiokafka"
        )
    library = plan.options.get("zk_client")
    if library == "kazoo":
        return (
            f"options: zk_client={library} cannot be simulated, because kazoo starts threads;"
            " use asyncio"
        )
    chosen = security.of(plan)
    if chosen is not None and chosen.has_tls:
        return (
            f"options: {security.OPTION}={security.SCRAM_TLS} cannot be simulated, because keys and"
            f" encrypted bytes differ from run to run; use {security.SCRAM}"
        )
    return options.refusal(plan.options, simulated_options.LEAST)


def _withholds(capability: type, plan: Plan) -> bool:
    if capability is CanFailDirectory:
        return not _has_several_directories(plan)
    return security.withholds(capability, plan)


def _lacks(package: Package, plan: Plan) -> str | None:
    if CanFailDirectory in package.needs and plan.brokers and not _has_several_directories(plan):
        return (
            "it needs brokers with several data directories;"
            f" set the option {data_directories.OPTION} to 2 or more"
        )
    return None


def _has_several_directories(plan: Plan) -> bool:
    return data_directories.count(plan.options) > 1


TARGET = Target(
    name="simulated",
    kind=Simulated,
    make=Simulated,
    # Kafka's default waits: a short wait in real time takes many steps in a simulation.
    broker={"replica.fetch.wait.max.ms": "500"},
    consumer={"fetch.wait.max.ms": "500"},
    options={"client": "aiokafka", "zk_client": "asyncio", **simulated_options.OPTIONS},
    refuse=_refuse,
    lacks=_lacks,
    withholds=_withholds,
    is_virtual=True,
    pace=0.04,
)
