"""The base of the targets that start their nodes, however these run and are linked.

A target adds how its nodes are created and linked, and how everything is removed.
"""

import abc
import asyncio
import contextlib
import functools
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.cluster import ensembles
from harness.cluster.address import Address
from harness.cluster.node import ClusterError, Exit, Node, NodeError
from harness.cluster.observe import ensemble_view
from harness.cluster.observe.ensemble_view import NoMetadata
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.readiness import until_writable
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.observed_cluster import ObservedCluster
from harness.cluster.polling import EVERY_S, until
from harness.cluster.system import MakeView, Ready
from model.layout import Layout
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId


def _view(rng: random.Random, nodes: Mapping[NodeId, Address]) -> MetadataView:
    """Return the view of brokers that ZooKeeper coordinates; without brokers there is none."""
    servers = [str(at) for node, at in nodes.items() if node.startswith(ZOOKEEPER)]
    return View(",".join(servers), rng) if len(servers) < len(nodes) else NoMetadata()


ENSEMBLE_EVERY_S = 0.2
"""How often an ensemble is asked for its roles; Java's servers log each question."""
CONTROLLER_FIRST = "controller_first"
"""The option of a plan that starts the first broker alone, so that it becomes the controller."""


def refusal(options: Mapping[str, Any]) -> str | None:
    """Return why an option of all clusters is invalid; ``None`` if they are valid."""
    first = options[CONTROLLER_FIRST]
    if isinstance(first, bool):
        return None
    return f"options: {CONTROLLER_FIRST}={first}: must be true or false"


