"""The users of a protected cluster, their rights, and the certificates of its brokers."""

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

from model.roles import NodeId

Login = Literal["accepted", "refused", "silence"]
"""The outcome of an authentication; ``silence``: the broker did not answer."""
Right = Literal["topics", "transactions"]
"""The rights to write: to topics, and with transactional ids."""
Certificate = Literal["valid", "expired", "foreign"]
"""``foreign``: issued by an authority that clients do not trust."""
Handshake = Literal["verified", "rejected", "silence"]
"""Whether a client verifies the broker's certificate; ``silence``: there was no handshake."""


@runtime_checkable
class CanChangeCredentials(Protocol):
    """A target whose clients authenticate by a password that an operator can change."""

    async def write_password(self, *, is_right: bool) -> bool:
        """Set the password of the clients' user to theirs, or to another one.

        Returns whether a broker has confirmed it; otherwise it may take effect later.
        """
        ...

    async def logins(self) -> Mapping[NodeId, Login]:
        """Authenticate a new connection to each broker by the clients' password, past all
        faults."""
        ...


@runtime_checkable
class CanChangeRights(Protocol):
    """A target whose clients have only the rights that an operator gives them."""

    async def change_right(self, right: Right, *, is_granted: bool) -> bool:
        """Give the clients' user a right, or take it away.

        Returns whether a broker has confirmed it; otherwise it may take effect later.
        """
        ...

    async def has_right(self, right: Right) -> Mapping[NodeId, bool]:
        """Return, for each broker that answers past all faults, whether the user has the right."""
        ...


@runtime_checkable
class CanReplaceCertificates(Protocol):
    """A target whose brokers prove by certificates who they are."""

    async def replace_certificate(self, node: NodeId, certificate: Certificate) -> bool:
        """Replace a broker's certificate while the broker runs; return whether it confirmed."""
        ...

    async def handshake(self, node: NodeId) -> Handshake:
        """Connect to a broker past all faults as a client that verifies its certificate."""
        ...
