"""Cuts of links between containers of a compose project, by rules in their network namespaces."""

import asyncio
import logging
import random
from contextlib import closing
from pathlib import Path

from harness.cluster.containers.engine import EngineError, connect
from harness.cluster.external import compose
from harness.cluster.external.cluster_file import Loaded, is_default
from harness.cluster.external.container_hooks import NO, UNDECIDED
from harness.cluster.external.external_cluster import Cuts, ExternalCluster
from harness.cluster.external.hooks import HookError
from model.capabilities.network import CanCut
from model.layout import Layout
from model.plan import Plan
from model.roles import CLIENTS, NodeId
from nemesis import catalogue

log = logging.getLogger(__name__)

_CUT = {0: False, NO: True, UNDECIDED: None}
"""Whether a link is cut, by the exit status of the default hook ``reach``."""


class ComposeCuts(Cuts):
    """Cuts links by the default hooks of containers, whose rules end with a network namespace.

    A container has a new namespace when it is started again, and other addresses when it is
    connected again. The links that are still cut are therefore cut again then.
    """

    def __init__(self, plan: Plan, folder: Path, rng: random.Random) -> None:
        super().__init__(plan, folder, rng)
        self._may_cut = any(
            CanCut in package.needs
            for name, package in catalogue.NEMESES.items()
            if name in plan.nemesis
        )

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure as other hooks do, but take no failure of the hook itself for a cut link."""
        source, target = self._pair(source, target)
        if not is_default(self._reach_call(source, target).hook):
            return await super().is_cut(source, target)
        if not await self.answers(target if target in self.nodes else source):
            return None
        outcome = await self._reaches(source, target)
        if outcome.status not in _CUT:
            raise HookError(f"the hook reach {source} {target} failed: {outcome.last_line}")
        return _CUT[outcome.status]

    async def _connect(self) -> None:
        if self._may_cut:
            await asyncio.to_thread(_build_image)

    async def _has_returned(self, node: NodeId) -> None:
        for pair in list(self._cuts):
            call = self._call("cut", *pair)
            if not is_default(call.hook) or not self._cuts[pair]:
                continue
            if node in pair or CLIENTS in pair:  # rules about clients name the nodes' addresses
                await self._runner.succeed(call)
                if not self._cuts[pair]:  # it was healed meanwhile
                    await self._runner.succeed(self._call("heal", *pair))


class NodesCuts(ComposeCuts):
    """Cuts links between nodes only, because a broker has no other listener for the harness."""

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        return CLIENTS not in (one, other) and super().has_link(one, other)

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure links of clients, which are never cut, without a hook."""
        if CLIENTS in (source, target):
            return await ExternalCluster.is_cut(self, source, target)
        return await super().is_cut(source, target)

    @classmethod
    def why_clients_stay(cls) -> str:
        """Name the label that is missing."""
        return f"not every broker's container has the label {compose.CLIENTS_PORT}"


def kind_of(loaded: Loaded, layout: Layout) -> type[Cuts]:
    """Return the class of a cluster that has hooks for links: default hooks, or the user's."""
    defaults = [each for each in layout.nodes if is_default(loaded.hook(each, "cut"))]
    if not defaults:
        return Cuts
    ports = [loaded.containers[each].clients_port for each in defaults if each in layout.brokers]
    return NodesCuts if None in ports else ComposeCuts


def _build_image() -> None:
    """Build the image of helper containers if it is missing; blocks, at most for minutes."""
    from harness.cluster.containers import image

    try:
        with closing(connect(compose.USER)) as client:
            image.ensure(client, log.warning)
    except image.ImageError as error:
        raise EngineError(str(error)) from error
