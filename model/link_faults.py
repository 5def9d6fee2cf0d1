"""The combined effect of all active faults on the links between two nodes, as recorded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """The combined effect of all active faults on the links between two nodes."""

    cut: bool = False
    """Bytes are dropped in at least one direction."""
    refused: bool = False
    """New connections are refused."""
    disconnected: bool = False
    """At least one of the two nodes has no network."""
    lossy: bool = False
    """At least one of the two nodes loses packets."""
    slowness_s: float = 0.0
    """How much longer a round trip takes than without faults."""

    @property
    def is_silent(self) -> bool:
        """True if no probe over the links can be answered."""
        return self.cut or self.refused or self.disconnected
