"""The members of an ensemble, and which sets of them decide: majorities of those that vote."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from broker_impl.errors import ConfigError

ServerId = int
"""The number of a server in its ensemble (``myid``), 1 to 254."""

SERVER_ID_MAX = 254
"""A session id has 8 bits for the server that created it, of which 255 has another meaning."""


@dataclass(frozen=True, slots=True)
class Member:
    """A server of an ensemble, with the addresses at which the other servers reach it."""

    id: ServerId
    host: str
    quorum_port: int
    """The port at which a leader accepts learners."""
    election_port: int
    observes: bool = False
    """Does it neither vote nor acknowledge transactions?"""

    @property
    def kind(self) -> str:
        """The name of its kind in ZooKeeper's configuration."""
        return "observer" if self.observes else "participant"

    @classmethod
    def parse(cls, text: str) -> "Member":
        """Read ``ID=HOST:QUORUM_PORT:ELECTION_PORT[:observer|:participant]``.

        Raises:
            ConfigError: the text does not have this form.
        """
        number, _, address = text.partition("=")
        parts = address.split(":")
        if len(parts) == 3:
            parts.append("participant")
        try:
            host, quorum, election, kind = parts
            member = cls(int(number), host, int(quorum), int(election), kind == "observer")
        except ValueError:
            raise ConfigError(
                f"{text!r} is not of the form ID=HOST:QUORUM_PORT:ELECTION_PORT[:observer]"
            ) from None
        if not 1 <= member.id <= SERVER_ID_MAX or kind not in ("observer", "participant"):
            raise ConfigError(
                f"{text}: an id is 1 to {SERVER_ID_MAX}, a kind observer or participant"
            )
        return member


class Ensemble:
    """The members, by their ids."""

    def __init__(self, members: Iterable[Member]) -> None:
        """Raises ConfigError if two members have one id, or if none votes."""
        self.members: Mapping[ServerId, Member] = {}
        for member in sorted(members, key=lambda member: member.id):
            if member.id in self.members:
                raise ConfigError(f"two servers have the id {member.id}")
            self.members = {**self.members, member.id: member}
        self.voters = frozenset(
            member.id for member in self.members.values() if not member.observes
        )
        """The members that vote and whose acknowledgements count."""
        if not self.voters:
            raise ConfigError("an ensemble has a server that votes")

    def has_quorum(self, supporters: Collection[ServerId]) -> bool:
        """Return whether these servers decide."""
        return is_quorum(self.voters, supporters)

    def configuration(self) -> str:
        """The members as ZooKeeper writes them to the znode ``/zookeeper/config``."""
        lines = [
            f"server.{member.id}={member.host}:{member.quorum_port}:{member.election_port}"
            f":{member.kind}"
            for member in self.members.values()
        ]
        return "\n".join([*lines, "version=0"])


def is_quorum(voters: Collection[ServerId], supporters: Collection[ServerId]) -> bool:
    """Return whether the supporters contain a majority of the voters; others do not count."""
    return 2 * sum(server in supporters for server in voters) > len(voters)


def supported_by_quorum(
    voters: Collection[ServerId], acknowledged: Mapping[ServerId, int], nothing: int
) -> int:
    """Return the highest zxid up to which a majority of the voters have acknowledged everything.

    A server acknowledges transactions in their order, so an acknowledgement covers all earlier
    transactions. ``nothing`` is the value of a voter that has acknowledged none.
    """
    ends = sorted((acknowledged.get(server, nothing) for server in voters), reverse=True)
    return ends[len(ends) // 2]
