"""Capabilities that concern links between nodes, and the messages on these links."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from model.link_faults import LinkFaults
from model.roles import NodeId

Interception = Literal[
    "hold-request",
    "hold-response",
    "drop-request",
    "drop-response",
    "corrupt-request",
    "duplicate-request",
]
"""What can be done to a single message:

- ``hold-request``, ``hold-response``: delay the message and all that follows it on its connection;
- ``drop-request``, ``drop-response``: lose the message and reset its connection;
- ``corrupt-request``: flip one bit of the request;
- ``duplicate-request``: deliver the request twice, and only the first of the two responses.
"""


class Selection(NamedTuple):
    """The requests that an interception waits for."""

    apis: Sequence[str]
    """Names of APIs, such as ``Produce``; each will do."""
    naming: str | None = None
    """A string that the request contains: a transactional id, group, topic or member id."""


@runtime_checkable
class HasLinks(Protocol):
    """A target that knows the faults of its links, and can measure whether a node is reached."""

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        """Return the recorded effect of the active faults on the links between two nodes."""
        ...

    async def answers(self, node: NodeId) -> bool:
        """Measure whether the node answers a probe that bypasses all link faults."""
        ...

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        """Measure whether the links between two nodes are cut; ``None`` if that cannot be decided.

        They are cut if a probe through them stays unanswered although the probed node answers a
        probe that bypasses them. This cannot be decided if the node is down, or if another fault
        makes the links too slow to wait for.
        """
        ...


@runtime_checkable
class CanCut(HasLinks, Protocol):
    """A target whose links can be cut.

    Links are directed: cutting ``a → b`` drops the bytes that a sends to b, regardless of which of
    them opened the connection.
    """

    async def cut(self, source: NodeId, target: NodeId) -> None: ...
    async def heal(self, source: NodeId, target: NodeId) -> None:
        """Undo one cut; the link stays cut while another fault cuts it."""
        ...

    async def heal_all(self) -> None: ...
    def has_link(self, one: NodeId, other: NodeId) -> bool:
        """Return whether connections lead from one node to the other, or back."""
        ...


@runtime_checkable
class KeepsClients(Protocol):
    """A target that cuts links between nodes only: clients keep reaching every node."""

    @classmethod
    def why_clients_stay(cls) -> str:
        """Return why links of clients cannot be cut, as the end of a sentence."""
        ...


@runtime_checkable
class CanRefuse(Protocol):
    """A target that can close links: connections are reset at once, and new ones are refused."""

    async def refuse(self, one: NodeId, other: NodeId) -> None: ...
    async def accept(self, one: NodeId, other: NodeId) -> None: ...
    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        """Measure whether all links between two nodes refuse connections."""
        ...


@runtime_checkable
class CanSlow(Protocol):
    """A target that can slow links: all bytes from source to target arrive later, in order.

    A link that several faults slow has the largest of their latencies.
    """

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None: ...
    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        """Undo one fault's latency; the latencies of other faults remain."""
        ...

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        """Measure the fastest answer to a probe over the links between two nodes, in seconds.

        Returns ``None`` when no answer came.
        """
        ...


@runtime_checkable
class CanDisconnect(Protocol):
    """A target that can take a node off the network while the node keeps running."""

    async def disconnect(self, node: NodeId) -> None: ...
    async def reconnect(self, node: NodeId) -> None:
        """Restore the node's networks; has no effect on a node that is connected."""
        ...

    async def is_disconnected(self, node: NodeId) -> bool:
        """Measure whether the node is off the network.

        It is if it is on no network of the cluster and leaves a probe that bypasses the mesh
        unanswered.
        """
        ...


@runtime_checkable
class CanDropPackets(Protocol):
    """A target that can drop a share of a node's packets below TCP, which then retransmits them."""

    async def drop_packets(self, node: NodeId, share: float) -> None:
        """Drop ``share`` (0 to 1) of the incoming packets, and as many of the outgoing ones."""
        ...

    async def pass_packets(self, node: NodeId) -> None:
        """Remove the rule; has no effect on a node that has none or is down."""
        ...

    async def packets_dropped(self, node: NodeId) -> int | None:
        """Measure how many packets the rule itself has counted as dropped.

        Returns ``None`` when there is no rule; a node that is down has none.
        """
        ...


@runtime_checkable
class CanInterceptMessages(Protocol):
    """A target that can delay, lose, corrupt or repeat a message of Kafka's protocol."""

    @classmethod
    def apis(cls) -> Sequence[str]:
        """Return the names of the APIs whose messages can be intercepted."""
        ...

    @classmethod
    def intercepts_brokers(cls) -> bool:
        """Return whether requests of brokers can be intercepted, or only those of clients."""
        ...

    async def intercept(
        self, links: Sequence[tuple[NodeId, NodeId]], selection: Selection, what: Interception
    ) -> int:
        """Intercept the first of the selected messages on these links; return its number.

        Each link leads from the client of a request to its server. The number identifies the
        interception in other calls. Raises ``ValueError`` for an unknown API.
        """
        ...

    async def caught(self, number: int) -> str | None:
        """Measure which message was intercepted; ``None`` when there was none yet."""
        ...

    async def is_held(self, number: int) -> bool:
        """Measure whether a message is being held at the moment."""
        ...

    async def release(self, number: int) -> None:
        """Deliver the held message if its connection still exists; intercept no further message."""
        ...

    async def release_all(self) -> None: ...
