"""The base of all clusters: what their metadata shows, and what an operator can ask of them."""

import abc
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from broker_impl.coordinator.partitioner import partition_of
from harness.cluster import admin
from harness.cluster.address import Address
from harness.cluster.observe import ensemble_view
from harness.cluster.observe.metadata_view import MetadataView, ViewUnavailable
from model import roles
from model.capabilities.control_plane import EnsembleRole, Partition
from model.layout import Layout
from model.roles import Coordinated, NodeId

Result = TypeVar("Result")
Answers = Mapping[str, str]
"""Names of errors, by partition."""

COORDINATION: Mapping[Coordinated, str] = {
    "group": "__consumer_offsets",
    "transaction": "__transaction_state",
}
"""The internal topics whose partition leaders are the coordinators."""


class ObservedCluster(abc.ABC):
    """A cluster whose metadata can be read."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._view: MetadataView | None = None

    @abc.abstractmethod
    def direct(self, node: NodeId) -> Address:
        """The address where the harness reaches a node past all faults, without authentication."""

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        return self.layout.nodes

    @property
    def brokers(self) -> tuple[NodeId, ...]:
        return self.layout.brokers

    @property
    def view(self) -> MetadataView:
        assert self._view is not None, "the cluster has been started"
        return self._view

    # --- HasRoles

    async def controller(self) -> NodeId | None:
        try:
            return await self.view.controller()
        except ViewUnavailable:
            return None

    async def leader(self, key: str) -> NodeId | None:
        partition = await self._partition(key)
        return partition.leader if partition is not None else None

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        partition = await self._partition(key)
        return partition.isr if partition is not None else ()

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        topic = COORDINATION[of]
        try:
            partitions = [each for each in await self.view.partitions() if each.topic == topic]
        except ViewUnavailable:
            return None
        if not partitions:
            return None  # no client has asked for a coordinator yet
        number = partition_of(name, len(partitions))
        return {each.key: each.leader for each in partitions}.get(f"{topic}-{number}")

    # --- HasEnsemble

    async def zookeepers(self) -> Mapping[NodeId, EnsembleRole]:
        servers = {node: self.direct(node) for node in self.layout.zookeepers}
        return await self._past_faults(lambda: ensemble_view.roles_of(servers), "roles")

    # --- CanAdminister

    async def partitions(self) -> Sequence[Partition]:
        try:
            return await self.view.partitions()
        except ViewUnavailable:
            return ()

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Answers:
        numbers = {
            key: None if nodes is None else [roles.number(node) for node in nodes]
            for key, nodes in wanted.items()
        }
        return await self._ask_controller(lambda at: admin.reassign(at, numbers))

    async def elect_preferred(self, keys: Sequence[str]) -> Answers:
        return await self._ask_controller(lambda at: admin.elect_preferred(at, keys))

    async def _ask_controller(
        self, ask: Callable[[Address], Coroutine[Any, Any, Answers]]
    ) -> Answers:
        controller = await self.controller()
        if controller is None:
            return {}
        return await self._past_faults(lambda: ask(self.direct(controller)), "operator")

    async def _past_faults(
        self, work: Callable[[], Coroutine[Any, Any, Result]], name: str
    ) -> Result:
        """Do ``work`` where no fault can touch it; some targets run it in another process."""
        return await work()

    # --- HasHealth

    async def is_whole(self) -> bool:
        layout = self.layout
        if layout.is_ensemble or not layout.brokers:
            if not ensemble_view.is_whole(layout, await self.zookeepers()):
                return False
            if not layout.brokers:
                return True
        try:
            if sorted(await self.view.live()) != sorted(self.brokers):
                return False
            if await self.view.controller() is None:
                return False
            return all(partition.is_whole for partition in await self.view.partitions())
        except ViewUnavailable:
            return False

    async def registration(self, node: NodeId) -> int | None:
        if node not in self.brokers:
            return None
        try:
            found = await self.view.registration(node)
        except ViewUnavailable:
            return None
        return None if found is None else found.epoch

    async def in_sync_min(self, node: NodeId) -> int:
        try:
            partitions = await self.view.partitions()
        except ViewUnavailable:
            return 1
        return min((len(one.isr) for one in partitions if node in one.isr), default=0)

    # --- implementation

    async def _partition(self, key: str) -> Partition | None:
        try:
            return await self.view.partition(key)
        except ViewUnavailable:
            return None
