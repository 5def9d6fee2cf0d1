"""The hooks of a cluster file with ``[compose]``: ``python -m … VERB PROJECT NODE [PEER]``.

Each call is a process of its own, as with other hooks. Exit status: 0 for success, and 2 with a
line that says why for failure. ``status`` ends with 3 for a container that does not run, 150 for
one that is paused and 151 for one without networks; ``reach`` with 4 if the peer is not reached,
and with 5 if that cannot be decided because a container does not run or has no network.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence

from harness.cluster.containers.container import Container
from harness.cluster.containers.engine import Engine, EngineError, connect
from harness.cluster.containers.helper_container import (
    HOST_NETWORK,
    HelperContainers,
    beside,
)
from harness.cluster.external import compose, link_probe, link_rules
from harness.cluster.external.compose import ComposeNode
from harness.cluster.external.endpoints import Endpoints
from harness.cluster.external.hooks import STATUS_DISCONNECTED, STATUS_PAUSED
from harness.cluster.node import ClusterError, NodeError
from model.roles import CLIENTS, NodeId

IMAGE = "faultline-node:latest"
"""The image of helper containers, which the harness builds before the run."""
FAILED, NOT_RUNNING, NO, UNDECIDED = 2, 3, 4, 5
"""Exit statuses. Python itself ends with 1, which therefore means neither of the last three."""
HEALING = ("start", "resume", "heal", "reconnect")
"""A container that has been removed needs none of these any more."""
STOP_MARGIN_S = 5.0
"""How long before the time limit of the hook a container that does not stop is killed."""
_KILLED = -9
_ROOT, _UNPRIVILEGED = "0:0", "10001:10001"


class Gone(ClusterError):
    """No container has the label of a node."""


class ContainerHooks:
    """Applies faults to the containers of a compose project, heals and measures them."""

    def __init__(
        self,
        engine: Engine,
        project: str,
        nodes: Mapping[NodeId, ComposeNode],
        limit_s: float,
    ) -> None:
        """``limit_s`` is the time limit of the hook."""
        self._engine = engine
        self._project = project
        self._nodes = nodes
        self._limit_s = limit_s

    async def run(self, verb: str, node: NodeId, peer: NodeId | None = None) -> int:
        """Run the hook for a verb, and return its exit status."""
        match verb:
            case "kill":
                await self._container(node).kill()
            case "start":
                await self._start(node)
            case "stop":
                await self._stop(node)
            case "pause":
                await self._container(node).pause()
            case "resume":
                container = self._container(node)
                if await container.is_paused():
                    await container.resume()
            case "status":
                return await self._status(node)
            case "disconnect":
                await self._endpoints(node).disconnect()
            case "reconnect":
                await self._endpoints(node).reconnect()
            case _:
                assert peer is not None, "the verbs of links have a peer"
                return await self._link(verb, node, peer)
        return 0

    async def _status(self, node: NodeId) -> int:
        state = await self._container(node).state()
        if not state.is_up:
            return NOT_RUNNING
        if state.is_paused:
            return STATUS_PAUSED
        found = self._node(node)
        return 0 if found.networks or not found.has_network else STATUS_DISCONNECTED

    async def _start(self, node: NodeId) -> None:
        container = self._container(node)
        if not await container.is_up():
            await container.start()
        await self._endpoints(node).keep_out()

    async def _stop(self, node: NodeId) -> None:
        container = self._container(node)
        if not await container.is_up():
            return
        within_s = max(1, int(self._limit_s - STOP_MARGIN_S))
        api = self._engine.client.api
        await self._engine.call(api.stop, container.identity, within_s)
        if (await container.state()).status == _KILLED:
            raise NodeError(f"{node} did not end within {within_s} s, and was killed")

    async def _link(self, verb: str, node: NodeId, peer: NodeId) -> int:
        if verb == "reach":
            return await self._reach(node, peer)
        ruled = self._node(peer if node == CLIENTS else node)
        if not await self._container(ruled.name).is_up():
            _say(f"{ruled.name} does not run, so no packets pass")
            return 0
        script = self._rules(node, peer) if verb == "cut" else _no_rules(node, peer)
        await self._run(["nft", script], ruled, rights=True)
        return 0

    def _rules(self, source: NodeId, target: NodeId) -> str:
        """Return the rules that drop what one sends to the other."""
        everyone = [each for node in self._nodes.values() for each in node.addresses]
        if source == CLIENTS:
            return link_rules.from_clients(_clients_port(self._node(target)), everyone)
        if target == CLIENTS:
            return link_rules.to_clients(_clients_port(self._node(source)), everyone)
        if self._node(target).addresses and self._node(source).addresses:
            self._shared(source, target)
        return link_rules.to_node(target, self._node(target).addresses)

    async def _reach(self, node: NodeId, peer: NodeId) -> int:
        """Probe the peer from the node's namespace; clients are probed from the engine's host."""
        for end in (node, *([] if peer == CLIENTS else [peer])):
            if not self._node(end).addresses:
                _say(f"{end} does not run, or is disconnected")
                return UNDECIDED
        if peer == CLIENTS:
            ends, probed, at = f"clients reach {node}", self._node(node), None
            port, addresses = _clients_port(probed), probed.addresses
        else:
            ends, probed, at = f"{node} reaches {peer}", self._node(peer), self._node(node)
            port = probed.ports[0] if probed.ports else link_probe.CLOSED_PORT
            addresses = self._shared(node, peer)
        command = link_probe.command(addresses, port, lists_rules=at is not None)
        found = link_probe.outcome(await self._run(command, at, rights=at is not None))
        rules = "; ".join(f"{table} dropped {count}" for table, count in found.dropped.items())
        _say(f"{ends}: {'yes' if found.answers else 'no'}{f' ({rules})' if rules else ''}")
        return 0 if found.answers else NO

    def _shared(self, one: NodeId, other: NodeId) -> tuple[str, ...]:
        """Return the addresses of the other in the networks that both are in."""
        mine, theirs = self._node(one).networks, self._node(other).networks
        shared = [network for network in theirs if network in mine]
        if not shared:
            raise NodeError(f"{one} and {other} have no network in common")
        return tuple(each for network in shared for each in theirs[network])

    async def _run(
        self, command: Sequence[str], shares: ComposeNode | None, *, rights: bool
    ) -> str:
        """Run a command in a helper container, which a later command removes if this one cannot."""
        from harness.cluster.containers import labels
        from harness.cluster.registry import Registry

        image = await self._engine.call(_image, self._engine)
        name = f"compose-{self._project}"
        helpers = HelperContainers(self._engine, image, labels.of_run(name))
        registry = Registry(name)
        registry.uses_engine(True)
        try:
            return await helpers.run(
                command,
                user=_ROOT if rights else _UNPRIVILEGED,
                network=HOST_NETWORK if shares is None else beside(shares.identity),
                capabilities=["NET_ADMIN"] if rights else [],
            )
        finally:
            registry.uses_engine(False)

    def _node(self, name: NodeId) -> ComposeNode:
        if name not in self._nodes:
            raise Gone(
                f"no container of the project {self._project} has the label {compose.NODE} = {name}"
            )
        return self._nodes[name]

    def _container(self, name: NodeId) -> Container:
        return Container(name, self._node(name).identity, self._engine, lambda end, state: None)

    def _endpoints(self, name: NodeId) -> Endpoints:
        return Endpoints(self._engine, self._project, self._node(name))


def _clients_port(node: ComposeNode) -> int:
    if node.clients_port is None:
        raise NodeError(f"the container of {node.name} has no label {compose.CLIENTS_PORT}")
    return node.clients_port


def _no_rules(source: NodeId, target: NodeId) -> str:
    if source == CLIENTS:
        return link_rules.no_rules_from_clients()
    return link_rules.no_rules_to(target)


def _image(engine: Engine) -> str:
    """Return the image of helper containers; blocks, for minutes if it has to be built."""
    from harness.cluster.containers import base_image, image

    if base_image.there(engine.client, IMAGE):
        return IMAGE
    try:
        return image.ensure(engine.client).node
    except base_image.ImageError as error:
        raise EngineError(str(error)) from error


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


async def _main(asked: argparse.Namespace) -> int:
    engine = Engine(connect(compose.USER))
    try:
        nodes = await engine.call(compose.nodes, engine.client, asked.project)
        hooks = ContainerHooks(engine, asked.project, nodes, asked.limit_s)
        return await hooks.run(asked.verb, asked.node, asked.peer)
    except Gone as gone:
        _say(str(gone))
        return 0 if asked.verb in HEALING else FAILED
    finally:
        engine.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one hook; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb")
    parser.add_argument("project")
    parser.add_argument("node")
    parser.add_argument("peer", nargs="?")
    parser.add_argument("--limit-s", type=float, default=20.0)
    try:
        return asyncio.run(_main(parser.parse_args(arguments)))
    except ClusterError as error:
        _say(str(error))
    except Exception as error:  # noqa: BLE001 - the caller must not take it for an answer
        _say(repr(error))
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
