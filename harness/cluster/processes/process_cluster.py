"""The target ``processes``: brokers and ZooKeeper as processes of this machine, behind a mesh.

The start of a cluster first ends processes that killed harnesses have left behind.
"""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from harness.cluster import links, settings
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.proxied_cluster import ProxiedCluster
from harness.cluster.mesh.toxiproxy import ProxyEndpoint
from harness.cluster.node import Node
from harness.cluster.observe import probe
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.readiness import until_writable
from harness.cluster.ports import HOST, Ports
from harness.cluster.process import Process
from harness.cluster.registry import Registry, reap
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId


class Commands:
    """The commands that start the nodes: this project's broker and ZooKeeper, with this Python."""

    def zookeeper(self, port: int, data: Path) -> Sequence[str]:
        return [
            *(sys.executable, "-m", "broker_impl.zookeeper", "--listen", f"{HOST}:{port}"),
            *("--data", str(data), "--tick-ms", str(settings.TICK_MS), "--reuse-port"),
        ]

    def broker(self, properties: Path, mutants: Sequence[str]) -> Sequence[str]:
        planted = [word for name in mutants for word in ("--mutant", name)]
        return [sys.executable, "-m", "broker_impl", str(properties), "--reuse-port", *planted]


class Processes(ProxiedCluster):
    """A cluster of local processes."""

    START_TIMEOUT_S: ClassVar[float] = 20.0
    BINDS: ClassVar[str] = HOST

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        commands: Commands | None = None,
        make_view: Callable[[str], MetadataView] | None = None,
        ready: Callable[[MetadataView, Mapping[NodeId, Address]], Awaitable[None]] = until_writable,
        state: Path | None = None,
    ) -> None:
        """As :class:`ProxiedCluster`; for tests, also other programs and another folder for the
        registry."""
        super().__init__(plan, folder, rng, make_view=make_view, ready=ready)
        self._commands = commands or Commands()
        self._state = state
        self._reserved = Ports()
        self._registry: Registry | None = None
        self._server: Process | None = None

    async def is_running(self, node: NodeId) -> bool:
        """Measure whether the node's process runs, or its port accepts connections."""
        return await super().is_running(node) or await probe.accepts(self.direct(node))

    # --- implementation

    async def _prepare(self) -> None:
        reap(self._state)

    async def _begin(self) -> None:
        nodes = self._folder / "nodes"
        nodes.mkdir(parents=True, exist_ok=True)
        self._registry = Registry(self._folder.name, self._state, nodes / "pids.json")
        self._ports[ZOOKEEPER] = {ZOOKEEPER: self._reserved.reserve()}
        for broker in self.brokers:
            listeners = links.listeners(self._clients)
            self._ports[broker] = {name: self._reserved.reserve() for name in listeners}
        data = self._data_of(ZOOKEEPER)
        data.mkdir(parents=True, exist_ok=True)
        command = self._commands.zookeeper(self._ports[ZOOKEEPER][ZOOKEEPER], data)
        zookeeper = self._nodes[ZOOKEEPER] = self._process(ZOOKEEPER, command)
        self._server = self._process("toxiproxy", toxiproxy.command(), **toxiproxy.ENVIRONMENT)
        _, api = await asyncio.gather(zookeeper.start(), toxiproxy.serve(self._server))
        self.mesh.connect(api)

    async def _end(self) -> None:
        server = [self._server] if self._server is not None else []
        await asyncio.gather(*(node.kill() for node in (*self._nodes.values(), *server)))
        self._reserved.close()

    async def _make_broker(self, name: NodeId, broker_settings: Mapping[str, str]) -> Node:
        self._data_of(name).mkdir(parents=True, exist_ok=True)
        properties = self._folder_of(name) / "server.properties"
        settings.write(properties, broker_settings)
        return self._process(name, self._commands.broker(properties, self._plan.mutants))

    def _process(self, name: NodeId, argv: Sequence[str], **environment: str) -> Process:
        assert self._registry is not None, "the registry has been created"
        folder = self._folder_of(name)
        return Process(
            name, argv, folder, self._registry, self.unexpected_exits.append, environment
        )

    def _data_of(self, name: NodeId) -> Path:
        return self._folder_of(name) / "data"

    def _host_of(self, name: NodeId) -> str:
        return HOST

    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint | None:
        if wanted.opener != CLIENTS or wanted.acceptor not in self.client_ports:
            return None
        address = Address(HOST, self.client_ports[wanted.acceptor])
        return ProxyEndpoint(binds=address, inside=address, outside=address)

    def _past(self, node: NodeId, listener: str) -> Address:
        return Address(HOST, self._ports[node][listener])
