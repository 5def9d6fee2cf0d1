"""The target ``processes``, as the catalogue lists it."""

from harness.cluster import base_cluster, links, security
from harness.cluster.base_cluster import CONTROLLER_FIRST
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.target import Target
from model.plan import Plan


def _refuse(plan: Plan) -> str | None:
    clients = plan.options["client_listeners"]
    if image := plan.options.get("image"):
        return f"options: image={image}: processes have no image; use --target containers"
    return base_cluster.refusal(plan.options) or links.refusal(clients)


TARGET = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    options={"client_listeners": [], CONTROLLER_FIRST: False},
    any_system=True,
    refuse=_refuse,
    withholds=security.withholds,
)
