"""The target ``processes``: all nodes as processes of this machine, behind a mesh.

The start of a cluster first ends processes that killed harnesses have left behind.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.cluster.address import Address
from harness.cluster.certified_cluster import CertifiedCluster
from harness.cluster.links import LinkSpec
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.intercepted_cluster import InterceptedCluster
from harness.cluster.mesh.toxiproxy import ProxyEndpoint
from harness.cluster.node import Node, NodeError
from harness.cluster.observe import probe
from harness.cluster.ports import HOST, Ports, Subnet
from harness.cluster.process import Process
from harness.cluster.registry import Registry, reap
from harness.cluster.settings import CLIENT_LISTENER
from harness.cluster.system import MakeView, Place, Program, Ready, System
from model.plan import Plan
from model.roles import CLIENTS, NodeId


class Processes(InterceptedCluster, CertifiedCluster):
    """A cluster of local processes."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        system: System,
        make_view: MakeView | None = None,
        ready: Ready | None = None,
        state: Path | None = None,
    ) -> None:
        """As :class:`InterceptedCluster`; for tests, also another folder for the registry."""
        super().__init__(plan, folder, rng, system=system, make_view=make_view, ready=ready)
        self._state = state
        self._reserved = Ports()
        self._subnet: Subnet | None = None
        self._registry: Registry | None = None
        self._server: Process | None = None

    async def is_running(self, node: NodeId) -> bool:
        """Measure whether the node's process runs, or its port accepts connections."""
        return await super().is_running(node) or await probe.accepts(self.direct(node))

    def write_scripts(self, marks: Mapping[str, str]) -> None:
        """Write for each node how to start it again; see :meth:`Process.write_script`."""
        assert self._registry is not None, "the cluster has been started"
        for node in self._nodes.values():
            assert isinstance(node, Process), "every node is a process"
            node.write_script({**self._registry.environment, **marks})

    # --- implementation

    async def _prepare(self) -> None:
        await asyncio.to_thread(reap, self._state)

    async def _begin(self) -> None:
        nodes = self._folder / "nodes"
        nodes.mkdir(parents=True, exist_ok=True)
        self._registry = Registry(self._folder.name, self._state, nodes / "pids.json")
        self._reserve_ports()
        for name in self.brokers:
            self._data_of(name).mkdir(parents=True, exist_ok=True)
        self._issue_certificates()
        self._server = self._process("toxiproxy", toxiproxy.command(), toxiproxy.ENVIRONMENT)
        self.mesh.connect(await toxiproxy.serve(self._server))

    def _reserve_ports(self) -> None:
        """Choose the ports of all listeners; those of one listener are equal in a subnet."""
        listeners = {name: self._system.listeners(name, self._plan) for name in self.nodes}
        if self._system.reuses_ports:
            for name, wanted in listeners.items():
                self._ports[name] = {listener: self._reserved.reserve() for listener in wanted}
            return
        self._subnet = subnet = Subnet()
        ports = {each: subnet.port() for each in dict.fromkeys(sum(listeners.values(), ()))}
        for name, wanted in listeners.items():
            self._ports[name] = {listener: ports[listener] for listener in wanted}

    async def _end(self) -> None:
        server = [self._server] if self._server is not None else []
        await asyncio.gather(*(node.kill() for node in (*self._nodes.values(), *server)))
        self._reserved.close()
        if self._subnet is not None:
            self._subnet.close()

    async def _make_node(self, place: Place) -> Node:
        self._data_of(place.node).mkdir(parents=True, exist_ok=True)
        program = self._system.program(place, self._plan)
        if program.first:
            await self._run_first(place.node, program)
        return self._process(place.node, program.argv, program.environment, program.stopped_status)

    async def _run_first(self, name: NodeId, program: Program) -> None:
        """Run the command that must end before the first start of a node."""
        before = self._process(name, program.first, program.environment)
        before.expects_end()
        await before.start()
        try:
            status = await before.ended()
        finally:
            await before.kill()  # the start may be cancelled meanwhile
        if status:
            last = await before.last_line()
            raise NodeError(f"{name} could not be set up (status {status}): {last}")

    def _process(
        self,
        name: NodeId,
        argv: Sequence[str],
        environment: Mapping[str, str],
        stopped_status: int = 0,
    ) -> Process:
        assert self._registry is not None, "the registry has been created"
        return Process(
            name,
            argv,
            self._folder_of(name),
            self._registry,
            self.unexpected_exits.append,
            environment,
            stopped_status,
        )

    def _data_of(self, name: NodeId) -> Path:
        return self._folder_of(name) / "data"

    def _host_of(self, name: NodeId) -> str:
        return HOST if self._subnet is None else self._subnet.node(self._index(name))

    def _listens(self, name: NodeId, port: int) -> Address:
        return Address(self._host_of(name), port)

    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint | None:
        if wanted.by_name and self._subnet is not None:
            node = self.layout.node_of(wanted.acceptor)
            host = self._subnet.link(self._index(wanted.opener), self._index(node))
            address = Address(host, self._ports[node][wanted.listener])
        elif wanted.opener == CLIENTS and wanted.acceptor in self.client_ports:
            address = Address(HOST, self.client_ports[wanted.acceptor])
        else:
            return None
        return ProxyEndpoint(binds=address, inside=address, outside=address)

    def _names_of(self, name: NodeId) -> Mapping[str, str]:
        if self._subnet is None:
            return {}
        names: dict[str, str] = {}
        for link in self.mesh.links:
            if link.opener == name:
                host = self._entrance(link).host
                names |= dict.fromkeys((link.acceptor, self.layout.node_of(link.acceptor)), host)
        return names | dict.fromkeys(self.layout.ends_of(name), self._host_of(name))

    def _index(self, node: NodeId) -> int:
        """The number of a node in the cluster's subnet."""
        return 1 + self.nodes.index(node)

    def _guarded(self, node: NodeId) -> Address:
        return self._past(node, CLIENT_LISTENER)

    def _certified_hosts(self, node: NodeId) -> Sequence[str]:
        return [self._host_of(node)]

    def _past(self, node: NodeId, listener: str) -> Address:
        return Address(self._host_of(node), self._ports[node][listener])
