"""The clients to which a quota applies: a user, a client id, or both; each may be the default.

Names are encoded as in the znodes of quotas, so that no name is equal to that of the default.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

DEFAULT: Final = "<default>"
"""Stands for every name that has no quota of its own."""
USERS: Final = "users"
CLIENTS: Final = "clients"


class Entity(NamedTuple):
    """A user, a client id, or both, by their encoded names; None: any."""

    user: str | None = None
    client_id: str | None = None

    @property
    def path(self) -> str:
        """The path of its settings below ``/config``, as Kafka writes it."""
        parts = []
        if self.user is not None:
            parts += [USERS, self.user]
        if self.client_id is not None:
            parts += [CLIENTS, self.client_id]
        return "/".join(parts)


def of_path(path: str) -> Entity | None:
    """Return the entity of a path below ``/config``; None if it is not one of clients."""
    match path.split("/"):
        case ["users", user]:
            return Entity(user)
        case ["users", user, "clients", client_id]:
            return Entity(user, client_id)
        case ["clients", client_id]:
            return Entity(None, client_id)
        case _:
            return None


def encoded(name: str | None) -> str:
    """Encode a name as Kafka's Sanitizer does; None is the default."""
    return DEFAULT if name is None else quote(name, safe="").replace("~", "%7E")


def decoded(name: str) -> str | None:
    """Return the name of an encoded one; None for the default."""
    return None if name == DEFAULT else unquote(name)


def candidates(user: str, client_id: str) -> Iterator[tuple[Entity, Entity]]:
    """The entities whose quotas may apply to a client, in the order of precedence.

    The second entity of a pair is the one whose requests count together.
    """
    both, of_user, of_client = Entity(user, client_id), Entity(user), Entity(None, client_id)
    yield both, both
    yield Entity(user, DEFAULT), both
    yield of_user, of_user
    yield Entity(DEFAULT, client_id), both
    yield Entity(DEFAULT, DEFAULT), both
    yield Entity(DEFAULT), of_user
    yield of_client, of_client
    yield Entity(None, DEFAULT), of_client