class BaseCluster(ObservedCluster):
    """Brokers and a ZooKeeper that can be started, stopped, frozen and inspected."""

    START_TIMEOUT_S: float = 0.0
    """How long the whole cluster may take to become ready."""
    ANSWER_TIMEOUT_S: float = 4.0
    """How long a restarted node may take to answer before the harness continues."""
    STOP_TIMEOUT_S: float = 12.0
    """How long a node may take to end after SIGTERM: a controlled shutdown promises 10 s."""
    LOOK_EVERY_S: ClassVar[float] = EVERY_S
    """How often a starting node is probed."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        layout: Layout | None = None,
        make_view: MakeView | None = None,
        ready: Ready = until_writable,
    ) -> None:
        """Prepare a cluster without starting it.

        ``folder`` is the run's; ``rng`` is for the view's ZooKeeper sessions. ``layout`` are its
        nodes: by default the plan's brokers and one ZooKeeper. The view of the metadata and the
        criterion of readiness are those of the system.
        """
        super().__init__(layout or ensembles.layout(plan))
        self._plan = plan
        self._folder = folder
        self._make_view = make_view or functools.partial(_view, rng)
        self._ready = ready
        self._nodes: dict[NodeId, Node] = {}
        self.unexpected_exits: list[Exit] = []
        """Nodes that exited unexpectedly."""
        self.revived: set[NodeId] = set()
        """Nodes that were down when the recovery began, and were started by it."""

    # --- implemented by targets

    @abc.abstractmethod
    async def _prepare(self) -> None:
        """Do what may take long, before the time limit of the start begins."""

    @abc.abstractmethod
    async def _make_nodes(self) -> None:
        """Create every node and the links between them, without starting a node."""

    @abc.abstractmethod
    async def _end(self) -> None:
        """Stop and remove everything that has been created so far."""

    @abc.abstractmethod
    def bootstrap(self, client: str | None = None) -> str:
        """Return ``host:port,…`` for clients; ``client`` selects that client's own listeners."""

    @abc.abstractmethod
    async def _answers(self, node: NodeId) -> bool:
        """Return whether the node answers a probe that bypasses all faults."""

    # --- Cluster

    async def start(self) -> None:
        """Return once the cluster is ready; on failure, stop it and raise :class:`ClusterError`."""
        try:
            await self._prepare()
            async with asyncio.timeout(self.START_TIMEOUT_S):
                await self._start()
                if brokers := {name: self.direct(name) for name in self.brokers}:
                    await self._ready(self.view, brokers)
                    await self._admit_clients()
        except TimeoutError:
            reason = self._what_failed() or "no node has exited"
            await self.stop()
            raise ClusterError(
                f"the cluster was not ready after {self.START_TIMEOUT_S:g} s: {reason}"
            ) from None
        except OSError as error:
            await self.stop()
            raise ClusterError(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        try:
            if self._view is not None:
                await self._view.close()
        finally:
            await self._end()

    async def recover(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                for name in self.nodes:
                    if not await self._nodes[name].is_up():
                        self.revived.add(name)
                        await self.start_node(name)
                every_s = ENSEMBLE_EVERY_S if self.layout.is_ensemble else EVERY_S
                await until(self.is_whole, every_s)
        except (TimeoutError, ClusterError):
            return False
        return True

    def settle_data(self, *, keep: bool) -> None:
        """Keep the nodes' data, or remove them from runs that need no second look."""
        for name in () if keep else self.nodes:
            shutil.rmtree(self._folder_of(name) / "data", ignore_errors=True)

    # --- CanKill, CanRestart, CanPause

    async def kill(self, node: NodeId) -> None:
        await self._nodes[node].kill()

    async def start_node(self, node: NodeId) -> None:
        """Start a node and wait until it answers, for a few seconds: other faults may prevent that.

        Raises :class:`NodeError` when it ends.
        """
        await self._may_start_again(node)
        await self._nodes[node].start()
        await self._answering(node, self.ANSWER_TIMEOUT_S)

    async def stop_node(self, node: NodeId) -> int:
        return await self._nodes[node].stop(self.STOP_TIMEOUT_S)

    async def is_running(self, node: NodeId) -> bool:
        return await self._nodes[node].is_up()

    async def pause(self, node: NodeId) -> None:
        await self._nodes[node].pause()

    async def resume(self, node: NodeId) -> None:
        await self._nodes[node].resume()

    async def is_paused(self, node: NodeId) -> bool:
        return await self._nodes[node].is_paused()

    # --- CanCut

    async def answers(self, node: NodeId) -> bool:
        return await self._answers(node)

    # --- implementation

    async def _admit_clients(self) -> None:
        """Let clients use a cluster that is ready; by default they may at once."""

    async def _may_start_again(self, node: NodeId) -> None:
        """Wait until a node that has ended may be started again; by default it may at once."""

    def _folder_of(self, name: NodeId) -> Path:
        return self._folder / "nodes" / name

    async def _start(self) -> None:
        await self._make_nodes()
        for name in self.layout.zookeepers:
            await self._nodes[name].start()
        for name in self.layout.zookeepers:
            await self._answering(name, self.START_TIMEOUT_S)
        if self.layout.is_ensemble:
            await until(self._has_ensemble, ENSEMBLE_EVERY_S)
        names = (*self.layout.separate, *self.brokers)
        if self._plan.options.get(CONTROLLER_FIRST):
            first, *rest = names
            await self._start_controller(first)
            await self._start_brokers(rest)
        else:
            await self._start_brokers(names)
            self._open_view()
        await asyncio.gather(*(self._answering(name, self.START_TIMEOUT_S) for name in names))

    async def _has_ensemble(self) -> bool:
        if any(end.node in self.layout.zookeepers for end in self.unexpected_exits):
            raise NodeError(self._what_failed())
        return ensemble_view.is_whole(self.layout, await self.zookeepers())

    async def _start_brokers(self, names: Sequence[NodeId]) -> None:
        await asyncio.gather(*(self._nodes[name].start() for name in names))

    async def _start_controller(self, first: NodeId) -> None:
        """Start one broker, and wait until it is the controller; the caller limits the time."""
        await self._nodes[first].start()
        await self._answering(first, self.START_TIMEOUT_S)
        self._open_view()

        async def controls() -> bool:
            return await self.controller() == first

        await until(controls, self.LOOK_EVERY_S)

    def _open_view(self) -> None:
        self._view = self._make_view({name: self.direct(name) for name in self.nodes})

    async def _answering(self, name: NodeId, patience_s: float) -> None:
        node = self._nodes[name]

        async def answers() -> bool:
            if not await node.is_up():
                raise NodeError(f"{name} exited while it started: {await node.last_line()}")
            return await self._answers(name)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await until(answers, self.LOOK_EVERY_S)

    def _what_failed(self) -> str:
        return "; ".join(
            f"{end.node} exited with {end.status}: {end.last_line}" for end in self.unexpected_exits
        )
