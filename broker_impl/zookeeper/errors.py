"""ZooKeeper's error codes, and one exception for each reason to reject a request."""

from enum import IntEnum
from typing import ClassVar

from broker_impl.errors import BrokerError


class Code(IntEnum):
    """The error codes of a reply header, with ZooKeeper's names."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    DATA_INCONSISTENCY = -3
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    RECONFIG_DISABLED = -123
    API_ERROR = -100
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NO_WATCHER = -121


class ZooKeeperError(BrokerError):
    """A request was rejected, or its outcome is unknown; ``code`` says why."""

    code: ClassVar[Code] = Code.SYSTEM_ERROR


class RuntimeInconsistency(ZooKeeperError):
    """An operation of a multi was not tried, because an earlier one failed."""

    code = Code.RUNTIME_INCONSISTENCY


class ConnectionLoss(ZooKeeperError):
    """The connection was lost before the reply: the request may or may not have been executed."""

    code = Code.CONNECTION_LOSS


class Unimplemented(ZooKeeperError):
    """The server does not know this operation."""

    code = Code.UNIMPLEMENTED


class BadArguments(ZooKeeperError):
    """A path, flag or value is invalid."""

    code = Code.BAD_ARGUMENTS


class NoNode(ZooKeeperError):
    """The node, or the parent of a node to be created, does not exist."""

    code = Code.NO_NODE


class NoAuth(ZooKeeperError):
    """The node's ACL does not allow this to the client's identities."""

    code = Code.NO_AUTH


class BadVersion(ZooKeeperError):
    """The node's version is not the expected one."""

    code = Code.BAD_VERSION


class NoChildrenForEphemerals(ZooKeeperError):
    """An ephemeral node cannot have children."""

    code = Code.NO_CHILDREN_FOR_EPHEMERALS


class NodeExists(ZooKeeperError):
    """The node already exists."""

    code = Code.NODE_EXISTS


class NotEmpty(ZooKeeperError):
    """The node cannot be deleted, because it has children."""

    code = Code.NOT_EMPTY


class SessionExpired(ZooKeeperError):
    """The session has expired; its ephemeral nodes are gone."""

    code = Code.SESSION_EXPIRED


class InvalidAcl(ZooKeeperError):
    """The ACL is empty, or names an unknown scheme or a malformed id."""

    code = Code.INVALID_ACL


class AuthFailed(ZooKeeperError):
    """The credentials are of an unknown scheme, or malformed."""

    code = Code.AUTH_FAILED


class SessionMoved(ZooKeeperError):
    """The session has moved to another server; this connection may no longer write."""

    code = Code.SESSION_MOVED


class NoWatcher(ZooKeeperError):
    """The watch to remove does not exist."""

    code = Code.NO_WATCHER


class ReconfigDisabled(ZooKeeperError):
    """Clients cannot change the set of servers."""

    code = Code.RECONFIG_DISABLED


_CLASSES: dict[int, type[ZooKeeperError]] = {
    error.code: error for error in ZooKeeperError.__subclasses__()
}


def error_for(code: int, message: str = "") -> ZooKeeperError:
    """The exception for a reply's code; an unknown code gives a plain ``ZooKeeperError``."""
    known = _CLASSES.get(code)
    if known is None:
        return ZooKeeperError(f"code {code} {message}".rstrip())
    return known(message or known.code.name)
