"""What can be measured of a link while other faults affect it.

A fault that is applied or healed accounts for its own effect only. A probe over a link that another
fault silences would prove nothing, and is not sent.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from model.link_faults import LinkFaults
from model.roles import NodeId

Link = tuple[NodeId, NodeId]

TOO_SLOW_S = 1.0
"""A heal does not wait for a healed link that other faults make slower than this."""


class Linked(Protocol):
    """The method that this module needs from a cluster."""

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults: ...


class Links(NamedTuple):
    """The links of a fault, split by whether they can be measured now."""

    open: Sequence[Link]
    """Links on which no other fault keeps a probe from being answered."""
    hidden: Sequence[Link]
    """Links on which another fault does."""


def split(cluster: Linked, links: Iterable[Link], hides: Callable[[LinkFaults], bool]) -> Links:
    """Split links by whether their current faults hide the measured effect (``hides``)."""
    open_: list[Link] = []
    hidden: list[Link] = []
    for link in links:
        (hidden if hides(cluster.link_faults(*link)) else open_).append(link)
    return Links(open_, hidden)
