"""The target ``processes``, as the catalogue lists it."""

from harness.cluster import links
from harness.cluster.base_cluster import CONTROLLER_FIRST
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.target import Target
from model.plan import Plan


def _refuse(plan: Plan) -> str | None:
    first = plan.options[CONTROLLER_FIRST]
    if not isinstance(first, bool):
        return f"options: {CONTROLLER_FIRST}={first}: must be true or false"
    return links.refusal(plan.options["client_listeners"])


TARGET = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    options={"client_listeners": [], CONTROLLER_FIRST: False},
    any_system=True,
    refuse=_refuse,
)
