"""The target ``simulated``, as the catalogue lists it."""

from harness.cluster.simulated import simulated_cluster
from harness.cluster.simulated.simulated_cluster import Simulated
from harness.cluster.target import Target
from model import options
from model.plan import Plan


def _refuse(plan: Plan) -> str | None:
    client = plan.options["client"]
    if client == "librdkafka":
        return (
            f"options: client={client} cannot be simulated, because librdkafka starts threads;"
            " use aiokafka"
        )
    return options.refusal(plan.options, simulated_cluster.LEAST)


TARGET = Target(
    name="simulated",
    kind=Simulated,
    make=Simulated,
    # Kafka's default waits: a short wait in real time takes many steps in a simulation.
    broker={"replica.fetch.wait.max.ms": "500"},
    consumer={"fetch.wait.max.ms": "500"},
    options={"client": "aiokafka", **simulated_cluster.OPTIONS},
    refuse=_refuse,
    is_virtual=True,
    pace=0.04,
)
