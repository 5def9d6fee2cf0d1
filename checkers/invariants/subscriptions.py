"""Members' subscriptions: the leader of a generation receives what each member has sent.

A JoinGroup lists protocols (assignors), each with the member's subscription. The coordinator
chooses a protocol that all members support, and sends the leader of the generation the
subscription of each member for it (KIP-62). Members receive the protocol and the leader's id.
``subscribed-as-sent`` compares the answers of a generation with each other and with the requests.

A static member that joins again without its member id takes the place of another id (KIP-345), so
nothing is compared in that generation any more, but the protocol with its own request.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Joined(NamedTuple):
    """An accepted JoinGroup and its answer."""

    member: str
    generation: int
    leader: str
    protocol: str
    sent: Mapping[str, bytes]
    """The subscriptions of the member, by protocol."""
    listed: Mapping[str, bytes]
    """The subscriptions of all members, as the leader receives them; empty for other members."""


@dataclass
class _Generation:
    number: int
    leader: str
    protocol: str
    listed: Mapping[str, bytes] = field(default_factory=dict)
    sent: dict[str, bytes] = field(default_factory=dict)
    """The subscription of each member that was answered, for the protocol."""


class Subscriptions:
    """The latest generation of each group of one coordinator."""

    def __init__(self) -> None:
        self._latest: dict[str, _Generation] = {}

    def forget(self, group: str) -> None:
        """A static member of the group takes the place of another member id."""
        self._latest.pop(group, None)

    def joined(self, group: str, one: Joined) -> Iterator[str]:
        """Yield what is wrong with the answer to a member; call it for each accepted JoinGroup."""
        if one.protocol not in one.sent:
            yield f"protocol {one.protocol} was chosen, which {one.member} does not support"
            return
        known = self._latest.get(group)
        # The id of the leader distinguishes generations of groups that had the same name.
        if known is None or (known.number, known.leader) != (one.generation, one.leader):
            known = self._latest[group] = _Generation(one.generation, one.leader, one.protocol)
        if known.protocol != one.protocol:
            yield f"{one.member} received protocol {one.protocol}, others {known.protocol}"
            return
        known.sent[one.member] = one.sent[one.protocol]
        if one.listed:
            known.listed = one.listed
            compared = list(known.sent)
        else:
            compared = [one.member]
        for member in compared if known.listed else ():
            if member not in known.listed:
                yield f"{member} is in generation {known.number}, but not in the leader's list"
            elif known.listed[member] != known.sent[member]:
                yield f"the leader received another subscription than {member} has sent"
