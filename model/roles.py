"""Names of nodes, and the interface of a workload's client."""

from typing import Literal, Protocol

from model.op import Op

NodeId = str
"""A node's name: ``broker-1`` … ``broker-N``, ``zookeeper``; ``clients`` stands for all clients.

The servers of a ZooKeeper ensemble are ``zookeeper-1`` …, KRaft's controllers ``controller-1`` ….
"""

Coordinated = Literal["group", "transaction"]
"""What a broker can be the coordinator of."""

CLIENTS: NodeId = "clients"
ZOOKEEPER: NodeId = "zookeeper"


def broker(number: int) -> NodeId:
    """Return the node id of the broker with this ``broker.id``; ids start at 1."""
    return f"broker-{number}"


def zookeeper(number: int) -> NodeId:
    """Return the node id of a server of a ZooKeeper ensemble; numbers start at 1."""
    return f"{ZOOKEEPER}-{number}"


def controller(number: int) -> NodeId:
    """Return the node id of a member of KRaft's controller quorum; numbers start at 1."""
    return f"controller-{number}"


def number(node: NodeId) -> int:
    """Return the number in a node's id, a broker's ``broker.id``; 1 for the only ZooKeeper."""
    return 1 if node == ZOOKEEPER else int(node.rpartition("-")[2])


def client(name: str) -> NodeId:
    """Return the node id of a client that has its own listeners, and therefore its own links."""
    return f"{CLIENTS}-{name}"


class Client(Protocol):
    """A logical process of a workload; it ends with :meth:`close` or an operation in ``info``."""

    @property
    def alive(self) -> bool:
        """False once the client must not act again, even if no operation ended in ``info``."""
        ...

    async def open(self) -> None: ...
    async def invoke(self, op: Op) -> Op:
        """Perform the operation and return ``op`` with its outcome as type, value and error.

        The interpreter sets the index and the time.
        """
        ...

    async def close(self) -> None: ...
