"""The target ``processes``, as the catalogue lists it."""

from harness.cluster import links, mutants, settings
from harness.cluster.processes.process_cluster import Processes
from harness.cluster.target import Target

TARGET = Target(
    name="processes",
    kind=Processes,
    make=Processes,
    broker=settings.SCALED,
    mutants=mutants.catalogue,
    options={"client_listeners": []},
    refuse=lambda plan: links.refusal(plan.options["client_listeners"]),
)
