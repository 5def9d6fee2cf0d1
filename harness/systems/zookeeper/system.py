"""The system ``zookeeper``: an ensemble of this project's ZooKeeper servers, without brokers."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from harness.cluster import ensembles, links, mutants
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.observe.ensemble_view import NoMetadata
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.system import Contained, Image, Place, Program, Service, System
from harness.systems.kafka import contained
from harness.systems.kafka.configuration import zookeeper_command
from model.layout import PEER_PORTS, Layout
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId

SERVERS = 3
"""The number of servers unless the plan says otherwise."""
SESSION_TIMEOUT, SESSION_TIMEOUT_S = "session_timeout_s", 4.0
"""The option with the session timeout that clients ask for, and its default; faults are drawn
shorter or longer than it."""


class ZooKeeper(System):
    """This project's own ZooKeeper servers."""

    name = "zookeeper"
    service: Service = "zookeeper"
    broker: Mapping[str, str] = {}
    options: ClassVar[Mapping[str, Any]] = {
        **ensembles.OPTIONS,
        **ensembles.SETTINGS,
        ensembles.SERVERS: SERVERS,
    }
    reuses_ports = True

    def layout(self, plan: Plan) -> Layout:
        return ensembles.layout(plan, self.options)

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        return (ZOOKEEPER, *(PEER_PORTS if self.layout(plan).is_ensemble else ()))

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        return links.of_zookeepers(self.layout(plan))

    def program(self, place: Place, plan: Plan) -> Program:
        command = zookeeper_command(place, self.layout(plan))
        return Program([*command, "--reuse-port", *settings_of(plan), *_planted(plan)])

    def image(self, node: NodeId, plan: Plan) -> Image:
        return None

    def contained(self, place: Place, plan: Plan) -> Contained:
        found = contained.zookeeper(place, self.layout(plan))
        return found._replace(command=[*(found.command or ()), *settings_of(plan), *_planted(plan)])

    def mutants(self) -> Mapping[str, mutants.Mutant]:
        return mutants.catalogue("zookeeper")

    def view(self, addresses: Mapping[NodeId, Address], rng: random.Random) -> MetadataView:
        return NoMetadata()

    def refusal(self, plan: Plan) -> str | None:
        if plan.broker:
            return f"--set broker.{next(iter(plan.broker))}: {self.name} has no brokers"
        return ensembles.refusal({**self.options, **plan.options})

    def has_kip(self, kip: int) -> bool:
        return False

    def session_timeout_s(self, plan: Plan) -> float:
        return float(plan.options.get(SESSION_TIMEOUT, SESSION_TIMEOUT_S))


def settings_of(plan: Plan) -> list[str]:
    """Return the arguments of this project's servers for the settings of a plan."""
    arguments: list[str] = []
    for name, value in ensembles.settings(plan).items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments


def _planted(plan: Plan) -> list[str]:
    """Return the arguments that plant a plan's bugs in a server."""
    return [word for name in plan.mutants for word in ("--mutant", name)]
