"""How a connection gets its identities: by credentials (``addauth``), or by an exchange of SASL."""

from typing import Protocol

from broker_impl.zookeeper import acl
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import AuthRequest, Id, SaslToken

Credentials = AuthRequest | SaslToken


class Identified(Protocol):
    """A connection with identities."""

    ids: tuple[Id, ...]
    """Its identities, for ACLs."""
    login: ServerExchange
    """Its authentication by SASL."""


def answer(connection: Identified, request: Credentials) -> tuple[Record, ...]:
    """Give a connection the identity that it has proved, and return the body of the reply.

    Raises:
        AuthFailed: the credentials are wrong.
    """
    if isinstance(request, AuthRequest):
        _add(connection, acl.identify(request.scheme, request.auth, connection.ids))
        return ()
    token = connection.login.step(request.token or b"")
    if connection.login.user is not None:
        _add(connection, Id(acl.SASL, connection.login.user))
    return (SaslToken(token),)


def _add(connection: Identified, identity: Id) -> None:
    if identity not in connection.ids:
        connection.ids = (*connection.ids, identity)
