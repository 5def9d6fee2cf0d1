"""Disconnects a node from its network, and connects it again with its old address."""

from harness.cluster.containers.container import Container
from harness.cluster.containers.container_spec import endpoint_of
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.network import Network
from model.roles import NodeId


class NetworkAttachment:
    """The connections of a network's nodes; a disconnected node stays so when it is restarted."""

    def __init__(self, engine: Engine, network: Network) -> None:
        self._engine = engine
        self._network = network
        self._pulled: set[NodeId] = set()

    async def pull(self, node: Container) -> None:
        self._pulled.add(node.name)
        if await self.is_in(node):
            api = self._engine.client.api
            await self._engine.call(
                api.disconnect_container_from_network, node.identity, self._network.identity
            )

    async def put_back(self, node: Container) -> None:
        """Connect a node with its old name and address; no effect if it was not disconnected."""
        if node.name not in self._pulled:
            return
        self._pulled.discard(node.name)
        if not await self.is_in(node):
            api = self._engine.client.api
            await self._engine.call(
                api.connect_container_to_network,
                node.identity,
                self._network.identity,
                **endpoint_of(node.name, self._network),
            )

    async def keep_out(self, node: Container) -> None:
        """Disconnect a node again after its start, at which some engines connect it."""
        if node.name in self._pulled:
            await self.pull(node)

    def is_pulled(self, node: NodeId) -> bool:
        """Return whether the node was disconnected, according to this object's own records."""
        return node in self._pulled

    async def is_in(self, node: Container) -> bool:
        """Measure whether the engine has the node on the network."""
        networks = (await node.inspect())["NetworkSettings"]["Networks"]
        identities = {name: found["NetworkID"] for name, found in networks.items()}
        return self._network.identity in (*identities, *identities.values())
