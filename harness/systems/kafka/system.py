"""The system ``kafka``: this project's own broker and ZooKeeper, run by this Python."""

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from harness.cluster import ensembles, links, mutants, security, settings
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.system import Contained, Image, Place, Program, System
from harness.systems.kafka import contained
from harness.systems.kafka.configuration import broker_settings, zookeeper_command
from model.layout import PEER_PORTS, Layout
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId


class Kafka(System):
    """This project's own broker and ZooKeeper."""

    name = "kafka"
    broker = settings.SCALED
    options: ClassVar[Mapping[str, Any]] = {**ensembles.OPTIONS, security.OPTION: security.NONE}
    reuses_ports = True

    def layout(self, plan: Plan) -> Layout:
        return ensembles.layout(plan)

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        layout = self.layout(plan)
        if node in layout.zookeepers:
            return (ZOOKEEPER, *(PEER_PORTS if layout.is_ensemble else ()))
        return security.listeners(links.listeners(plan.options.get("client_listeners", ())), plan)

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        clients = plan.options.get("client_listeners", ())
        return links.between(self.layout(plan), clients)

    def program(self, place: Place, plan: Plan) -> Program:
        if place.node.startswith(ZOOKEEPER):
            command = zookeeper_command(place, self.layout(plan))
            return Program([*command, "--reuse-port"])
        properties = place.folder / "server.properties"
        settings.write(properties, broker_settings(place, plan))
        planted = [word for name in plan.mutants for word in ("--mutant", name)]
        command = [sys.executable, "-m", "broker_impl", str(properties), "--reuse-port", *planted]
        return Program(command)

    def image(self, node: NodeId, plan: Plan) -> Image:
        return None

    def contained(self, place: Place, plan: Plan) -> Contained:
        if place.node.startswith(ZOOKEEPER):
            return contained.zookeeper(place, self.layout(plan))
        return contained.broker(place, plan)

    def view(self, addresses: Mapping[NodeId, Address], rng: random.Random) -> MetadataView:
        servers = [str(at) for node, at in addresses.items() if node.startswith(ZOOKEEPER)]
        return View(",".join(servers), rng)

    def refusal(self, plan: Plan) -> str | None:
        return (
            ensembles.refusal({**self.options, **plan.options})
            or security.refusal(plan.options)
            or settings.refusal(plan.broker)
        )

    def session_timeout_s(self, plan: Plan) -> float:
        return settings.session_timeout_s(plan.broker)

    def mutants(self) -> Mapping[str, mutants.Mutant]:
        return mutants.catalogue("kafka")
