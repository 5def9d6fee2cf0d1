"""The target ``containers``, as the catalogue lists it."""

from harness.cluster import security
from harness.cluster.containers import engine, node_images, plan_options
from harness.cluster.containers.container_cluster import Containers
from harness.cluster.target import Target

TARGET = Target(
    name="containers",
    kind=Containers,
    make=Containers,
    any_system=True,
    options=plan_options.OPTIONS,
    refusal=engine.refusal,
    refuse=plan_options.refuse,
    prepare=node_images.prepare,
    withholds=security.withholds,
)
