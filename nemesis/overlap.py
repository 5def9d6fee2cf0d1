"""What can be measured of a link while other faults last on it.

A fault that is applied or healed takes responsibility for its own effect only. A probe over a link
that another fault silences tells nothing of it, and is not sent.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from model.link_faults import LinkFaults
from model.roles import NodeId

Link = tuple[NodeId, NodeId]

TOO_SLOW_S = 1.0
"""A healed link that other faults make slower than this is not waited for."""


class Linked(Protocol):
    """What this module asks of a cluster."""

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults: ...


class Links(NamedTuple):
    """The links of a fault, by what a measurement can tell of them."""

    open: Sequence[Link]
    """No other fault keeps a probe from being answered."""
    hidden: Sequence[Link]
    """Another fault does."""


def split(cluster: Linked, links: Iterable[Link], hides: Callable[[LinkFaults], bool]) -> Links:
    """The links, by whether what faults do to each of them now ``hides`` what is measured."""
    open_: list[Link] = []
    hidden: list[Link] = []
    for link in links:
        (hidden if hides(cluster.link_faults(*link)) else open_).append(link)
    return Links(open_, hidden)
