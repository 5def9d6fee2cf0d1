"""The target ``containers``, as the catalogue lists it."""

from harness.cluster.containers import container_cluster, engine
from harness.cluster.containers.container_cluster import Containers
from harness.cluster.target import Target

TARGET = Target(
    name="containers",
    kind=Containers,
    make=Containers,
    takes_system=True,
    options=container_cluster.OPTIONS,
    refusal=engine.refusal,
    refuse=container_cluster.refuse,
    prepare=container_cluster.prepare,
)
