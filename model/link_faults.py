"""What all active faults do to the links between two nodes, as the target records it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """The combined effect of all active faults on the links between two nodes."""

    cut: bool = False
    """Bytes are swallowed in one direction at least."""
    refused: bool = False
    """New connections are refused."""
    disconnected: bool = False
    """One of the two nodes has no network."""
    lossy: bool = False
    """One of the two nodes loses packets."""
    slowness_s: float = 0.0
    """How much longer a round trip takes than it would without faults."""

    @property
    def is_silent(self) -> bool:
        """No probe over the links can be answered."""
        return self.cut or self.refused or self.disconnected


NO_FAULTS = LinkFaults()
