"""The target ``processes``, as the catalogue lists it."""

from harness.cluster import links
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.target import Target

TARGET = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    options={"client_listeners": []},
    any_system=True,
    refuse=lambda plan: links.refusal(plan.options["client_listeners"]),
)
