"""The links that a cluster needs: which party connects to which, at which listener."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.cluster.settings import PEER_LISTENER, client_listener
from model import roles
from model.layout import PEER_PORTS, Layout, peer_port
from model.roles import CLIENTS, ZOOKEEPER, NodeId

HARNESS: NodeId = "harness"
"""The party that observes. Its links bypass the mesh, or use proxies that no fault touches."""
GUARDED: NodeId = "harness-guarded"
"""The same party, where it connects to the listeners that a plan protects."""


class LinkSpec(NamedTuple):
    """A link to create."""

    opener: NodeId
    acceptor: NodeId
    listener: str
    """The name of the acceptor's listener; ZooKeeper's only one is called ``zookeeper``."""
    by_name: bool = False
    """Does the opener reach the acceptor by its name, at the port that the acceptor listens on?

    The name then has another IP address for each opener. Otherwise the opener is configured with an
    address of its own for the acceptor.
    """


def refusal(clients: Any) -> str | None:
    """Why the option ``client_listeners`` is invalid; ``None`` if it is valid."""
    named = isinstance(clients, list | tuple) and all(_is_name(name) for name in clients)
    if named and len({name.upper() for name in clients}) == len(clients):
        return None
    return (
        f'options: client_listeners={clients}: must be a list of different names, such as ["alice"]'
    )


def _is_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name) is not None


def listeners(clients: Sequence[str]) -> tuple[str, ...]:
    """The listeners of every broker, that of all clients first."""
    return (*(client_listener(name) for name in (None, *clients)), PEER_LISTENER)


def between(layout: Layout, clients: Sequence[str]) -> Iterator[LinkSpec]:
    """The links that faults may touch; ``clients`` are those that have their own links."""
    for broker in layout.brokers:
        yield from of_clients(broker, clients)
        for peer in layout.brokers:
            if peer != broker:
                yield LinkSpec(peer, broker, PEER_LISTENER)
        for server in layout.zookeepers:
            yield LinkSpec(broker, server, ZOOKEEPER)
    yield from of_zookeepers(layout)


def of_zookeepers(layout: Layout, *, by_name: bool = False) -> Iterator[LinkSpec]:
    """The links between the servers of an ensemble, and those of clients if there is no broker."""
    for one, other in itertools.permutations(layout.zookeepers, 2):
        for port in PEER_PORTS:
            yield LinkSpec(one, peer_port(other, port), port, by_name)
    for server in () if layout.brokers else layout.zookeepers:
        yield LinkSpec(CLIENTS, server, ZOOKEEPER)


def of_clients(broker: NodeId, clients: Sequence[str]) -> Iterator[LinkSpec]:
    """The links of all clients to a broker; ``clients`` are those that have their own."""
    for name in (None, *clients):
        party = CLIENTS if name is None else roles.client(name)
        yield LinkSpec(party, broker, client_listener(name))


def watching(listeners: Mapping[NodeId, str], guarded: Sequence[NodeId] = ()) -> Iterator[LinkSpec]:
    """The harness's own links, for targets where it cannot reach the nodes directly.

    ``listeners`` has the listener that is probed, for each node; ``guarded`` are the brokers whose
    listener for clients is another one, which a plan protects.
    """
    for node, listener in listeners.items():
        yield LinkSpec(HARNESS, node, listener)
    for node in guarded:
        yield LinkSpec(GUARDED, node, client_listener(None))
