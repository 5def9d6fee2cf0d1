"""A cluster that the user runs: its faults are hooks of the cluster file, its state is measured.

The classes after :class:`ExternalCluster` each add one capability. The class of a run's cluster
combines those for which the file has hooks (:mod:`harness.cluster.external.kinds`).
"""

import asyncio
import logging
import random
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.cluster.address import Address
from harness.cluster.external import cluster_file
from harness.cluster.external.hooks import (
    STATUS_DISCONNECTED,
    STATUS_PAUSED,
    Call,
    HookError,
    Outcome,
    Runner,
    filled,
)
from harness.cluster.external.own_names import OwnView, is_internal, remove_names
from harness.cluster.external.survey import Survey, surveyed
from harness.cluster.external.undo_record import LOG, UndoRecord
from harness.cluster.node import ClusterError
from harness.cluster.observe import cluster_config, probe
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.probe import protocol_of
from harness.cluster.observe.readiness import TOPIC, until_writable_on_any_release
from harness.cluster.observed_cluster import Answers, ObservedCluster
from harness.cluster.polling import until
from model import roles
from model.capabilities.control_plane import Partition
from model.cluster_facts import ClusterFacts
from model.connection import Connection
from model.link_faults import LinkFaults
from model.plan import Plan
from model.roles import Coordinated, NodeId

log = logging.getLogger(__name__)

READY_S = 60.0
"""How long a topic may take to become writable at the start."""
PROBE_S = 2.0
"""How long a healthy node may take to answer."""
SILENT_S = 0.5
"""A node that was paused counts as frozen if it leaves a probe unanswered for so long."""
GONE_S = 10.0
"""How long a killed or stopped node may take to end after its hook."""
FILE = "external.json"
DOWN, PAUSED, CUT, OFF = "down", "paused", "cut", "disconnected"
"""What hooks do to nodes and links, as the record of pending changes names it."""
_NOT_RUNNING = (1, 3)
"""The exit statuses of ``status`` for a node that does not run (3 as in LSB's init scripts)."""
_RUNNING = (0, STATUS_PAUSED, STATUS_DISCONNECTED)


