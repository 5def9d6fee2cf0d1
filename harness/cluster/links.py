"""Which links a cluster needs: who opens connections to whom, and to which of its listeners."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from harness.cluster.settings import PEER_LISTENER, client_listener
from model import roles
from model.roles import CLIENTS, ZOOKEEPER, NodeId

HARNESS: NodeId = "harness"
"""The party that watches. No fault touches its links, so they lead past the mesh."""


class Wanted(NamedTuple):
    """A link to be made."""

    opener: NodeId
    acceptor: NodeId
    listener: str
    """The acceptor's, by name; ZooKeeper has one, called as itself."""


def refusal(clients: Any) -> str | None:
    """Why the option ``client_listeners`` will not do; ``None`` when it does."""
    named = isinstance(clients, list | tuple) and all(_is_name(name) for name in clients)
    if named and len({name.upper() for name in clients}) == len(clients):
        return None
    return f'options: client_listeners={clients}: must be a list of names, each once: ["alice"]'


def _is_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name) is not None


def listeners(clients: Sequence[str]) -> tuple[str, ...]:
    """The listeners of every broker, the one of all clients first."""
    return (*(client_listener(name) for name in (None, *clients)), PEER_LISTENER)


def between(brokers: Sequence[NodeId], clients: Sequence[str]) -> Iterator[Wanted]:
    """The links that faults may touch; ``clients`` are those that have links of their own."""
    for broker in brokers:
        for name in (None, *clients):
            party = CLIENTS if name is None else roles.client(name)
            yield Wanted(party, broker, client_listener(name))
        for peer in brokers:
            if peer != broker:
                yield Wanted(peer, broker, PEER_LISTENER)
        yield Wanted(broker, ZOOKEEPER, ZOOKEEPER)


def watching(brokers: Sequence[NodeId]) -> Iterator[Wanted]:
    """The links of the harness itself, where it cannot reach the nodes without."""
    yield Wanted(HARNESS, ZOOKEEPER, ZOOKEEPER)
    for broker in brokers:
        yield Wanted(HARNESS, broker, client_listener(None))
