"""A node's network cable: pulled, and put back where it was."""

from harness.cluster.container import Container
from harness.cluster.engine import Engine
from harness.cluster.network import Network
from harness.cluster.recipe import endpoint_of
from model.roles import NodeId


class Cables:
    """Those of one network. A pulled one stays out however often its node is started."""

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
        """With the name and address that it had; changes nothing where nothing was pulled."""
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
        """After a start, at which some engines put a cable back."""
        if node.name in self._pulled:
            await self.pull(node)

    def is_pulled(self, node: NodeId) -> bool:
        """Is the node's cable out, by our own records?"""
        return node in self._pulled

    async def is_in(self, node: Container) -> bool:
        """Measured: does the engine have it on the network?"""
        networks = (await node.inspect())["NetworkSettings"]["Networks"]
        identities = {name: found["NetworkID"] for name, found in networks.items()}
        return self._network.identity in (*identities, *identities.values())