class ExternalCluster(ObservedCluster):
    """A user's cluster without any fault."""

    def __init__(self, plan: Plan, folder: Path, rng: random.Random) -> None:
        """Prepare a run against the cluster of the command line; ``folder`` is the run's."""
        loaded = cluster_file.selected()
        assert loaded is not None, "the plan was resolved with a cluster file"
        self._survey: Survey = surveyed(loaded)
        super().__init__(self._survey.layout)
        self._file = loaded
        self._folder = folder
        self.prefix = f"faultline-{secrets.token_hex(4)}-"
        """The beginning of the names of all topics, groups and transactional ids of the run."""
        self._record: UndoRecord | None = None
        self._cuts: Counter[tuple[NodeId, NodeId]] = Counter()
        self._paused: set[NodeId] = set()
        self._off: set[NodeId] = set()

    # --- Cluster

    async def start(self) -> None:
        """Return once a topic of the run can be written; raises :class:`ClusterError`."""
        self._record = UndoRecord(self._folder / LOG, self._file.observed, self.prefix)
        self._write_description()
        addresses = {broker: self.direct(broker) for broker in self.brokers}
        view = KafkaView(addresses, quorum_node_of=self._quorum_node)
        self._view = OwnView(view, self.prefix)
        try:
            await self._connect()
            async with asyncio.timeout(READY_S):
                topic = f"{self.prefix}{TOPIC}"
                await until_writable_on_any_release(view, addresses, topic)
        except TimeoutError:
            await self.stop()
            raise ClusterError(
                f"no replicated topic could be written within {READY_S:g} s: the brokers of the"
                f" cluster file must all run, at {', '.join(map(str, addresses.values()))}"
            ) from None
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Undo everything that is broken, and remove the topics and groups of the run.

        What fails is logged; the next command tries again to undo what is broken.
        """
        if self._record is None:
            return
        failed = await self.undo_all()
        try:
            removed = await remove_names(self._file.observed, self.prefix)
        finally:
            if self._view is not None:
                await self._view.close()
            self._record.close()
        for each in (*failed, *removed.left):
            log.error("the cluster is not as it was before the run: %s", each)

    async def recover(self, timeout_s: float) -> bool:
        """Undo what is still broken; wait until the run's partitions are whole."""
        failed = await self.undo_all()
        try:
            async with asyncio.timeout(timeout_s):
                await until(self.is_whole)
        except TimeoutError:
            return False
        return not failed

    def bootstrap(self, client: str | None = None) -> str:
        return ",".join(self._file.content.bootstrap)

    def connection(self) -> Connection:
        """What clients need: the settings of the file, and the prefix of the run."""
        return Connection(self.bootstrap(), self._file.properties, self.prefix)

    def direct(self, node: NodeId) -> Address:
        """The address of a node in the file, or the one that the broker advertises."""
        address = self._survey.address(node)
        if address is None:
            raise ClusterError(f"the cluster file has no address of {node}")
        return address

    # --- HasFacts

    async def facts(self, topics: Sequence[str]) -> ClusterFacts | None:
        """What the cluster reports; the run's topics have the names of the history."""
        addresses = {broker: self.direct(broker) for broker in self.brokers}
        facts = await cluster_config.read(addresses, [f"{self.prefix}{name}" for name in topics])
        own = {name.removeprefix(self.prefix): row for name, row in facts.topics.items()}
        unread = tuple(line.replace(self.prefix, "") for line in facts.unread)
        return msgspec.structs.replace(facts, topics=own, unread=unread)

    # --- HasProcesses

    async def is_running(self, node: NodeId) -> bool:
        """Measure whether a node runs: it answers, or else the hook ``status`` says so.

        Without this hook, a node runs whose port is open.
        """
        has_status = self._file.hook(node, "status") is not None
        if self._survey.address(node) is not None:
            sign = await probe.sign(self.direct(node), protocol_of(node), SILENT_S)
            if sign == "answer" or not has_status:
                return sign != "end"
        return await self._status(node) in _RUNNING

    async def is_paused(self, node: NodeId) -> bool:
        """Measure whether a node that this run has paused leaves a probe unanswered.

        Whether another node is frozen, or why a node is silent, cannot be measured from outside. Of
        a node without an address, the hook ``status`` says whether it is.
        """
        if node not in self._paused:
            return False
        if self._survey.address(node) is None:
            return await self._status(node) == STATUS_PAUSED
        sign = await probe.sign(self.direct(node), protocol_of(node), SILENT_S)
        if sign != "silence" and not self._undo.is_broken(PAUSED, node):
            self._paused.discard(node)
        return sign == "silence"

    # --- HasLinks

    async def answers(self, node: NodeId) -> bool:
        if self._survey.address(node) is None:
            return await self._status(node) == 0
        return await probe.answers(self.direct(node), protocol_of(node), PROBE_S)

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        one, other = self.layout.node_of(one), self.layout.node_of(other)
        cut = self._cuts[one, other] + self._cuts[other, one] > 0
        return LinkFaults(cut=cut, disconnected=bool({one, other} & self._off))

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure nothing: without hooks for links, none is ever cut."""
        node = target if target in self.nodes else source
        return False if await self.answers(node) else None

    # --- HasRoles, CanAdminister: under the names on the brokers

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        return await super().coordinator(of, f"{self.prefix}{name}")

    async def partitions(self) -> Sequence[Partition]:
        """The partitions of the run; those of coordinators serve other users, too."""
        return [each for each in await super().partitions() if not is_internal(each.key)]

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Answers:
        named = {f"{self.prefix}{key}": nodes for key, nodes in wanted.items()}
        return self._unprefixed(await super().reassign(named))

    async def elect_preferred(self, keys: Sequence[str]) -> Answers:
        named = [f"{self.prefix}{key}" for key in keys]
        return self._unprefixed(await super().elect_preferred(named))

    def _unprefixed(self, answers: Answers) -> Answers:
        return {key.removeprefix(self.prefix): error for key, error in answers.items()}

    async def _ask_controller(
        self, ask: Callable[[Address], Coroutine[Any, Any, Answers]]
    ) -> Answers:
        """Ask the controller; a controller that is no broker is asked through any broker."""
        controller = await self.controller()
        if controller is None:
            return {}
        at = controller if controller in self.brokers else (await self.view.live())[0]
        return await ask(self.direct(at))

    # --- hooks

    async def undo_all(self) -> list[str]:
        """Undo every change that is left, the latest first; return what failed.

        A failure does not prevent the others.
        """
        failed = []
        for (what, where), call in self._undo.left:
            try:
                if what != DOWN or not await self.is_running(where):
                    await self._runner.succeed(call)
            except ClusterError as error:
                failed.append(str(error))
            else:
                self._undo.heals(what, where)
        if not failed:
            self._cuts.clear()
            self._off.clear()
        return failed

    @property
    def _undo(self) -> UndoRecord:
        assert self._record is not None, "the cluster has been started"
        return self._record

    @property
    def _runner(self) -> Runner:
        undo = self._undo
        return Runner(self._folder / LOG, undo.hook_started, undo.hook_ended)

    def _call(self, verb: str, node: NodeId, peer: NodeId = "") -> Call:
        """Return a hook of the file for this node."""
        hook = self._file.hook(node, verb) or (peer and self._file.hook(peer, verb))
        if not hook:
            raise HookError(f"the cluster file has no hook for {verb} of {node}")
        number = node.rpartition("-")[2] if "-" in node else "1"
        return Call(
            what=" ".join(filter(None, (verb, node, peer))),
            hook=filled(hook, {"node": node, "id": number, "peer": peer}),
            folder=str(self._file.folder),
            timeout_s=self._file.content.hook_timeout_s,
        )

    async def _status(self, node: NodeId) -> int:
        """Return the exit status of the hook ``status``."""
        outcome = await self._runner.run(self._call("status", node))
        status = 0 if outcome.succeeded else outcome.status
        if status not in (*_RUNNING, *_NOT_RUNNING):
            raise HookError(
                f"the hook status {node} must end with 0 or 1, not {status}: {outcome.last_line}"
            )
        return status

    async def _break(self, what: str, verbs: tuple[str, str], node: NodeId, peer: str = "") -> None:
        """Run the first of two hooks, which the second one undoes."""
        verb, undo = verbs
        where = f"{node} {peer}".strip()
        call = self._call(verb, node, peer)
        self._undo.breaks(what, where, self._call(undo, node, peer))
        await self._runner.succeed(call)

    async def _heal(self, what: str, undo: str, node: NodeId, peer: str = "") -> None:
        await self._runner.succeed(self._call(undo, node, peer))
        self._undo.heals(what, f"{node} {peer}".strip())

    # --- implementation

    async def _connect(self) -> None:
        """Connect to what carries the links, if the harness must."""

    async def _has_returned(self, node: NodeId) -> None:
        """Restore the faults that have ended with the old network of a node."""

    def _quorum_node(self, number: int) -> NodeId:
        broker = roles.broker(number)
        return broker if broker in self.brokers else roles.controller(number)

    def _write_description(self) -> None:
        described = {
            "cluster_file": self._file.path.name,
            "sha256": self._file.digest,
            "bootstrap": self._file.content.bootstrap,
            "client": self._file.masked_properties,
            "prefix": self.prefix,
        }
        encoded = msgspec.json.format(msgspec.json.encode(described), indent=2)
        (self._folder / FILE).write_bytes(encoded + b"\n")


class StartsNodes(ExternalCluster):
    """A cluster whose nodes can be started by hooks."""

    async def start_node(self, node: NodeId) -> None:
        """Start a node and wait until it answers; other faults may prevent that."""
        await self._heal(DOWN, "start", node)
        await self._has_returned(node)
        try:
            async with asyncio.timeout(self._file.content.answer_timeout_s):
                await until(lambda: self.answers(node))
        except TimeoutError:
            return

    async def _ends(self, node: NodeId) -> bool:
        """Wait until a node has ended; return whether it has in time."""

        async def has_ended() -> bool:
            return not await self.is_running(node)

        try:
            async with asyncio.timeout(GONE_S):
                await until(has_ended)
        except TimeoutError:
            return False
        return True


class Kills(StartsNodes):
    """Kills nodes."""

    async def kill(self, node: NodeId) -> None:
        """Kill a node, and wait until it has ended."""
        await self._break(DOWN, ("kill", "start"), node)
        await self._ends(node)


class Restarts(StartsNodes):
    """Stops nodes in an orderly way."""

    async def stop_node(self, node: NodeId) -> int:
        """Return 0 if the hook succeeded and the node has ended."""
        await self._break(DOWN, ("stop", "start"), node)
        if not await self._ends(node):
            raise HookError(f"the hook stop {node} succeeded, but the node still runs")
        return 0


class Pauses(ExternalCluster):
    """Freezes nodes."""

    async def pause(self, node: NodeId) -> None:
        self._paused.add(node)
        await self._break(PAUSED, ("pause", "resume"), node)

    async def resume(self, node: NodeId) -> None:
        await self._heal(PAUSED, "resume", node)


class Cuts(ExternalCluster):
    """Cuts links by hooks. The hook ``reach`` measures whether one node reaches another."""

    async def cut(self, source: NodeId, target: NodeId) -> None:
        pair = self._pair(source, target)
        self._cuts[pair] += 1
        if self._cuts[pair] > 1:
            return
        try:
            await self._break(CUT, ("cut", "heal"), *pair)
        except ClusterError:
            self._cuts[pair] -= 1
            raise

    async def heal(self, source: NodeId, target: NodeId) -> None:
        pair = self._pair(source, target)
        if self._cuts[pair] > 1:
            self._cuts[pair] -= 1
        elif self._cuts[pair]:
            await self._heal(CUT, "heal", *pair)
            del self._cuts[pair]

    async def heal_all(self) -> None:
        for pair in [pair for pair, count in self._cuts.items() if count]:
            self._cuts[pair] = 1
            await self.heal(*pair)

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        ends = {*self._pair(one, other)}
        return len(ends) == 2 and ends <= {*self.nodes, roles.CLIENTS}

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure whether ``reach`` fails although the target answers past the link."""
        source, target = self._pair(source, target)
        node = target if target in self.nodes else source
        if not await self.answers(node):
            return None
        return not (await self._reaches(source, target)).succeeded

    async def _reaches(self, source: NodeId, target: NodeId) -> Outcome:
        return await self._runner.run(self._reach_call(source, target))

    def _reach_call(self, source: NodeId, target: NodeId) -> Call:
        """Return the hook of the node that is no client; the other end is the peer."""
        ends = (source, target) if source in self.nodes else (target, source)
        return self._call("reach", *ends)

    def _pair(self, one: NodeId, other: NodeId) -> tuple[NodeId, NodeId]:
        """The two nodes of a link, whichever of their listeners it leads to."""
        return self.layout.node_of(one), self.layout.node_of(other)


class Disconnects(ExternalCluster):
    """Takes nodes off the network."""

    async def disconnect(self, node: NodeId) -> None:
        self._off.add(node)
        await self._break(OFF, ("disconnect", "reconnect"), node)

    async def reconnect(self, node: NodeId) -> None:
        """Reconnect a node that this run has disconnected."""
        if node in self._off:
            await self._heal(OFF, "reconnect", node)
            self._off.discard(node)
            await self._has_returned(node)

    async def is_disconnected(self, node: NodeId) -> bool:
        """Measure whether a node that runs leaves a probe unanswered."""
        return await self.is_running(node) and not await self.answers(node)
